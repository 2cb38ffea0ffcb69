//! The task `schnorr`: a unit is the signature of a Nostr event over its id.

use std::fs;
use std::hint::black_box;

use serde_json::json;

use crate::protocol::{guarded, tell};
use crate::{Parts, Proof, Refusal, Size, Task, Variant, Work};

/// A stack of libraries that can verify events.
pub trait Peer: 'static {
    /// An event as the libraries hold it. Its key is not a point yet.
    type Event;

    const VARIANTS: &'static [Variant];

    /// Reads an event.
    ///
    /// # Errors
    ///
    /// When the line holds none.
    fn parse(line: &str) -> Result<Self::Event, Refusal>;

    /// Whether the event's signature is its author's over its id.
    ///
    /// # Errors
    ///
    /// When there is no such key, or it cannot be a signature.
    fn verify(event: &Self::Event) -> Result<bool, Refusal>;
}

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "schnorr", variants: P::VARIANTS, load: load::<P> }
}

/// Events that were read, or why they were not.
struct Events<P: Peer> {
    events: Vec<Result<P::Event, Refusal>>,
    bytes: usize,
}

fn load<P: Peer>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    let mut loaded = Events::<P> { events: Vec::new(), bytes: 0 };
    for path in files {
        let file = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        for line in file.split_terminator('\n') {
            loaded.events.push(guarded(|| P::parse(line)));
            loaded.bytes += line.len();
        }
    }
    Ok(Box::new(loaded))
}

impl<P: Peer> Work for Events<P> {
    fn size(&self) -> Size {
        Size { units: self.events.len(), bytes: self.bytes }
    }

    fn prove(&mut self) -> Result<Proof, Refusal> {
        let (mut valid, mut invalid, mut errors) = (0, 0, 0);
        for (number, event) in self.events.iter().enumerate() {
            match verdict::<P>(event) {
                Ok(true) => valid += 1,
                Ok(false) => invalid += 1,
                Err(refusal) => {
                    errors += 1;
                    tell(number, errors, &refusal);
                }
            }
        }
        let events = self.events.len();
        let counts =
            json!({ "events": events, "valid": valid, "invalid": invalid, "errors": errors });
        Ok(counts.into())
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        for event in &self.events {
            let _ = black_box(verdict::<P>(event));
        }
        Ok(Parts::default())
    }
}

fn verdict<P: Peer>(event: &Result<P::Event, Refusal>) -> Result<bool, Refusal> {
    let event = event.as_ref().map_err(|refusal| refusal.to_string())?;
    guarded(|| P::verify(event))
}
