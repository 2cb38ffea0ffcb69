//! Where does the time of a whole repository go? The chain of trust, stage by stage.

use bench::Row;

use super::Placed;
use crate::html::{Html, Tag, tag};
use crate::picture;
use crate::table::{body, cell, framed, head, heading, number, number_heading, row, row_heading};

/// A table of stages with a stacked bar in each row; nothing if no row has stages.
pub(super) fn of(rows: &[Placed<'_>]) -> Option<Tag> {
    let staged: Vec<&Row> =
        rows.iter().map(|(_, row)| *row).filter(|row| !row.stages_ns.is_empty()).collect();
    let names = names(&staged);
    let whole = |row: &&Row| parts(row, &names).iter().map(|(_, ms)| ms).sum::<f64>();
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

/// What the table is called, and what is said of it: a proof has stages, other work has parts.
fn words(names: &[&str]) -> (&'static str, &'static str) {
    match names.iter().any(|name| STAGES.contains(name)) {
        true => ("The chain of trust, in milliseconds", STAGES_CAPTION),
        false => ("Part by part, in milliseconds", "Median of each part of the work"),
    }
}

fn stage_heading(at: usize, name: &str) -> Tag {
    let key = tag("span").class(&format!("key part-{at}")).attr("aria-hidden", "true");
    number_heading("").with(key).text(name).text(" ms")
}

fn line(of: &Row, names: &[&str], greatest: f64) -> Tag {
    let parts = parts(of, names);
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

/// The stages that some row has: the known ones in their order, then the others.
pub(crate) fn names<'r>(rows: &[&'r Row]) -> Vec<&'r str> {
    let mut names: Vec<&str> =
        rows.iter().flat_map(|row| row.stages_ns.keys()).map(String::as_str).collect();
    let place = |name: &str| STAGES.iter().position(|known| *known == name).unwrap_or(STAGES.len());
    names.sort_by_key(|name| (place(name), *name));
    names.dedup();
    names
}

/// The stages of a row in milliseconds, at the median of its passes.
pub(crate) fn parts<'n>(row: &Row, names: &[&'n str]) -> Vec<(&'n str, f64)> {
    let ms = |name: &&'n str| Some((*name, median(row.stages_ns.get(*name)?)? / 1e6));
    names.iter().filter_map(ms).collect()
}

fn median(passes_ns: &[u64]) -> Option<f64> {
    let mut sorted = passes_ns.to_vec();
    sorted.sort();
    let [below, above] = [sorted.len().checked_sub(1)? / 2, sorted.len() / 2];
    Some(f64::midpoint(sorted[below] as f64, sorted[above] as f64))
}

const STAGES_CAPTION: &str =
    "Median of each stage; one that a peer cannot tell apart is in the one before it";
const STAGES: [&str; 4] = ["parse", "signature", "walk", "rebuild"];
