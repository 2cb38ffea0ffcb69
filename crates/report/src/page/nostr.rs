//! The tasks of Nostr, folded into one section: a table of formats, and every task behind a heading to open.

use std::collections::BTreeMap;

use results::terminal::speed;
use results::{Results, Row};

use super::{View, anchor, sizes, task, title};
use crate::html::{
    Html, Tag, body, cell, framed, head, heading, number, number_heading, row, row_heading, tag,
};
use crate::picture;
use crate::standing::{self, Standing};

/// The section of all these tasks; nothing without one.
pub(super) fn section(view: &View<'_>, tasks: &[(&str, Vec<&Row>)]) -> Option<Tag> {
    let folded = tasks.iter().map(|(name, rows)| {
        let summary = tag("summary").text(format!("{}: {}", title(name), amount(rows.len())));
        tag("details")
            .class("task")
            .attr("id", anchor(name))
            .with(summary)
            .with(task::content(view, name, rows))
    });
    (!tasks.is_empty()).then(|| {
        tag("section")
            .attr("id", "nostr")
            .attr("aria-labelledby", "nostr-title")
            .with(tag("h2").attr("id", "nostr-title").text("Nostr events"))
            .with(tag("p").class("lead").text(LEAD))
            .with(formats(view.newest))
            .with_all(folded)
    })
}

fn amount(rows: usize) -> String {
    if rows == 1 { "one row".to_owned() } else { format!("{rows} rows") }
}

/// A line per format: its size, and for every work our speed and its ratio to the fastest other codec.
fn formats(results: &Results) -> Option<Tag> {
    let mut lines: BTreeMap<&str, [Option<&Row>; WORK.len()]> = BTreeMap::new();
    for (at, (task, _)) in WORK.into_iter().enumerate() {
        let ours = standing::rows_of(results, task).iter();
        let ours = ours.filter(|row| row.peer == results::PEER && standing::represents(row));
        for row in ours.filter(|row| !row.variant.contains(['@', '/'])) {
            lines.entry(&row.variant).or_default()[at] = Some(row);
        }
    }
    let [sizes, real] = [false, true].map(|real| sizes::by_format(results, real));
    let has_any = !lines.is_empty();
    let lines = lines.into_iter().map(|(format, ours)| {
        let size = |sizes: &BTreeMap<&str, f64>| {
            number(sizes.get(format).map_or("–".to_owned(), |bytes| format!("{bytes:.1}")))
        };
        let cells = ours.into_iter().flat_map(|row| speed_and_ratio(results, row));
        row()
            .with(row_heading().class("variant").text(format))
            .with(size(&sizes))
            .with(size(&real))
            .with_all(cells)
    });
    let headings =
        [heading("format"), number_heading("bytes"), number_heading("bytes, real")].into_iter();
    let works = WORK.into_iter().flat_map(|(_, name)| [number_heading(name), heading("ratio")]);
    let table = Html::from(head(headings.chain(works))).and(body(lines));
    has_any.then(|| framed(CAPTION, "plain formats", table))
}

fn speed_and_ratio(results: &Results, ours: Option<&Row>) -> [Tag; 2] {
    let Some(ours) = ours else { return ["–", "–"].map(|text| cell().text(text)) };
    let speed = ours.median().map_or(String::new(), |median| speed::number(&ours.unit, median));
    let standing = Standing::of(standing::rows_of(results, &ours.task), &ours.variant);
    let other = standing.map_or("–".to_owned(), |standing| {
        picture::ratio_to(ours, standing.peer).unwrap_or_else(|| "–".to_owned())
    });
    [number(speed), cell().class("other").text(other)]
}

const WORK: [(&str, &str); 3] = [
    ("nostr-serialize", "write/s"),
    ("nostr-deserialize", "read/s"),
    ("nostr-validated", "read and verify/s"),
];

const LEAD: &str = "The same events in every format: sizes, and the speeds of their codecs.";
const CAPTION: &str = "Each format: bytes per simulated and per real event, our events per second one at a time, and their ratio to the \
     fastest other codec of the format";
