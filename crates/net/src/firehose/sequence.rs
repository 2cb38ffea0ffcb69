//! Does a sequence number follow the one before, and was its event here already?

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};

/// The sequence numbers that one host has sent.
#[derive(Clone, Debug, Default)]
pub struct SequenceTracker {
    /// The number that came last, or the cursor of an earlier run.
    last: Option<u64>,
    /// The latest numbers, with a mark of what came under them.
    recent: VecDeque<(u64, u64)>,
}

/// How a number stands to those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeqStep {
    /// It is the first, or the one behind the last.
    Next,
    /// Numbers were left out behind this one. Relays leave out what they do not pass on; but it is also
    /// what a loss looks like.
    Gap(u64),
    /// The same event was here in this run, or it is that of the cursor, with which some servers
    /// begin.
    Repeated,
    /// The number was here, with other bytes.
    Reused,
    /// It is lower than this one, which came before it.
    Regressed(u64),
}

impl SequenceTracker {
    /// Begins behind the cursor of an earlier run, if there is one.
    pub fn new(cursor: Option<u64>) -> Self {
        Self { last: cursor, recent: VecDeque::new() }
    }

    /// From where a new connection goes on.
    pub fn cursor(&self) -> Option<u64> {
        self.last
    }

    /// Takes note of the next frame. The last number is this one from now on, even if it is lower: a
    /// server that counts anew is followed, and for the others it costs a few repetitions.
    pub fn step(&mut self, seq: u64, frame: &[u8]) -> SeqStep {
        let mark = mark(frame);
        let step = self.judge(seq, mark);
        self.last = Some(seq);
        if step != SeqStep::Repeated {
            if self.recent.len() == MAX_RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back((seq, mark));
        }
        step
    }

    fn judge(&self, seq: u64, mark: u64) -> SeqStep {
        match self.last {
            None => SeqStep::Next,
            Some(last) if seq > last => match seq - last {
                1 => SeqStep::Next,
                _ => SeqStep::Gap(last),
            },
            Some(last) => self.judge_old(seq, mark, last),
        }
    }

    #[cold]
    fn judge_old(&self, seq: u64, mark: u64, last: u64) -> SeqStep {
        let seen = |(_, seen): &(u64, u64)| *seen == mark;
        let mut same = self.recent.iter().filter(|(recent, _)| *recent == seq).peekable();
        match (same.peek().is_some(), same.any(seen)) {
            (true, true) => SeqStep::Repeated,
            (true, false) => SeqStep::Reused,
            (false, _) if self.recent.is_empty() && seq == last => SeqStep::Repeated,
            (false, _) => SeqStep::Regressed(last),
        }
    }
}

/// Tells frames under one number apart. A relay that wants to deceive could as well leave a frame out;
/// so a length and both ends will do: there are the header and, of a commit, the hash of the tree
/// before.
fn mark(frame: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_usize(frame.len());
    hasher.write(&frame[..frame.len().min(MARKED_LEN)]);
    hasher.write(&frame[frame.len().saturating_sub(MARKED_LEN)..]);
    hasher.finish()
}

const MARKED_LEN: usize = 128;

/// How many numbers are remembered: 256 KiB a host.
const MAX_RECENT: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn steps<const N: usize>(cursor: Option<u64>, seqs: [u64; N]) -> [SeqStep; N] {
        let mut sequence = SequenceTracker::new(cursor);
        seqs.map(|seq| sequence.step(seq, &seq.to_be_bytes()))
    }

    #[test]
    fn gaps_are_seen_from_the_cursor_on() {
        use SeqStep::{Gap, Next};
        assert_eq!(steps(None, [9, 10, 12]), [Next, Next, Gap(10)]);
        assert_eq!(steps(Some(8), [9, 10, 12]), [Next, Next, Gap(10)]);
        assert_eq!(steps(Some(5), [9]), [Gap(5)]);
    }

    #[test]
    fn the_event_of_the_cursor_is_a_repetition_once() {
        use SeqStep::{Next, Regressed, Repeated};
        assert_eq!(steps(Some(8), [8, 9]), [Repeated, Next]);
        assert_eq!(steps(Some(8), [7, 8]), [Regressed(8), Next]);
    }

    #[test]
    fn what_came_before_is_a_repetition_and_what_did_not_is_a_regression() {
        use SeqStep::{Gap, Next, Regressed, Repeated};
        assert_eq!(steps(None, [5, 5, 6, 5]), [Next, Repeated, Next, Repeated]);
        assert_eq!(steps(None, [5, 7, 6, 8]), [Next, Gap(5), Regressed(7), Gap(6)]);
        assert_eq!(steps(Some(900), [3, 4]), [Regressed(900), Next]);
    }

    #[test]
    fn a_number_with_other_bytes_is_no_repetition() {
        let mut sequence = SequenceTracker::new(None);
        assert_eq!(sequence.step(5, b"one"), SeqStep::Next);
        assert_eq!(sequence.step(5, b"two"), SeqStep::Reused);
        assert_eq!(sequence.step(5, b"one"), SeqStep::Repeated);
        assert_eq!(sequence.step(5, b"two"), SeqStep::Repeated);
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_counts_as_new() {
        let mut sequence = SequenceTracker::new(None);
        for seq in 0..2 * MAX_RECENT as u64 {
            sequence.step(seq, b"");
        }
        assert_eq!(sequence.recent.len(), MAX_RECENT);
        assert!(matches!(sequence.step(0, b""), SeqStep::Regressed(_)));
    }
}
