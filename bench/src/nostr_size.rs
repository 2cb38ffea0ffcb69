//! How long are events in each format? No time is taken: one answer is as good as many.

use std::collections::BTreeMap;

use bumpalo::Bump;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{Event, Limits};

use crate::corpora::nostr;
use crate::own::PEER;
use crate::{BenchError, Counts, Parity, Plan, Row, Task};

/// A row for each format, over all events and over those of each kind that the task `nostr-by-kind` has;
/// none if the plan leaves the task or us out.
pub(crate) fn rows(plan: &Plan, file: &[u8], by_kind: &[u8]) -> Vec<Row> {
    let arena = Bump::new();
    let mut rows = Vec::new();
    let of = |file, suffix| {};
    rows
}
