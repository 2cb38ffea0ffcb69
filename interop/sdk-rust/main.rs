//! Reads a stream with a client of another project, and prints every event as a line of JSON:
//!
//! ```text
//! sdk-rust CLIENT SERVICE OPTIONS
//! ```

mod jacquard;
mod shrike_frames;
mod shrike_jetstream;

use serde::Deserialize;
use serde_json::Value;

/// Which events are read, from a cursor on.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Options {
    cursor: i64,
    kinds: Vec<String>,
    collections: Vec<String>,
    dids: Vec<String>,
    compress: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [client, service, options] = &args[..] else {
        panic!("usage: sdk-rust CLIENT SERVICE OPTIONS");
    };
    let options: Options = serde_json::from_str(options).expect("options");
    match client.as_str() {
        "jacquard-frames" => jacquard::read_frames(service, &options).await,
        "jacquard-jetstream" => jacquard::read_jetstream(service, &options).await,
        "shrike-frames" => shrike_frames::read(service, &options).await,
        "shrike-jetstream" => shrike_jetstream::read(service, &options).await,
        _ => panic!("unknown client {client}"),
    }
}

fn write(event: Value) {
    println!("{event}");
}

/// An error is written like an event; tests expect none.
fn write_error(error: &dyn std::fmt::Debug) {
    eprintln!("{error:?}");
    write(serde_json::json!({ "kind": "error", "message": format!("{error:?}") }));
}
