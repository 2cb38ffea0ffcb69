//! How do rows on Nostr events read? In nanoseconds an event, which is how people who choose a format
//! count.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

use super::{Baseline, baseline, paint, table, thousands};
use crate::own::PEER;
use crate::{Rate, Row};

/// Whether a task's rows are told here.
pub(super) fn is_task(task: &str) -> bool {
    task.starts_with("nostr-") && task != "nostr-size"
}

/// The table of a task: how long an event takes, how long in the slowest chunks, how often memory is asked
/// for.
pub(super) fn table(task: &str, rows: &[&Row], chosen: Option<&Baseline>) -> String {
    let checks = table::checks_of(task);
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "peer",
        "variant",
        "ns/event",
        "min – max",
        "p99",
        "allocations",
        "ratio",
        "checks",
        "parity",
    ]);
    let (mut styles, mut was_many) = (Vec::new(), false);
    for group in table::groups(rows) {
        if table.row_count() > 0 && (group.len() > 1 || was_many) {
            table.add_row([""; COLUMNS]);
            styles.push(paint::PLAIN);
        }
        was_many = group.len() > 1;
        let against = baseline::of_group(group[0], rows, chosen).and_then(Row::median);
        for (at, row) in group.iter().enumerate() {
            table.add_row(cells(row, against, &checks));
            let is_fastest = at == 0 && row.is_ranked();
            styles.push(if is_fastest { paint::FASTEST } else { paint::PLAIN });
        }
    }
    for column in 2..=6 {
        table.column_mut(column).expect("nine columns").set_cell_alignment(CellAlignment::Right);
    }
    let has_chunks = rows.iter().any(|row| row.chunks.is_some());
    let has_allocations = rows.iter().any(|row| row.allocations.is_some());
    for (column, is_there) in [(4, has_chunks), (5, has_allocations), (7, !checks.is_empty())] {
        if !is_there {
            let column = table.column_mut(column).expect("nine columns");
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    paint::table(&table.trim_fmt(), &styles)
}

fn cells(row: &Row, against: Option<f64>, checks: &table::Checks) -> [String; COLUMNS] {
    let none = || "–".to_owned();
    let rate = |text: &dyn Fn(Rate) -> String| row.per_s.map_or_else(none, text);
    let ratio = row.median().zip(against).filter(|_| row.is_ranked());
    [
        row.peer.clone(),
        row.variant.clone(),
        rate(&|rate| nanoseconds(rate.median)),
        rate(&|rate| format!("{} – {}", nanoseconds(rate.max), nanoseconds(rate.min))),
        row.chunks.map_or_else(none, |chunks| thousands(chunks.p99_ns)),
        row.allocations.map_or_else(none, |count| format!("{count:.1}")),
        ratio.map_or_else(none, |(speed, against)| format!("{:.2}", speed / against)),
        table::check_codes(row, checks),
        table::parity(row),
    ]
}

/// How long one of so many a second takes.
fn nanoseconds(per_s: f64) -> String {
    let ns = 1e9 / per_s;
    if ns < 100.0 { format!("{ns:.1}") } else { thousands(ns) }
}

/// Which format is read or written soonest, and how our codecs stand to the fastest others of the same
/// format.
pub(super) fn sentences(rows: &[&Row]) -> Vec<String> {
    let ranked = || rows.iter().filter(|row| row.is_ranked());
    let Some(first) =
        ranked().max_by(|a, b| a.median().unwrap_or(0.0).total_cmp(&b.median().unwrap_or(0.0)))
    else {
        return Vec::new();
    };
    let soonest = first.median().map_or_else(String::new, nanoseconds);
    let mut sentences = vec![format!(
        "Of all rows, the fastest is {} ({}) with {soonest} ns an event.",
        first.peer, first.variant
    )];
    let ratios: Vec<String> = table::groups(rows).filter_map(ratio_in_group).collect();
    if !ratios.is_empty() {
        let ratios = ratios.join(", ");
        sentences.push(format!("{PEER} against the fastest other of the same format: {ratios}."));
    }
    sentences
}

/// How many times as fast our fastest row of a group is as that of anybody else.
fn ratio_in_group(group: &[&Row]) -> Option<String> {
    let fastest = |is_own: bool| {
        let mut rows = group.iter().filter(|row| row.is_ranked() && (row.peer == PEER) == is_own);
        rows.next().copied()
    };
    let (own, other) = (fastest(true)?, fastest(false)?);
    let times = own.median()? / other.median()?;
    Some(format!("{} {times:.2} ({})", own.variant, other.peer))
}

const COLUMNS: usize = 9;
/// What the ratio of a row is against.
pub(super) const RATIO: &str = "against the fastest other implementation of the same format, or of \
the same in JSON where there is none";
