//! The sizes of events by format, and sizes against speeds.

use std::collections::BTreeMap;

use results::{Results, Row, Sizes, is_real, percent_of_json};

use super::View;
use super::task::{needs_scripts, notes};
use crate::charts::{self, scatter};
use crate::html::{
    Html, Tag, body, cell, framed, head, heading, number, number_heading, plain_table, row,
    row_heading, tag,
};
use crate::picture::{self, per_unit as each};

/// Bytes per event by format, over all simulated or all real events.
pub(super) fn by_format(results: &Results, real: bool) -> BTreeMap<&str, f64> {
    let rows = results.rows.iter().filter(|row| part(row).is_none() && is_real(row) == real);
    rows.filter_map(|row| Some((format(row), each(row, row.sizes?.raw)))).collect()
}

/// A table of sizes over the whole corpus, the smallest format first and real events below the others, the events that
/// a format cannot hold, and the place of the table of the corpus's parts; nothing if no row has sizes.
pub(super) fn of(rows: &[&Row]) -> Option<Html> {
    let of_all: Vec<&Row> = rows.iter().copied().filter(|row| part(row).is_none()).collect();
    let whole = Html::from(table(&of_all)?).and(notes(&of_all));
    let parts = rows.iter().any(|row| part(row).is_some()).then(|| {
        let summary = tag("summary").text("Sizes of each part of the corpus");
        let place = tag("details").class("block").attr("data-sizes", "parts");
        place.with(summary).with(needs_scripts())
    });
    Some(whole.and(parts))
}

fn table(all: &[&Row]) -> Option<Tag> {
    let mut rows: Vec<(&Row, Sizes)> =
        all.iter().filter_map(|row| Some((*row, row.sizes?))).collect();
    let mut of_format = BTreeMap::new();
    for (row, sizes) in rows.iter().filter(|(row, _)| !is_real(row)) {
        of_format.entry(format(row)).or_insert(each(row, sizes.raw));
    }
    let raw = |row: &Row| of_format.get(format(row)).copied().unwrap_or(f64::MAX);
    rows.sort_by(|(a, _), (b, _)| {
        raw(a).total_cmp(&raw(b)).then_with(|| a.variant.cmp(&b.variant))
    });
    (!rows.is_empty()).then(|| {
        let numbers = ["raw", "of JSON", "gzip", "zstd", "zstd, framed", "of JSON"];
        let numbers = numbers.map(number_heading);
        let headings = [
            heading("format"),
            heading("peer").class("by"),
            heading("bytes per event").class("drawn"),
        ];
        let headings = head(headings.into_iter().chain(numbers));
        let greatest = rows.iter().map(|(row, sizes)| each(row, sizes.raw));
        let greatest = greatest.fold(f64::MIN_POSITIVE, f64::max);
        let lines = body(rows.iter().map(|(row, sizes)| line(row, *sizes, greatest, all)));
        framed(CAPTION, "sizes", Html::from(headings).and(lines))
    })
}

/// The part of the corpus, after the format.
pub(super) fn part(row: &Row) -> Option<&str> {
    row.variant.split_once('@').map(|(_, part)| part).filter(|_| !is_real(row))
}

fn format(row: &Row) -> &str {
    row.variant.split('@').next().unwrap_or_default()
}

fn line(of: &Row, sizes: Sizes, greatest: f64, rows: &[&Row]) -> Tag {
    let Sizes { raw, gzip6, zstd3, framed_zstd3 } = sizes;
    let words = format!("{:.1} bytes per event, {:.1} under zstd", each(of, raw), each(of, zstd3));
    let bar = |class, size| {
        tag("rect").class(class).attr("width", picture::percent(each(of, size), greatest))
    };
    let drawn = picture::picture(&words).with(bar("bar faint", raw)).with(bar("bar", zstd3));
    let size = |size| format!("{:.1}", each(of, size));
    let percent = |len| {
        let percent = percent_of_json(of, rows, len);
        percent.map_or_else(|| "–".to_owned(), |percent| format!("{percent:.1} %"))
    };
    let numbers = [
        size(raw),
        percent(|sizes| sizes.raw),
        size(gzip6),
        size(zstd3),
        size(framed_zstd3),
        percent(|sizes| sizes.framed_zstd3),
    ];
    row()
        .with(row_heading().class("variant").text(&of.variant))
        .with(cell().class("by").text(&of.peer))
        .with(cell().class("drawn").with(drawn))
        .with_all(numbers.map(number))
}

/// The chart and the same as a table; nothing unless a format has both a size and a speed.
pub(super) fn against_speed(view: &View<'_>, sized: &[&Row]) -> Option<Tag> {
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
                results::terminal::thousands(point.per_s),
            ]
        });
        let headings = ["format", "peer", "bytes per event", "events/s"];
        let table = plain_table("Size and speed of reading, of each codec", headings, 2, rows);
        let chart = tag("div")
            .class("frame chart")
            .attr("tabindex", 0)
            .attr("role", "region")
            .attr("aria-label", "Chart of size against speed")
            .with(scatter::svg(&points, &charts::source(view.newest)));
        tag("details")
            .class("block")
            .with(tag("summary").text("Size against speed"))
            .with(chart)
            .with(tag("details").with(tag("summary").text("The same as a table")).with(table))
    })
}

const CAPTION: &str = "Bytes per event, bare and compressed, and as a part of the same events in JSON; @real: real events; the dark part \
     of a bar is the size under zstd";
