//! The limits of a judgement, and the checks that a caller chooses to relax.

use atproto::event::{Options, Values};
use atproto::syntax::Tid;

/// The limits of a judgement and its leniencies. The default is strict: every leniency is off, and named for
/// the data that it accepts without proof. Checks that run either way are stricter on demand:
/// [`strict_records`](Self::strict_records).
///
/// ```
/// use wireproof::verify::sync::Policy;
///
/// let mut policy = Policy::default();
/// policy.max_record_bytes = 1 << 20;
/// policy.accept_missing_prev_data = true;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// How far ahead of the clock a revision may be, in microseconds.
    pub future_window_micros: u64,
    /// Maximum frame size in bytes.
    pub max_frame_bytes: usize,
    /// Maximum size of the CAR slice of a `#commit` in bytes.
    pub max_blocks_bytes: usize,
    /// Maximum size of the CAR slice of a `#sync` in bytes. The lexicon says 10,000, relays pass on
    /// more; values above `max_blocks_bytes` have no effect.
    pub max_sync_blocks_bytes: usize,
    /// Maximum number of operations in a commit.
    pub max_ops: usize,
    /// Maximum record size in bytes.
    pub max_record_bytes: usize,
    /// Whether the blocks of events become values, for callers that read the records.
    pub values: Values,
    /// Rejects an event with an [invalid record](crate::InvalidRecord), which otherwise is accepted and
    /// delivered with it.
    pub strict_records: bool,
    /// Accepts a `#commit` without `prevData`, from before sync 1.1. The operations are still looked
    /// up in the tree, but that there were no others is not proved.
    pub accept_missing_prev_data: bool,
    /// Accepts updates and deletes that do not name the replaced records. The operations are still looked
    /// up in the tree, but that there were no others is not proved.
    pub accept_ops_without_prev: bool,
    /// Accepts a `#commit` that continues the stored state although undoing its operations did not
    /// lead back to `prevData`. The operations are still looked up in the tree, but that there were no
    /// others is not proved.
    pub accept_failed_inversion: bool,
    /// Accepts the operations of a signed `#commit` without the tree: neither that the tree holds their outcomes nor
    /// that there were no others is proved, so whoever sends the event may have invented, changed or left out
    /// operations. A gap is detected as far as `since` and `prevData`, which are not signed, admit it. No node of the
    /// tree is read.
    pub accept_unproved_operations: bool,
    /// Accepts as continuous a `#commit` whose `since` is not the stored revision, as long as
    /// `prevData` is the stored tree.
    pub accept_since_mismatch: bool,
    /// Accepts a delete at a path to which the nodes of the CAR slice do not lead: that the record is gone is
    /// not proved. Slices from before sync 1.1 have only the nodes that changed.
    pub accept_unproved_deletes: bool,
    /// Accepts a `#commit` that says `tooBig`: its omissions are not known.
    pub accept_too_big: bool,
    /// Accepts a `#commit` that says `rebase`.
    pub accept_rebase: bool,
    /// Accepts an event whose `time` is not a datetime.
    pub accept_any_time: bool,
}

impl Default for Policy {
    /// Revisions up to five minutes ahead; frames up to 5,000,000 bytes, CAR slices of either kind up
    /// to 2,000,000, 200 operations, records up to 1,000,000; values built; no leniency.
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
            strict_records: false,
            accept_missing_prev_data: false,
            accept_ops_without_prev: false,
            accept_failed_inversion: false,
            accept_unproved_operations: false,
            accept_since_mismatch: false,
            accept_unproved_deletes: false,
            accept_too_big: false,
            accept_rebase: false,
            accept_any_time: false,
        }
    }
}

impl Policy {
    /// The policy for events from before sync 1.1, which name neither `prevData` nor the replaced record of an
    /// operation, have only the changed nodes of the tree, and may be marked `tooBig` or `rebase`. All else is
    /// strict; a commit's omissions are not proved.
    ///
    /// ```
    /// use wireproof::verify::sync::Policy;
    /// let policy = Policy::before_sync_1_1();
    /// assert!(policy.accept_missing_prev_data && !policy.accept_failed_inversion);
    /// ```
    pub fn before_sync_1_1() -> Self {
        Self {
            accept_missing_prev_data: true,
            accept_ops_without_prev: true,
            accept_unproved_deletes: true,
            accept_too_big: true,
            accept_rebase: true,
            ..Self::default()
        }
    }

    /// The policy that proves the signature of a commit and the hashes of its records, and nothing of its operations:
    /// [`accept_unproved_operations`](Self::accept_unproved_operations), with the leniencies that only their proof
    /// needs.
    ///
    /// ```
    /// use wireproof::verify::sync::Policy;
    /// let policy = Policy::signature_only();
    /// assert!(policy.accept_unproved_operations && policy.accept_missing_prev_data);
    /// ```
    pub fn signature_only() -> Self {
        Self {
            accept_unproved_operations: true,
            accept_missing_prev_data: true,
            accept_ops_without_prev: true,
            ..Self::default()
        }
    }

    /// The options of the decoder under this policy. Hashes are always checked.
    pub(super) fn decoding(&self) -> Options {
        let mut options = Options::default();
        options.values = self.values;
        options.max_frame_bytes = self.max_frame_bytes;
        options.max_blocks_bytes = self.max_blocks_bytes;
        options.max_ops = self.max_ops;
        options.max_record_bytes = self.max_record_bytes;
        options
    }
}

/// The time, and how far ahead of it a revision may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutureWindow {
    pub(super) now_micros: u64,
    pub(super) window_micros: u64,
}

impl FutureWindow {
    /// The window of `policy` at `now_micros` since 1970.
    pub fn new(now_micros: u64, policy: &Policy) -> Self {
        Self { now_micros, window_micros: policy.future_window_micros }
    }

    /// Whether `rev` is in the past, or ahead of the time by at most the window.
    pub fn admits(self, rev: Tid) -> bool {
        rev.micros() <= self.now_micros.saturating_add(self.window_micros)
    }
}
