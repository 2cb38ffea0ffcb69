//! The task `commit`: a unit is a frame, verified with the state of its account.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime};

use protocol::{Accounts, BoxError, CommitCounts, Counts, Loaded, Parts, Proof, Work};

use crate::files::{Frames, read};
use crate::{Task, Variant, log_error};

/// A library that can verify commits from a stream.
pub trait Peer: Sized + 'static {
    const VARIANTS: &'static [Variant];

    /// Prepares to verify the frames of these accounts, as pairs of DID and `did:key`. `now` is the time of verification,
    /// if [`Self::time`] returns times or the frames come with one.
    ///
    /// # Errors
    ///
    /// When a key cannot be read.
    fn start(keys: &[(String, String)], now: Option<SystemTime>) -> Result<Self, BoxError>;

    /// The `time` of an event, for a peer that needs a clock.
    fn time(_frame: &[u8]) -> Option<String> {
        None
    }

    /// Clears the state of all accounts, but keeps their keys.
    fn reset(&mut self);

    /// Whether the state of the account of a `#commit` is stored; `None` for a peer that keeps no state.
    fn has_state(&mut self, frame: &[u8]) -> Option<bool>;

    /// Verifies the next frame and updates the state of its account.
    fn verify(&mut self, frame: &[u8]) -> Outcome;
}

/// The outcome of verifying a frame.
#[derive(Debug)]
pub enum Outcome {
    /// An accepted `#commit` with this number of operations.
    Accepted { ops: usize },
    /// A rejected `#commit`, or a frame that cannot be decoded.
    Rejected(BoxError),
    /// A frame of another type.
    Other(Result<(), BoxError>),
}

impl Outcome {
    /// The outcome of a `#commit` with this number of operations.
    pub fn of_commit(ops: usize, outcome: Result<(), BoxError>) -> Self {
        match outcome {
            Ok(()) => Outcome::Accepted { ops },
            Err(error) => Outcome::Rejected(error),
        }
    }

    pub(crate) fn into_result(self) -> Result<(), BoxError> {
        match self {
            Outcome::Accepted { .. } => Ok(()),
            Outcome::Rejected(error) => Err(error),
            Outcome::Other(outcome) => outcome,
        }
    }
}

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "commit", variants: P::VARIANTS, load: load::<P> }
}

struct Commits<P> {
    peer: P,
    frames: Frames,
}

fn load<P: Peer>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let [frames, accounts] = files else {
        return Err("the files are two: frames, and the accounts' keys".into());
    };
    let frames = Frames::read([*frames])?;
    let keys: Accounts =
        serde_json::from_slice(&read(accounts)?).map_err(|error| format!("{accounts}: {error}"))?;
    let now = day_after_newest::<P>(&frames);
    let peer = P::start(&keys.into_iter().collect::<Vec<_>>(), now)?;
    Ok(Box::new(Commits { peer, frames }))
}

fn day_after_newest<P: Peer>(frames: &Frames) -> Option<SystemTime> {
    let times = frames.iter().filter_map(P::time);
    let newest = times.filter_map(|time| humantime::parse_rfc3339(&time).ok()).max()?;
    Some(newest + DAY)
}

impl<P: Peer> Commits<P> {
    /// Verifies all frames. Calls `before` before every frame, and passes its result to `visit`.
    fn verify_all<B>(
        &mut self,
        mut before: impl FnMut(&mut P, &[u8]) -> B,
        mut visit: impl FnMut(usize, B, Outcome),
    ) {
        self.peer.reset();
        for (number, frame) in self.frames.iter().enumerate() {
            let known = before(&mut self.peer, frame);
            visit(number, known, verify(&mut self.peer, frame));
        }
    }
}

/// Verifies a frame; a panic of the library is a rejection.
fn verify<P: Peer>(peer: &mut P, frame: &[u8]) -> Outcome {
    let outcome = catch_unwind(AssertUnwindSafe(|| peer.verify(frame)));
    outcome.unwrap_or_else(|_| Outcome::Rejected("panicked".into()))
}

impl<P: Peer> Work for Commits<P> {
    fn loaded(&self) -> Loaded {
        self.frames.loaded()
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = CommitCounts { frames: self.loaded().units, ..Default::default() };
        let mut keeps_state = true;
        self.verify_all(P::has_state, |number, has_state, outcome| match outcome {
            Outcome::Accepted { ops } => {
                keeps_state &= has_state.is_some();
                match has_state {
                    Some(false) => counts.first_sighting += 1,
                    _ => counts.accepted += 1,
                }
                counts.ops += ops as u64;
            }
            Outcome::Rejected(error) => {
                counts.refused += 1;
                log_error(number, counts.refused, &error);
            }
            Outcome::Other(_) => {}
        });
        counts.commits = counts.accepted + counts.first_sighting + counts.refused;
        let counts = Counts::from(counts);
        Ok(if keeps_state { counts } else { CHAIN_COUNTS.iter().fold(counts, without) }.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        self.verify_all(
            |_, _| (),
            |_, (), outcome| {
                black_box(outcome);
            },
        );
        Ok(Parts::default())
    }
}

fn without(counts: Counts, name: &&str) -> Counts {
    counts.without(name)
}

/// The counts that a peer without state cannot give.
const CHAIN_COUNTS: [&str; 3] = ["accepted", "first_sighting", "chain_broken"];

/// The age of the newest frame at the time of verification.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame is a byte, and good if it is greater than the one before.
    #[derive(Default)]
    struct Rising {
        last: u8,
        is_stateless: bool,
        now: Option<SystemTime>,
    }

    impl Peer for Rising {
        const VARIANTS: &'static [Variant] = &[];

        fn start(_: &[(String, String)], now: Option<SystemTime>) -> Result<Self, BoxError> {
            Ok(Rising { last: 0, is_stateless: false, now })
        }

        fn time(frame: &[u8]) -> Option<String> {
            let [day] = frame else { return None };
            Some(format!("2026-11-0{day}T10:00:00.500Z"))
        }

        fn reset(&mut self) {
            self.last = 0;
        }

        fn has_state(&mut self, _: &[u8]) -> Option<bool> {
            (!self.is_stateless).then_some(self.last > 0)
        }

        fn verify(&mut self, frame: &[u8]) -> Outcome {
            let [byte] = frame else { return Outcome::Other(Ok(())) };
            assert_ne!(*byte, 9, "a frame that makes it panic");
            let rises = *byte > self.last;
            self.last = *byte;
            Outcome::of_commit(2, rises.then_some(()).ok_or_else(|| "falls".into()))
        }
    }

    fn corpus(name: &str, frames: &[&[u8]]) -> Frames {
        let mut file = (frames.len() as u32).to_be_bytes().to_vec();
        for frame in frames {
            file.extend_from_slice(&(frame.len() as u32).to_be_bytes());
            file.extend_from_slice(frame);
        }
        let path = crate::files::scratch(name);
        std::fs::write(&path, file).unwrap();
        let corpus = Frames::read([path.to_str().unwrap()]).unwrap();
        std::fs::remove_file(path).unwrap();
        corpus
    }

    #[test]
    fn only_commits_are_counted_and_each_proof_starts_with_empty_state() {
        let frames: &[&[u8]] = &[&[1], &[3, 3], &[3], &[2], &[9], &[4]];
        let mut work = Commits { peer: Rising::default(), frames: corpus("counted", frames) };
        let counts = Counts::from(CommitCounts {
            frames: 6,
            commits: 5,
            accepted: 2,
            first_sighting: 1,
            chain_broken: 0,
            refused: 2,
            ops: 6,
        });
        assert_eq!(work.prove().unwrap().counts, counts);
        assert_eq!(work.prove().unwrap().counts, counts);
    }

    #[test]
    fn a_peer_without_state_gives_no_counts_of_chains() {
        let peer = Rising { is_stateless: true, ..Rising::default() };
        let mut work = Commits { peer, frames: corpus("stateless", &[&[1], &[3], &[2]]) };
        let counts = [("commits", 3), ("frames", 3), ("ops", 4), ("refused", 1)];
        assert_eq!(work.prove().unwrap().counts, Counts::from_iter(counts));
    }

    #[test]
    fn the_clock_is_a_day_after_the_newest_frame() {
        let corpus = corpus("clock", &[&[1], &[3], &[2, 2], &[2]]);
        let peer = Rising::start(&[], day_after_newest::<Rising>(&corpus)).unwrap();
        let expected = humantime::parse_rfc3339("2026-11-04T10:00:00.500Z").unwrap();
        assert_eq!(peer.now, Some(expected));
    }
}
