//! Verdicts on labels, in batches.
//!
//! ```text
//! bytes ── canonical, signed, version 1 ── syntax of fields ── key of the source ── signature ── in force, negation, expired
//! ```
//!
//! [`LabelJudge`] judges labels against the keys of their sources; [`LabelSet`] holds the labels that are in force. Two labels are
//! about the same if source, subject and value are the same. Of these the one that was created last counts.
//!
//! A service may send labels of others. Such a label is verified if its own source has signed it; if it is not signed by
//! that source, it is refused with `label/source`.
//!
//! Source: the label specification, version 1. Its rules for the text of values are recommendations, and not checked.

mod judge;
mod keys;
mod rejection;
mod set;
#[cfg(test)]
mod tests;

pub use judge::{JudgedLabel, LabelJudge, LabelOutcome, ReceivedLabel, Standing};
pub use keys::{LabelKeys, SourceKeys, label_key};
pub use rejection::{LabelRejection, message_code};
pub use set::{LabelChange, LabelPlace, LabelSet, SetFull};
