//! A store of labels that keeps the cursors of their services itself.

use crypto::CompressedKey;
use program::failure::Failure;

use crate::labeler::Labeler;

/// A label that was followed, with its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowedLabel<'a> {
    /// The number of its message.
    pub seq: u64,
    /// Its index in the message.
    pub index: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The stable code of the verdict.
    pub code: &'static str,
    /// The key that signed it, if it is verified.
    pub key: Option<CompressedKey>,
    /// The time of the verdict, in microseconds since 1970.
    pub judged_micros: i64,
}

/// Stores labels, and the cursors after them. Its methods may wait: they are called on a thread of their own.
pub trait LabelStore: Send {
    /// The number of the last message of a labeler whose labels are stored; `None` if there is none.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn cursor(&mut self, labeler: &Labeler) -> Result<Option<u64>, Failure>;

    /// Takes the labels of whole messages of a labeler, of which the last one has the number `up_to`. They may be stored later, in
    /// this order. Once a second it is called without a label too.
    ///
    /// # Errors
    /// If they can never be stored: then the run ends.
    fn take(
        &mut self,
        labeler: &Labeler,
        labels: &[FollowedLabel<'_>],
        up_to: Option<u64>,
    ) -> Result<(), Failure>;

    /// Stores all labels that were taken.
    ///
    /// # Errors
    /// If they cannot be stored.
    fn finish(&mut self) -> Result<(), Failure>;
}
