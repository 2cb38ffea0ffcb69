//! The table of a task that stands without scripts: for every kind of work the best rows of the peers, one unit at a time
//! and many in a call.

use std::collections::HashSet;

use results::terminal::{self, speed};
use results::{Parity, Row};

use super::{View, anchor, title};
use crate::html::{
    Html, Tag, body, cell, framed, head, heading, number, number_heading, row, row_heading, tag,
};
use crate::picture::{self, Scale};
use crate::ratios::Name;
use crate::{about, standing};

pub(super) fn of(view: &View<'_>, task: &str, rows: &[&Row]) -> Tag {
    let mut bodies = Vec::new();
    for of_group in rows.chunk_by(|a, b| a.group() == b.group()) {
        let best = best(of_group);
        bodies.extend((!best.is_empty()).then(|| group(view, task, &best)));
    }
    let caption = format!("{}: the best of each peer, the fastest first", title(task));
    framed(&caption, "speeds", Html::from(headings(rows)).and(Html::all(bodies)))
        .attr("data-task", anchor(task))
}

/// The fastest row of every peer that takes one unit at a time, and the fastest that takes many; for a peer without one,
/// its fastest unranked row. Rows are sorted by speed.
fn best<'r>(rows: &[&'r Row]) -> Vec<&'r Row> {
    let mut seen = HashSet::new();
    let may_stand = |row: &&&Row| standing::represents(row) || !row.is_ranked();
    let rows = rows.iter().filter(may_stand);
    rows.copied().filter(|row| seen.insert((row.peer.as_str(), row.is_batch()))).collect()
}

fn headings(rows: &[&Row]) -> Tag {
    let headings = [
        heading("peer"),
        heading("way"),
        number_heading(speed::heading(rows)).class("speed"),
        heading("median").class("drawn"),
        heading("ratio"),
        number_heading("checks"),
        number_heading("counts"),
    ];
    head(headings)
}

fn group(view: &View<'_>, task: &str, rows: &[&Row]) -> Tag {
    let scale = Scale::of(rows.iter().copied());
    let against = rows.iter().find_map(|row| view.newest_ratios().get(Name::of(row)));
    let against = against.map(|(_, row)| format!("ratios to {} {}", row.peer, row.variant));
    let scaled = scale.is_logarithmic().then(|| "logarithmic scale".to_owned());
    let name = rows[0].group();
    let words = about::group(task, &name).map(str::to_owned);
    let soft = [words, against, scaled].into_iter().flatten();
    let soft = soft.map(|text| tag("span").class("words").text(text));
    let heading = tag("th")
        .attr("scope", "rowgroup")
        .attr("colspan", 7)
        .with(tag("span").class("kind").text(&name))
        .with_all(soft);
    let most = most_counts(rows);
    let lines = rows.iter().map(|row| line(view, row, &scale, most));
    body(std::iter::once(row().class("group").with(heading)).chain(lines))
}

fn most_counts(rows: &[&Row]) -> usize {
    rows.iter().map(|row| row.counts.names().count()).max().unwrap_or_default()
}

fn line(view: &View<'_>, of: &Row, scale: &Scale, most_counts: usize) -> Tag {
    let name = Name::of(of);
    let known = view.newest_ratios().get(name);
    let times = known.and_then(|(_, other)| picture::ratio_to(of, other));
    let speed = of.per_s.map(|rate| speed::number(&of.unit, rate.median));
    let class = if results::is_ours(&of.peer) { "row ours" } else { "row" };
    let unranked = if of.is_ranked() { "" } else { " unranked" };
    let none = || "–".to_owned();
    let ratio_class = if times.is_some() { "ratio" } else { "ratio none" };
    row()
        .class(&format!("{class}{unranked}"))
        .with(row_heading().class("peer").with(tag("span").class("name").text(&of.peer)))
        .with(variant(of))
        .with(number(speed.unwrap_or_else(none)).class("median"))
        .with(cell().class("drawn").with(picture::speed_bar(of, scale)))
        .with(cell().class(ratio_class).text(times.unwrap_or_else(none)))
        .with(number(checks(of)).class("checks"))
        .with(counts(of, most_counts))
}

fn variant(of: &Row) -> Tag {
    let chip = of.batch_label().map(|label| tag("span").class("chip").text(label));
    cell().class("variant").with(Html::text(&of.variant)).with(chip)
}

/// How many of the checks that distinguish the rows of the task are made.
fn checks(of: &Row) -> String {
    let known = terminal::checks_of(&of.task);
    let made = known.iter().filter(|(_, check)| of.checks.iter().any(|made| made == check)).count();
    if known.is_empty() { "same".to_owned() } else { format!("{made} of {}", known.len()) }
}

/// How many counts of the work the row gave, and whether they equal the counts of the corpus.
fn counts(of: &Row, most: usize) -> Tag {
    let given = of.counts.names().count();
    let (class, words) = match of.parity {
        Parity::Ok if of.per_s.is_none() => ("bad", "failed in a pass".to_owned()),
        Parity::Ok if given < most => ("fair", format!("{given} of {most} same")),
        Parity::Ok => ("good", format!("{given} same")),
        Parity::Mismatch => ("bad", "mismatch".to_owned()),
        Parity::Unproven => ("bad", "failed".to_owned()),
    };
    cell().class("counts number").with(tag("span").class(class).text(words))
}
