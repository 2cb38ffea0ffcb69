//! Sizes of Nostr events in the rows of the task `nostr-size`.

use crate::{Row, Sizes};

/// Whether a row of sizes is over real events.
pub fn is_real(row: &Row) -> bool {
    row.variant.ends_with(REAL)
}

/// A size of a row as a percentage of the same events as JSON; `None` if neither the row nor the other `rows` of its task
/// have the JSON size.
pub fn percent_of_json(row: &Row, rows: &[&Row], len: fn(&Sizes) -> u64) -> Option<f64> {
    let corpus = row.variant.find('@').map_or("", |at| &row.variant[at..]);
    let is_json = |it: &&&Row| it.variant.strip_prefix("json") == Some(corpus);
    let json = row.json_sizes.or_else(|| rows.iter().find(is_json)?.sizes)?;
    Some(100.0 * len(&row.sizes?) as f64 / len(&json).max(1) as f64)
}

/// The corpus of real events, in the name of a variant.
pub const REAL: &str = "@real";
