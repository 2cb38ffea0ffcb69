//! Speed of a WebSocket client that acknowledges every event: events a second after the first tenth, and the delay
//! from the time of an event to its receipt.
//!
//! ```text
//! websocket_client ws://127.0.0.1:2480/lines TOKEN_FILE COUNT
//! ```

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::{FutureExt, SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

/// The parts of a line, or of an event of the channel, that a client needs.
#[derive(Deserialize)]
struct Received<'l> {
    #[serde(borrow)]
    id: &'l RawValue,
    time: Option<&'l str>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().expect("a URL");
    let token = std::fs::read_to_string(arguments.next().expect("a file")).expect("a token");
    let bearer = format!("Bearer {}", token.trim()).parse().expect("a header");
    let mut request = url.into_client_request()?;
    request.headers_mut().insert("authorization", bearer);
    let count = arguments.next().and_then(|count| count.parse().ok()).expect("a count");
    let mut socket = loop {
        match connect_async(request.clone()).await {
            Ok((socket, _)) => break socket,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let mut received = 0_usize;
    let mut start = Instant::now();
    let mut delays = Vec::new();
    while received < count {
        let mut next = socket.next().await;
        // Acknowledge all arrived messages together.
        while let Some(message) = next.transpose()? {
            if let Message::Text(text) = message {
                let event: Received<'_> = serde_json::from_str(&text).expect("an object");
                socket.feed(Message::text(acknowledgement(event.id.get()))).await?;
                delays.extend(event.time.and_then(delay_micros));
                received += 1;
                if received == count / 10 {
                    (start, delays) = (Instant::now(), Vec::new());
                }
            }
            next = socket.next().now_or_never().flatten();
        }
        socket.flush().await?;
    }
    let rate = (count - count / 10) as f64 / start.elapsed().as_secs_f64();
    delays.sort_unstable();
    let at = |part: f64| delays.get((delays.len() as f64 * part) as usize).copied().unwrap_or(0);
    let [median, most] = [0.5, 0.99].map(|part| at(part) as f64 / 1e3);
    println!("{rate:.0} events/s; delay: median {median:.1} ms, 99 % within {most:.1} ms");
    Ok(())
}

/// The message that acknowledges an id: a text of `/lines`, or a number of `/channel`.
fn acknowledgement(id: &str) -> String {
    match id.strip_prefix('"').and_then(|id| id.strip_suffix('"')) {
        Some(text) => text.to_owned(),
        None => format!(r#"{{"type":"ack","id":{id}}}"#),
    }
}

/// The time since an event, by its claim.
fn delay_micros(time: &str) -> Option<u128> {
    let time: jiff::Timestamp = time.parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_micros();
    now.checked_sub(u128::try_from(time.as_microsecond()).ok()?)
}
