//! The throughput of a simulated relay: initial commits a second sent to one reader that discards them.
//!
//! ```sh
//! cargo run --release -p wireproof-simnet --features servers --example relay_throughput -- 200000
//! ```
//!
//! The sender is measured: the reader only parses frame heads, on its own thread.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use wireproof_simnet::servers::{Server, Simulation, Spec};

fn main() -> std::io::Result<()> {
    let frames = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let since = Instant::now();
    let sim =
        Simulation::start(Spec { initial_commits: frames, accounts: 200, ..Spec::default() })?;
    let made = since.elapsed().as_secs_f64();
    println!("{frames} commits made in {made:.1} s: {:.0} a second", frames as f64 / made);
    for _ in 0..PASSES {
        let mut reader = follow(sim.port(Server::Relay(0)))?;
        let since = Instant::now();
        let mut bytes = 0;
        for _ in 0..frames {
            bytes += skip_frame(&mut reader)?;
        }
        let time = since.elapsed().as_secs_f64();
        let (per_s, mb_per_s) = (frames as f64 / time, bytes as f64 / time / 1e6);
        println!("{per_s:.0} frames a second, {mb_per_s:.0} MB/s");
    }
    Ok(())
}

/// Requests the stream from the first event.
fn follow(port: u16) -> std::io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let path = "/xrpc/com.atproto.sync.subscribeRepos?cursor=0";
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )?;
    let mut reader = BufReader::with_capacity(READ_LEN, stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line)?;
    }
    Ok(reader)
}

/// Skips a frame; returns its length.
fn skip_frame(reader: &mut BufReader<TcpStream>) -> std::io::Result<u64> {
    let mut head = [0; 2];
    reader.read_exact(&mut head)?;
    let mut length = [0; 8];
    let wide = match head[1] {
        126 => 6..8,
        127 => 0..8,
        short => {
            length[7] = short;
            8..8
        }
    };
    reader.read_exact(&mut length[wide])?;
    let length = u64::from_be_bytes(length);
    let mut left = length as usize;
    while left > 0 {
        let here = reader.fill_buf()?.len().min(left);
        if here == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        reader.consume(here);
        left -= here;
    }
    Ok(length)
}

const PASSES: usize = 5;
const READ_LEN: usize = 256 << 10;
