//! Which events are there to verify, and what came of it? The units of the task `schnorr`.

use serde::Deserialize;
use wireproof::crypto::schnorr::XOnlyKey;

use super::commits::Refusal;
use crate::counts::Counts;

/// What of a Nostr event its signature is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) id: [u8; 32],
    /// The author's x-only key, which may be no point.
    pub(crate) pubkey: [u8; 32],
    pub(crate) sig: [u8; 64],
}

/// The lines of a file; they end at a line feed and at nothing else. `None` if it is not UTF-8.
pub(crate) fn lines(file: &[u8]) -> Option<Vec<&str>> {
    Some(str::from_utf8(file).ok()?.split_terminator('\n').collect())
}

impl Event {
    /// Reads an event from its JSON.
    pub(crate) fn read(line: &str) -> Result<Self, Refusal> {
        #[derive(Deserialize)]
        struct Fields<'l> {
            id: &'l str,
            pubkey: &'l str,
            sig: &'l str,
        }
        let Fields { id, pubkey, sig } =
            serde_json::from_str(line).map_err(|_| Refusal::Unreadable)?;
        Ok(Self { id: from_hex(id)?, pubkey: from_hex(pubkey)?, sig: from_hex(sig)? })
    }

    /// Parses the key and verifies.
    pub(crate) fn verify(&self) -> Result<(), Refusal> {
        Ok(XOnlyKey::from_bytes(&self.pubkey)?.verify(&self.id, &self.sig)?)
    }
}

/// The bytes of exactly as many digits as they need.
fn from_hex<const N: usize>(digits: &str) -> Result<[u8; N], Refusal> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return Err(Refusal::Unreadable);
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().as_chunks().0) {
        let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
        let (high, low) = high.zip(low).ok_or(Refusal::Unreadable)?;
        *byte = (16 * high + low) as u8;
    }
    Ok(bytes)
}

/// The counts of the task so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    events: u64,
    valid: u64,
    invalid: u64,
    errors: u64,
}

impl Tally {
    /// Verifies the events of all `lines`, one at a time.
    pub(crate) fn of(lines: &[&str]) -> Self {
        let mut tally = Self::default();
        for line in lines {
            tally.note(Event::read(line).and_then(|event| event.verify()));
        }
        tally
    }

    /// Counts what came of one event.
    pub(crate) fn note(&mut self, verdict: Result<(), Refusal>) {
        self.events += 1;
        *match verdict {
            Ok(()) => &mut self.valid,
            Err(Refusal::Invalid) => &mut self.invalid,
            Err(Refusal::Unreadable) => &mut self.errors,
        } += 1;
    }
}

impl From<Tally> for Counts {
    fn from(tally: Tally) -> Self {
        Self::from_iter([
            ("events", tally.events),
            ("valid", tally.valid),
            ("invalid", tally.invalid),
            ("errors", tally.errors),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_if_there_are_as_many_as_needed_and_no_others() {
        assert_eq!(from_hex("00fF7a"), Ok([0, 255, 0x7a]));
        for bad in ["00ff7", "00ff7aa", "00ff7g", "00ff+7", "00é7a"] {
            assert_eq!(from_hex::<3>(bad), Err(Refusal::Unreadable), "{bad}");
        }
    }

    #[test]
    fn a_line_ends_at_a_line_feed_only() {
        let text = "a\u{2028}b\r\nc\n";
        assert_eq!(lines(text.as_bytes()), Some(vec!["a\u{2028}b\r", "c"]));
        assert_eq!(lines(b"\xff"), None);
    }
}
