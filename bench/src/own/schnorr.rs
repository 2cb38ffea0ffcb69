//! Verifies the BIP-340 signatures of Nostr events, the key parsed in the measured time, one event at a time or in
//! batches.

use std::hint::black_box;

use crypto::schnorr::{KeyRef, SignatureCheck, XOnlyKey, verify_many};
use protocol::{BoxError, Counts, Loaded, Parts, Proof, VerdictCounts, Work};
use serde::Deserialize;

use super::Variants;
use super::sigs::{BATCH, Outcome, SignatureError, verdict};

/// The variants; no check can be left out.
pub(super) fn variants() -> Variants {
    ["verify", "verify/batch"].map(|name| (name.to_owned(), Vec::new())).into()
}

/// Loads `variant`; `None` if it is unknown.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, BoxError> {
    let mut all = Vec::new();
    for file in files {
        all.extend(lines(file).ok_or("not lines of UTF-8")?);
    }
    let batch = match variant {
        "verify" => 1,
        "verify/batch" => BATCH,
        _ => return Ok(None),
    };
    Ok(Some(Box::new(Events {
        loaded: Loaded::of(all.iter().map(|line| line.len())),
        events: all.iter().map(|line| Event::read(line)).collect(),
        batch,
    })))
}

/// The reference counts of a file: from our own verdicts, one event at a time.
pub(crate) fn counts(lines: &[&str]) -> Counts {
    count(lines.iter().map(|line| Event::read(line).and_then(|event| event.verify())))
}

fn count(outcomes: impl Iterator<Item = Outcome>) -> Counts {
    let mut counts = VerdictCounts::default();
    outcomes.for_each(|outcome| counts.add(verdict(outcome)));
    counts.into()
}

/// The lines of a file, which end at a line feed only. `None` if it is not UTF-8.
pub(crate) fn lines(file: &[u8]) -> Option<Vec<&str>> {
    Some(str::from_utf8(file).ok()?.split_terminator('\n').collect())
}

/// The parts of a Nostr event that its signature covers.
#[derive(Clone, Copy, Debug)]
struct Event {
    id: [u8; 32],
    /// The author's x-only key, not checked to be a point.
    pubkey: [u8; 32],
    sig: [u8; 64],
}

impl Event {
    fn read(line: &str) -> Result<Self, SignatureError> {
        #[derive(Deserialize)]
        struct Fields<'l> {
            id: &'l str,
            pubkey: &'l str,
            sig: &'l str,
        }
        let Fields { id, pubkey, sig } =
            serde_json::from_str(line).map_err(|_| SignatureError::Unreadable)?;
        Ok(Self { id: from_hex(id)?, pubkey: from_hex(pubkey)?, sig: from_hex(sig)? })
    }

    fn verify(&self) -> Outcome {
        Ok(XOnlyKey::from_bytes(&self.pubkey)?.verify(&self.id, &self.sig)?)
    }
}

/// Decodes exactly `2 * N` digits of either case.
fn from_hex<const N: usize>(digits: &str) -> Result<[u8; N], SignatureError> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return Err(SignatureError::Unreadable);
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().as_chunks().0) {
        let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
        let (high, low) = high.zip(low).ok_or(SignatureError::Unreadable)?;
        *byte = (16 * high + low) as u8;
    }
    Ok(bytes)
}

struct Events {
    loaded: Loaded,
    events: Vec<Result<Event, SignatureError>>,
    /// Events verified together.
    batch: usize,
}

impl Events {
    fn single(&self) -> impl Iterator<Item = Outcome> {
        self.events.iter().map(|event| event.as_ref().map_err(|error| *error)?.verify())
    }
}

impl Work for Events {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let counts = match self.batch {
            1 => count(self.single()),
            batch => count(self.events.chunks(batch).flat_map(verify_batch)),
        };
        Ok(counts.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        if self.batch == 1 {
            for outcome in self.single() {
                let _ = black_box(outcome);
            }
            return Ok(Parts::default());
        }
        for batch in self.events.chunks(self.batch) {
            black_box(verify_batch(batch));
        }
        Ok(Parts::default())
    }
}

fn check(event: &Event) -> SignatureCheck<'_> {
    let Event { id: message, pubkey, sig: signature } = event;
    SignatureCheck { message, signature, key: KeyRef::Bytes(pubkey) }
}

fn verify_batch(batch: &[Result<Event, SignatureError>]) -> Vec<Outcome> {
    let checks: Vec<SignatureCheck<'_>> = batch.iter().flatten().map(check).collect();
    let mut outcomes = verify_many(&checks).into_iter();
    let outcome = |event: &Result<Event, SignatureError>| {
        event.as_ref().map_err(|error| *error)?;
        Ok(outcomes.next().expect("there is an outcome for each readable event")?)
    };
    batch.iter().map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_needed_number_of_hexadecimal_digits_is_decoded() {
        assert_eq!(from_hex("00fF7a"), Ok([0, 255, 0x7a]));
        for bad in ["00ff7", "00ff7aa", "00ff7g", "00ff+7", "00é7a"] {
            assert_eq!(from_hex::<3>(bad), Err(SignatureError::Unreadable), "{bad}");
        }
    }

    #[test]
    fn a_line_ends_at_a_line_feed_only() {
        let text = "a\u{2028}b\r\nc\n";
        assert_eq!(lines(text.as_bytes()), Some(vec!["a\u{2028}b\r", "c"]));
        assert_eq!(lines(b"\xff"), None);
    }
}
