//! What is asked of an event, and what a caller chooses not to ask.

use atproto::event::{Options, Values};

/// The bounds of a judgement and its leniencies. The default is strict: every leniency is off, and
/// each is named for what it takes without proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How far ahead of the clock a revision may be, in microseconds.
    pub future_window_micros: u64,
    /// The longest frame, in bytes.
    pub max_frame_bytes: usize,
    /// The longest CAR slice of a `#commit`, in bytes.
    pub max_blocks_bytes: usize,
    /// The longest CAR slice of a `#sync`, in bytes. The lexicon says 10,000, relays pass on more;
    /// beyond `max_blocks_bytes` none is read.
    pub max_sync_blocks_bytes: usize,
    /// The most operations in a commit.
    pub max_ops: usize,
    /// The longest record, in bytes.
    pub max_record_bytes: usize,
    /// Whether the blocks of events become values, for callers that read the records.
    pub values: Values,
    /// Takes a `#commit` without `prevData`, from before sync 1.1. The operations are still looked up
    /// in the tree, but that there were no others is not proved.
    pub accept_missing_prev_data: bool,
    /// Takes updates and deletes that do not say what they replaced. The operations are still looked
    /// up in the tree, but that there were no others is not proved.
    pub accept_ops_without_prev: bool,
    /// Takes a `#commit` that chains onto what is stored although undoing its operations did not lead
    /// back to `prevData`. The operations are still looked up in the tree, but that there were no
    /// others is not proved.
    pub accept_failed_inversion: bool,
    /// Takes a `#commit` whose `since` is not the stored revision as chained, as long as `prevData`
    /// is the stored tree.
    pub accept_since_mismatch: bool,
    /// Takes a `#commit` that says `tooBig`: what it left out is not known.
    pub accept_too_big: bool,
    /// Takes a `#commit` that says `rebase`.
    pub accept_rebase: bool,
    /// Takes an event whose `time` is no datetime.
    pub accept_any_time: bool,
}

impl Default for Policy {
    /// Five minutes; frame 5,000,000 bytes, CAR slice 2,000,000 for either kind, 200 operations,
    /// record 1,000,000; values built; no leniency.
    fn default() -> Self {
        let Options {
            max_frame_bytes, max_blocks_bytes, max_ops, max_record_bytes, values, ..
        } = Options::default();
        Self {
            future_window_micros: 5 * 60 * 1_000_000,
            max_frame_bytes,
            max_blocks_bytes,
            max_sync_blocks_bytes: max_blocks_bytes,
            max_ops,
            max_record_bytes,
            values,
            accept_missing_prev_data: false,
            accept_ops_without_prev: false,
            accept_failed_inversion: false,
            accept_since_mismatch: false,
            accept_too_big: false,
            accept_rebase: false,
            accept_any_time: false,
        }
    }
}

impl Policy {
    /// How frames are read under this policy. Hashes are always checked.
    pub(super) fn decoding(&self) -> Options {
        Options {
            values: self.values,
            max_frame_bytes: self.max_frame_bytes,
            max_blocks_bytes: self.max_blocks_bytes,
            max_ops: self.max_ops,
            max_record_bytes: self.max_record_bytes,
            ..Options::default()
        }
    }
}
