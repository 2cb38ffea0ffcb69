//! How do we judge commits when measured? Through the same calls as anyone, one frame at a time or many
//! together, with a state that knows nobody before each pass.

use std::hint::black_box;

use wireproof::atproto::corpus;
use wireproof::verify::sync::Judge;

use super::Work;
use crate::corpora::Accounts;
use crate::corpora::judged::{self, Keys, Tally};
use crate::counts::Counts;
use crate::protocol::Loaded;

/// The variants by name, each with the checks that its measured path makes.
pub(super) fn variants() -> impl Iterator<Item = (String, &'static [&'static str])> {
    ["full", "full/batch"].into_iter().map(|name| (name.to_owned(), CHECKS))
}

/// Makes ready for `variant`; `None` if there is no such one.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, String> {
    let [frames, accounts] = files else { return Err("not frames and accounts".to_owned()) };
    let frames = corpus::read(frames).map_err(|error| error.to_string())?;
    let accounts: Accounts = serde_json::from_slice(accounts).map_err(|error| error.to_string())?;
    let at_once = match variant {
        "full" => 1,
        "full/batch" => BATCH,
        _ => return Ok(None),
    };
    Ok(Some(Box::new(Commits {
        now_micros: judged::now_micros(&frames),
        frames,
        keys: Keys::of(&accounts),
        at_once,
        judge: judged::judge(),
    })))
}

struct Commits<'f> {
    frames: Vec<&'f [u8]>,
    keys: Keys,
    now_micros: u64,
    /// How many frames are handed over together.
    at_once: usize,
    /// Kept over passes, with its memory and the keys that it has seen.
    judge: Judge,
}

impl Work for Commits<'_> {
    fn loaded(&self) -> Loaded {
        let bytes = self.frames.iter().map(|frame| frame.len() as u64).sum();
        Loaded { units: self.frames.len() as u64, bytes }
    }

    fn prove(&mut self) -> Counts {
        let mut tally = Tally::default();
        let mut state = judged::nobody();
        for batch in self.frames.chunks(self.at_once) {
            let Ok(all) = self.judge.judge_batch(batch, &self.keys, &mut state, self.now_micros);
            batch.iter().zip(&all).for_each(|(frame, judged)| tally.note(frame, judged));
        }
        tally.into()
    }

    fn pass(&mut self) {
        let mut state = judged::nobody();
        if self.at_once == 1 {
            for frame in &self.frames {
                let _ = black_box(self.judge.judge(frame, &self.keys, &mut state, self.now_micros));
            }
            return;
        }
        for batch in self.frames.chunks(self.at_once) {
            let _ =
                black_box(self.judge.judge_batch(batch, &self.keys, &mut state, self.now_micros));
        }
    }
}

/// Frames handed over together: what a relay has when it is behind.
const BATCH: usize = 256;

pub(super) const CHECKS: &[&str] = &[
    "cid-sha256",
    "key-order",
    "duplicate-keys",
    "minimal-heads",
    "utf8",
    "indefinite-lengths",
    "float-canonical",
    "only-tag-42",
    "link-shape",
    "trailing-bytes",
    "depth-bound",
    "low-s",
    "mst-order",
    "mst-layer",
    "mst-prefix",
    "mst-shape",
    "record-path",
    "event-fields",
    "op-records",
    "inversion",
    "chain",
    "clock",
];
