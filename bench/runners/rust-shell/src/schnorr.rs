//! The task `schnorr`: a unit is the signature of a Nostr event over its id.

use std::fs;
use std::hint::black_box;

use protocol::{BoxError, Loaded, Parts, Proof, Verdict, VerdictCounts, Work};

use crate::{Task, Variant, catch_panic, log_error};

/// A stack of libraries that can verify events.
pub trait Peer: 'static {
    /// An event as the libraries represent it. Its key is not parsed yet.
    type Event;

    const VARIANTS: &'static [Variant];

    /// Reads an event.
    ///
    /// # Errors
    ///
    /// When the line holds none.
    fn parse(line: &str) -> Result<Self::Event, BoxError>;

    /// Whether the event's signature is its author's over its id.
    ///
    /// # Errors
    ///
    /// When there is no such key, or it cannot be a signature.
    fn verify(event: &Self::Event) -> Result<bool, BoxError>;
}

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "schnorr", variants: P::VARIANTS, load: load::<P> }
}

/// The parsed events.
struct Events<P: Peer> {
    loaded: Loaded,
    events: Vec<Result<P::Event, BoxError>>,
}

fn load<P: Peer>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let (mut events, mut lens) = (Vec::new(), Vec::new());
    for path in files {
        let file = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        for line in file.split_terminator('\n') {
            events.push(catch_panic(|| P::parse(line)));
            lens.push(line.len());
        }
    }
    Ok(Box::new(Events::<P> { loaded: Loaded::of(lens), events }))
}

impl<P: Peer> Work for Events<P> {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = VerdictCounts::default();
        for (number, event) in self.events.iter().enumerate() {
            let outcome = verify::<P>(event);
            counts.add(Verdict::from(&outcome));
            if let Err(error) = outcome {
                log_error(number, counts.errors, &error);
            }
        }
        Ok(counts.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        for event in &self.events {
            let _ = black_box(verify::<P>(event));
        }
        Ok(Parts::default())
    }
}

fn verify<P: Peer>(event: &Result<P::Event, BoxError>) -> Result<bool, BoxError> {
    let event = event.as_ref().map_err(|error| error.to_string())?;
    catch_panic(|| P::verify(event))
}
