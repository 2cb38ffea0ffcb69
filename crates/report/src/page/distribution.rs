//! How evenly did it go? Parts of passes as a table, and a place for the chart of all passes.

use bench::{Chunks, Row};

use super::{Placed, anchor};
use crate::html::{Tag, tag};
use crate::table;

/// Nanoseconds a unit over small parts of a pass; nothing if no row tells them.
pub(super) fn evenness(rows: &[Placed<'_>]) -> Option<Tag> {
    let told: Vec<(&Row, Chunks)> =
        rows.iter().filter_map(|(_, row)| Some((*row, row.chunks?))).collect();
    let of = told.first()?.1.events;
    let rows = told.iter().map(|(row, chunks)| {
        let Chunks { p50_ns, p95_ns, p99_ns, max_ns, .. } = *chunks;
        let [a, b, c, d] = [p50_ns, p95_ns, p99_ns, max_ns].map(bench::terminal::thousands);
        [row.peer.clone(), row.variant.clone(), a, b, c, d]
    });
    let caption = format!("Nanoseconds an event, over parts of {of} events");
    let table = table::plain(
        &caption,
        ["peer", "variant", "median", "95 of 100", "99 of 100", "slowest"],
        2,
        rows,
    );
    let summary = tag("summary").text("How even a pass is");
    Some(tag("details").class("block").with(summary).with(table))
}

/// Where a script draws how the passes of each row lie; nothing of rows with a single pass.
pub(super) fn place(task: &str, rows: &[Placed<'_>]) -> Option<Tag> {
    rows.iter().any(|(_, row)| row.passes_ns.len() > 1).then(|| {
        let summary = tag("summary").text("How the passes of each row lie");
        let text = "Each pass against the median of its row: a box holds the middle half, a point is a pass. \
                    The same numbers are in the table above as slowest and fastest.";
        tag("details")
            .class("block distribution")
            .attr("data-task", task)
            .attr("id", format!("{}-passes", anchor(task)))
            .with(summary)
            .with(tag("p").text(text))
            .with(tag("div").class("frame plot").attr("tabindex", 0).attr("role", "region")
                .attr("aria-label", "Chart of passes"))
    })
}
