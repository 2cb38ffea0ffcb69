//! The stages of a whole repository, with a stacked bar in every row.

use results::Row;

use crate::html::{
    Html, Tag, body, cell, framed, head, heading, number, number_heading, row, row_heading, tag,
};
use crate::picture::{self, STAGES, stage_names, stage_times};

/// A table of stages with a stacked bar in every row; nothing if no row has stages.
pub(super) fn of(rows: &[&Row]) -> Option<Tag> {
    let staged: Vec<&Row> = rows.iter().copied().filter(|row| !row.stages_ns.is_empty()).collect();
    let names = stage_names(&staged);
    let whole = |row: &&Row| stage_times(row, &names).iter().map(|(_, ms)| ms).sum::<f64>();
    let greatest = staged.iter().map(whole).fold(f64::MIN_POSITIVE, f64::max);
    (!staged.is_empty()).then(|| {
        let headings = [heading("peer"), heading("variant"), heading("stages").class("drawn")]
            .into_iter()
            .chain(names.iter().enumerate().map(|(at, name)| stage_heading(at, name)));
        let lines = staged.iter().map(|row| line(row, &names, greatest));
        let (title, caption) = words(&names);
        let table = framed(caption, "stages", Html::from(head(headings)).and(body(lines)));
        tag("div").class("block").with(tag("h3").text(title)).with(table)
    })
}

/// The title and description of the table: a proof has stages, other work has parts.
fn words(names: &[&str]) -> (&'static str, &'static str) {
    if names.iter().any(|name| STAGES.contains(name)) {
        ("The chain of trust, in milliseconds", STAGES_CAPTION)
    } else {
        ("Part by part, in milliseconds", "Median of each part of the work")
    }
}

fn stage_heading(at: usize, name: &str) -> Tag {
    let key = tag("span").class(&format!("key part-{at}")).attr("aria-hidden", "true");
    number_heading("").with(key).text(name).text(" ms")
}

fn line(of: &Row, names: &[&str], greatest: f64) -> Tag {
    let parts = stage_times(of, names);
    let word = |(name, ms): &(&str, f64)| format!("{name} {ms:.2} ms");
    let words = parts.iter().map(word).collect::<Vec<_>>().join(", ");
    let numbers = names.iter().map(|name| {
        let part = parts.iter().find(|(part, _)| part == name);
        number(part.map_or("–".to_owned(), |(_, ms)| format!("{ms:.2}")))
    });
    let parts: Vec<(&str, f64)> = names
        .iter()
        .map(|name| (*name, parts.iter().find(|(part, _)| part == name).map_or(0.0, |(_, ms)| *ms)))
        .collect();
    row()
        .with(row_heading().class("peer").text(&of.peer))
        .with(cell().class("variant").text(&of.variant))
        .with(cell().class("drawn").with(picture::stacked_bar(&parts, greatest, &words)))
        .with_all(numbers)
}

const STAGES_CAPTION: &str =
    "Median of each stage; one that a peer cannot tell apart is in the one before it";
