//! The sizes of events in each format, and sizes against speeds.

use bench::{Row, Sizes};

use super::{Placed, View};
use crate::charts::scatter;
use crate::html::{
    Html, Tag, body, cell, framed, head, heading, number, number_heading, plain_table, row,
    row_heading, tag,
};
use crate::picture::{self, per_unit as each};

/// A table of sizes, the smallest first in each corpus; nothing if no row has sizes.
pub(super) fn of(rows: &[Placed<'_>]) -> Option<Tag> {
    let mut rows: Vec<(&Row, Sizes)> =
        rows.iter().filter_map(|(_, row)| Some((*row, row.sizes?))).collect();
    rows.sort_by(|(a, a_sizes), (b, b_sizes)| {
        (corpus(a), a_sizes.raw, &a.variant).cmp(&(corpus(b), b_sizes.raw, &b.variant))
    });
    (!rows.is_empty()).then(|| {
        let numbers = ["raw", "gzip", "zstd", "zstd, framed"].map(number_heading);
        let headings = [
            heading("format"),
            heading("peer").class("by"),
            heading("bytes an event").class("drawn"),
        ];
        let headings = head(headings.into_iter().chain(numbers));
        let bodies = rows.chunk_by(|(a, _), (b, _)| corpus(a) == corpus(b)).map(of_corpus);
        framed(CAPTION, "sizes", bodies.fold(Html::from(headings), Html::and))
    })
}

/// The rows of one corpus, after its name if it has one, with a separate scale of the bars.
fn of_corpus(rows: &[(&Row, Sizes)]) -> Tag {
    let greatest =
        rows.iter().map(|(row, sizes)| each(row, sizes.raw)).fold(f64::MIN_POSITIVE, f64::max);
    let name = rows.first().and_then(|(row, _)| corpus(row));
    let name = name.map(|name| {
        let heading =
            tag("th").attr("colspan", 7).attr("scope", "rowgroup").attr("role", "rowheader");
        row().class("group").with(heading.text(name))
    });
    body(name.into_iter().chain(rows.iter().map(|(row, sizes)| line(row, *sizes, greatest))))
}

/// The part of the corpus, after the format.
fn corpus(row: &Row) -> Option<&str> {
    row.variant.split_once('@').map(|(_, corpus)| corpus)
}

fn line(of: &Row, sizes: Sizes, greatest: f64) -> Tag {
    let Sizes { raw, gzip6, zstd3, framed_zstd3 } = sizes;
    let format = of.variant.split_once('@').map_or(&*of.variant, |(format, _)| format);
    let words = format!("{:.1} bytes an event, {:.1} under zstd", each(of, raw), each(of, zstd3));
    let bar = |class, size| {
        tag("rect")
            .class(class)
            .attr("y", 7)
            .attr("height", 10)
            .attr("rx", 2)
            .attr("width", picture::percent(each(of, size), greatest))
    };
    let drawn =
        picture::picture("speed", &words).with(bar("bar faint", raw)).with(bar("bar", zstd3));
    let numbers =
        [raw, gzip6, zstd3, framed_zstd3].map(|size| number(format!("{:.1}", each(of, size))));
    row()
        .with(row_heading().class("variant").text(format))
        .with(cell().class("by").text(&of.peer))
        .with(cell().class("drawn").with(drawn))
        .with_all(numbers)
}

/// The chart and the same as a table; nothing unless a format has both a size and a speed.
pub(super) fn against_speed(view: &View<'_>, sized: &[Placed<'_>]) -> Option<Tag> {
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
        let table = plain_table("Size and speed of reading, of each codec", headings, 2, rows);
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

const CAPTION: &str = "Bytes an event, bare and compressed; the dark part of a bar is what zstd leaves, and each part of \
     the corpus has a scale of its own";
