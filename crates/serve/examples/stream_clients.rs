//! Many clients of one stream in one process: how long they take for a number of messages, and the delay of the messages.
//!
//! ```text
//! stream_clients 127.0.0.1:2480 /subscribe CLIENTS MESSAGES
//! ```
//!
//! Prints `ready` when all clients are connected, and one JSON object when each has received its messages. It reads frames
//! of WebSocket itself, as a library would take more processor time than the server that is measured.

use std::io::Error;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |what| arguments.next().ok_or_else(|| Error::other(format!("no {what}")));
    let (address, path) = (argument("address")?, argument("path")?);
    let number = |text: String| text.parse::<u64>().map_err(Error::other);
    let (clients, messages) = (number(argument("clients")?)?, number(argument("messages")?)?);
    let (start, started) = watch::channel(false);
    let mut running = JoinSet::new();
    for number in 0..clients {
        let client = Client::connect(&address, &path).await?;
        running.spawn(client.read(messages, number == 0, started.clone()));
    }
    println!("ready");
    let since = Instant::now();
    start.send_replace(true);
    let (mut bytes, mut delays) = (0, Vec::new());
    while let Some(ended) = running.join_next().await {
        let read = ended.map_err(Error::other)??;
        bytes += read.bytes;
        delays.extend(read.delays);
    }
    let seconds = since.elapsed().as_secs_f64();
    delays.sort_unstable();
    let at = |part: f64| delays.get((delays.len() as f64 * part) as usize).copied();
    let millis = |part| at(part).map_or(0.0, |micros| micros as f64 / 1e3);
    println!(
        "{{\"seconds\":{seconds:.3},\"bytes\":{bytes},\"median_ms\":{:.2},\"p99_ms\":{:.2}}}",
        millis(0.5),
        millis(0.99)
    );
    Ok(())
}

/// The messages of a client.
#[derive(Default)]
struct Received {
    messages: u64,
    bytes: u64,
    /// From the arrival of an event at the server to its receipt here, in microseconds.
    delays: Vec<i64>,
}

struct Client(TcpStream);

impl Client {
    /// Connects, again while the server starts.
    async fn connect(address: &str, path: &str) -> Result<Self, Error> {
        let mut stream = loop {
            match TcpStream::connect(address).await {
                Ok(stream) => break stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head.push(char::from(stream.read_u8().await?));
        }
        if head.starts_with("HTTP/1.1 101") { Ok(Self(stream)) } else { Err(Error::other(head)) }
    }

    /// Reads until `count` messages have come since the start.
    async fn read(
        mut self,
        count: u64,
        measures: bool,
        started: watch::Receiver<bool>,
    ) -> Result<Received, Error> {
        let (mut received, mut buffer, mut held) = (Received::default(), vec![0; 256 << 10], 0);
        while received.messages < count {
            if held == buffer.len() {
                buffer.resize(buffer.len() * 2, 0);
            }
            let len = self.0.read(&mut buffer[held..]).await?;
            if len == 0 {
                return Err(Error::other("the server has closed the connection"));
            }
            held += len;
            let mut at = 0;
            while let Some((opcode, payload)) = frame(&buffer[at..held]) {
                let message = &buffer[at + payload.start..at + payload.end];
                match opcode {
                    TEXT | BINARY if *started.borrow() => {
                        received.messages += 1;
                        received.bytes += message.len() as u64;
                        if measures {
                            received.delays.extend(arrival(message).map(|arrival| now() - arrival));
                        }
                    }
                    PING => self.0.write_all(PONG).await?,
                    _ => {}
                }
                at += payload.end;
            }
            buffer.copy_within(at..held, 0);
            held -= at;
        }
        Ok(received)
    }
}

/// The opcode of the first frame, and the place of its payload, if the frame is complete. Servers do not mask.
fn frame(bytes: &[u8]) -> Option<(u8, std::ops::Range<usize>)> {
    let (first, second) = (*bytes.first()?, usize::from(*bytes.get(1)? & 0x7f));
    let (start, len) = match second {
        126 => (4, usize::from(u16::from_be_bytes(*bytes.get(2..4)?.first_chunk()?))),
        127 => (10, usize::try_from(u64::from_be_bytes(*bytes.get(2..10)?.first_chunk()?)).ok()?),
        len => (2, len),
    };
    (bytes.len() >= start + len).then_some((first & 0x0f, start..start + len))
}

/// When the event arrived at the server, in microseconds since 1970: of `wireproof serve` the number of a frame tells it, of a
/// Jetstream `time_us`. `None` for other servers.
fn arrival(message: &[u8]) -> Option<i64> {
    let after = |key: &[u8]| {
        let at = message.windows(key.len()).position(|window| window == key)?;
        message.get(at + key.len()..)
    };
    if message.first() == Some(&b'{') {
        let mut digits = after(b"\"time_us\":")?.iter().take_while(|byte| byte.is_ascii_digit());
        return digits.try_fold(0_i64, |number, digit| {
            number.checked_mul(10)?.checked_add(i64::from(digit - b'0'))
        });
    }
    let number = u64::from_be_bytes(*after(b"cseq\x1b")?.first_chunk()?);
    let arrival = i64::try_from(number).ok()? + MICROS_TO_2020;
    (arrival - now()).abs().lt(&DAY_MICROS).then_some(arrival)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const PING: u8 = 9;

/// An empty pong with a mask.
const PONG: &[u8] = &[0x8a, 0x80, 0, 0, 0, 0];

/// 2020-01-01, in microseconds since 1970.
const MICROS_TO_2020: i64 = 1_577_836_800_000_000;

const DAY_MICROS: i64 = 86_400_000_000;
