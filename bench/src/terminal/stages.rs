//! Where does a row's time go, of a task that has stages?

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::speed::milliseconds;
use super::{nostr, paint};
use crate::Row;

/// A table of each row's stages, at the median in milliseconds, of groups of Nostr events in microseconds;
/// nothing if no row has any.
pub(super) fn of_task(rows: &[&Row]) -> String {
    let staged: Vec<&&Row> = rows.iter().filter(|row| !row.stages_ns.is_empty()).collect();
    if staged.is_empty() {
        return String::new();
    }
    let names = names(&staged);
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let is_short = nostr::is_task(&staged[0].task);
    let unit = if is_short { "µs" } else { "ms" };
    let headings = names.iter().map(|name| format!("{name} {unit}"));
    let first = ["peer", "variant"].map(str::to_owned);
    table.set_header(first.into_iter().chain(headings));
    for row in staged {
        let stages = names.iter().map(|name| match row.stages_ns.get(*name) {
            Some(passes_ns) if is_short => format!("{:.1}", median(passes_ns) / 1e3),
            Some(passes_ns) => milliseconds(median(passes_ns)),
            None => "–".to_owned(),
        });
        table.add_row([row.peer.clone(), row.variant.clone()].into_iter().chain(stages));
    }
    for column in 2..2 + names.len() {
        let column = table.column_mut(column).expect("one for each stage");
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{}\n\n{LEGEND}", paint::table(&table.trim_fmt(), &[]))
}

/// The stages that some row has: the known ones in the order of the work, then others.
fn names<'r>(rows: &[&&'r Row]) -> Vec<&'r str> {
    let mut names: Vec<&str> =
        rows.iter().flat_map(|row| row.stages_ns.keys()).map(String::as_str).collect();
    names.sort_by_key(|name| super::place(name, &STAGES));
    names.dedup();
    names
}

/// The middle one; between the middle two of an even number.
fn median(passes_ns: &[u64]) -> f64 {
    let mut sorted = passes_ns.to_vec();
    sorted.sort();
    let [below, above] = [(sorted.len() - 1) / 2, sorted.len() / 2].map(|at| sorted[at] as f64);
    f64::midpoint(below, above)
}

const LEGEND: &str =
    "stages: median of each; one that a peer cannot tell apart is in the one before it\n";

const STAGES: [&str; 25] = [
    "parse",
    "signature",
    "walk",
    "rebuild",
    // Batches.
    "1",
    "10",
    "100",
    "1000",
    // Kinds.
    "kind-0",
    "kind-1",
    "kind-3",
    "kind-4",
    "kind-7",
    "kind-10002",
    "kind-30023",
    // Sizes and tags.
    "tiny",
    "small",
    "medium",
    "large",
    "huge",
    "none",
    "few",
    "moderate",
    "many",
    "massive",
];
