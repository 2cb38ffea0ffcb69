//! The frames of a corpus, judged in their order.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::{Peer, Verdict};
use crate::decode::Corpus;
use crate::files::read;
use crate::protocol::tell;
use crate::{Parts, Proof, Refusal, Size, Work};

/// Where there is a clock, it says that the newest frame is as old as this.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct Frames<P> {
    peer: P,
    corpus: Corpus,
}

pub(super) fn load<P: Peer>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    let [frames, accounts] = files else {
        return Err("the files are two: frames, and the accounts' keys".into());
    };
    let corpus = Corpus::read([*frames])?;
    let keys: BTreeMap<String, String> =
        serde_json::from_slice(&read(accounts)?).map_err(|error| format!("{accounts}: {error}"))?;
    let now = day_after_newest::<P>(&corpus);
    let peer = P::start(&keys.into_iter().collect::<Vec<_>>(), now);
    Ok(Box::new(Frames { peer: peer.map_err(|refusal| refusal.to_string())?, corpus }))
}

fn day_after_newest<P: Peer>(corpus: &Corpus) -> Option<SystemTime> {
    let times = corpus.units().filter_map(P::time);
    let newest = times.filter_map(|time| humantime::parse_rfc3339(&time).ok()).max()?;
    Some(newest + DAY)
}

impl<P: Peer> Frames<P> {
    /// A library that panics on a frame has not accepted it.
    fn judge_all(&mut self, mut judged: impl FnMut(usize, Verdict)) {
        self.peer.forget();
        for (number, frame) in self.corpus.units().enumerate() {
            let verdict = catch_unwind(AssertUnwindSafe(|| self.peer.judge(frame)));
            judged(number, verdict.unwrap_or_else(|_| Verdict::Refused("panicked".into())));
        }
    }
}

impl<P: Peer> Work for Frames<P> {
    fn size(&self) -> Size {
        Size { units: self.corpus.units().len(), bytes: self.corpus.unit_bytes() }
    }

    fn prove(&mut self) -> Result<Proof, Refusal> {
        let frames = self.corpus.units().len();
        let (mut accepted, mut refused, mut ops) = (0_u64, 0_u64, 0_u64);
        self.judge_all(|number, verdict| match verdict {
            Verdict::Accepted { ops: more } => {
                accepted += 1;
                ops += more as u64;
            }
            Verdict::Refused(refusal) => {
                refused += 1;
                tell(number, refused, &refusal);
            }
            Verdict::Other(_) => {}
        });
        let commits = accepted + refused;
        Ok(Proof::from(json!({
            "frames": frames,
            "commits": commits,
            "accepted": accepted,
            "refused": refused,
            "ops": ops,
        })))
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        self.judge_all(|_, verdict| {
            black_box(verdict);
        });
        Ok(Parts::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Variant;

    /// A frame is a byte, and good if it is greater than the one before.
    #[derive(Default)]
    struct Rising {
        last: u8,
        now: Option<SystemTime>,
    }

    impl Peer for Rising {
        const VARIANTS: &'static [Variant] = &[];

        fn start(_: &[(String, String)], now: Option<SystemTime>) -> Result<Self, Refusal> {
            Ok(Rising { last: 0, now })
        }

        fn time(frame: &[u8]) -> Option<String> {
            let [day] = frame else { return None };
            Some(format!("2026-11-0{day}T10:00:00.500Z"))
        }

        fn forget(&mut self) {
            self.last = 0;
        }

        fn judge(&mut self, frame: &[u8]) -> Verdict {
            let [byte] = frame else { return Verdict::Other(Ok(())) };
            assert_ne!(*byte, 9, "a frame that makes it panic");
            let rises = *byte > self.last;
            self.last = *byte;
            Verdict::of_commit(2, rises.then_some(()).ok_or_else(|| "falls".into()))
        }
    }

    fn corpus(name: &str, frames: &[&[u8]]) -> Corpus {
        let mut file = (frames.len() as u32).to_be_bytes().to_vec();
        for frame in frames {
            file.extend_from_slice(&(frame.len() as u32).to_be_bytes());
            file.extend_from_slice(frame);
        }
        let path = crate::files::scratch(name);
        std::fs::write(&path, file).unwrap();
        let corpus = Corpus::read([path.to_str().unwrap()]).unwrap();
        std::fs::remove_file(path).unwrap();
        corpus
    }

    #[test]
    fn commits_alone_are_counted_and_each_proof_starts_anew() {
        let frames: &[&[u8]] = &[&[1], &[3, 3], &[3], &[2], &[9], &[4]];
        let mut work = Frames { peer: Rising::default(), corpus: corpus("counted", frames) };
        let counts = json!({ "frames": 6, "commits": 5, "accepted": 3, "refused": 2, "ops": 6 });
        assert_eq!(work.prove().unwrap().counts, counts);
        assert_eq!(work.prove().unwrap().counts, counts);
    }

    #[test]
    fn the_clock_is_a_day_behind_the_newest_frame() {
        let corpus = corpus("clock", &[&[1], &[3], &[2, 2], &[2]]);
        let peer = Rising::start(&[], day_after_newest::<Rising>(&corpus)).unwrap();
        let expected = humantime::parse_rfc3339("2026-11-04T10:00:00.500Z").unwrap();
        assert_eq!(peer.now, Some(expected));
    }
}
