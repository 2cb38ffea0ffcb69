//! What do the scripts know of each row?

use std::collections::BTreeMap;

use bench::terminal::speed;
use bench::{Chunks, Counts, Rate, Row};
use serde::Serialize;

use super::{View, repeat};
use crate::scale;

/// All that the scripts read.
#[derive(Debug, Serialize)]
pub(super) struct Model<'r> {
    rows: Vec<RowModel<'r>>,
}

/// A row, by its place in the results.
#[derive(Debug, Serialize)]
struct RowModel<'r> {
    task: &'r str,
    group: String,
    peer: &'r str,
    variant: &'r str,
    language: &'r str,
    version: &'r str,
    unit: &'r str,
    checks: &'r [String],
    /// Each pass as it is told: units a second, or milliseconds.
    passes: Vec<f64>,
    /// What `passes` are.
    measure: String,
    rate: Option<Rate>,
    ranked: bool,
    is_batch: bool,
    threads: Option<u32>,
    counts: &'r Counts,
    stages_ns: &'r BTreeMap<String, Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<Chunks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocations: Option<f64>,
    note: Option<&'r str>,
    command: String,
}

pub(super) fn of<'r>(view: &View<'r>) -> Model<'r> {
    Model { rows: view.newest.rows.iter().map(|row| of_row(view, row)).collect() }
}

fn of_row<'r>(view: &View<'r>, row: &'r Row) -> RowModel<'r> {
    RowModel {
        task: &row.task,
        group: row.group(),
        peer: &row.peer,
        variant: &row.variant,
        language: &row.language,
        version: &row.version,
        unit: &row.unit,
        checks: &row.checks,
        passes: scale::passes(row),
        measure: speed::heading(&[row]),
        rate: row.per_s,
        ranked: row.is_ranked(),
        is_batch: is_batch(row),
        threads: threads(row),
        counts: &row.counts,
        stages_ns: &row.stages_ns,
        chunks: row.chunks,
        allocations: row.allocations,
        note: row.note.as_deref(),
        command: repeat::of_row(view, row),
    }
}

/// Whether the row gets many units at a time.
pub(super) fn is_batch(row: &Row) -> bool {
    let (way, _) = row.variant.split_once('@').unwrap_or((&row.variant, ""));
    way.split('/').any(|part| part.starts_with("batch"))
}

/// How many threads the row's name says that it uses; all others use one core.
pub(super) fn threads(row: &Row) -> Option<u32> {
    let parts = row.variant.split(['/', '@']);
    parts.filter_map(|part| part.strip_prefix("threads-")?.parse().ok()).next()
}
