//! Which formats are small and which are fast? Each codec of a format as a point.

use super::{Placed, View};
use crate::charts::scatter;
use crate::html::{Tag, tag};
use crate::table;

/// The chart and the same as a table; nothing unless a format has both a size and a speed.
pub(super) fn of(view: &View<'_>, sized: &[Placed<'_>]) -> Option<Tag> {
    if sized.is_empty() {
        return None;
    }
    let points = scatter::points(view.newest);
    (!points.is_empty()).then(|| {
        let rows = points.iter().map(|point| {
            [
                point.format.to_owned(),
                point.peer.to_owned(),
                format!("{:.1}", point.bytes),
                bench::terminal::thousands(point.per_s),
            ]
        });
        let headings = ["format", "peer", "bytes an event", "events/s"];
        let table = table::plain("Size and speed of reading, of each codec", headings, 2, rows);
        let chart = tag("div")
            .class("frame chart")
            .attr("tabindex", 0)
            .attr("role", "region")
            .attr("aria-label", "Chart of size against speed")
            .with(scatter::svg(&points));
        tag("div")
            .class("block")
            .with(tag("h3").text("Size against speed"))
            .with(chart)
            .with(tag("details").with(tag("summary").text("The same as a table")).with(table))
    })
}
