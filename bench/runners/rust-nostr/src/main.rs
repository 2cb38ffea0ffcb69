//! How fast is the nostr crate, which most Rust clients and relays of Nostr are written with? It
//! verifies by libsecp256k1.

mod json;

use nostr::event::Event;
use runner_shell::schnorr::{self, Peer};
use runner_shell::{Refusal, Runner, Variant};

fn main() -> std::io::Result<()> {
    let mut tasks = runner_shell::nostr::tasks::<json::Json>();
    tasks.push(runner_shell::nostr::validated::<json::Json>());
    tasks.push(schnorr::task::<Nostr>());
    runner_shell::run(&Runner {
        engine: "nostr 0.45.6 (secp256k1 0.30.0, serde_json 1.0.154)",
        version: "0.45.6",
        tasks: &tasks,
    })
}

struct Nostr;

impl Peer for Nostr {
    type Event = Event;

    const VARIANTS: &'static [Variant] = &[Variant { name: "verify", checks: &[] }];

    fn parse(line: &str) -> Result<Event, Refusal> {
        Ok(Event::from_json(line)?)
    }

    /// A key that is no point counts as a wrong signature: the crate does not tell one from the other.
    fn verify(event: &Event) -> Result<bool, Refusal> {
        Ok(event.verify_signature())
    }
}
