//! The section of a task: its description, its verdict and best rows; and all rows, which a script shows when they are
//! opened.

use results::terminal::speed;
use results::{Parity, Row, Task, terminal};

use super::{View, anchor, hostile, ranking, repeat, sizes, stages, title};
use crate::html::{Html, Tag, tag};
use crate::{about, picture as scale};

pub(super) fn section(view: &View<'_>, task: &str, rows: &[&Row]) -> Tag {
    let heading = tag("h2").attr("id", format!("{}-title", anchor(task))).text(title(task));
    tag("section")
        .class("task")
        .attr("id", anchor(task))
        .attr("aria-labelledby", format!("{}-title", anchor(task)))
        .with(heading)
        .with(content(view, task, rows))
}

/// All of a section but its heading.
pub(super) fn content(view: &View<'_>, task: &str, rows: &[&Row]) -> Html {
    let lead = Html::from(lead(task, rows));
    let command = command(view, task);
    if Task::from_name(task) == Some(Task::Hostile) {
        return lead.and(verdict(task, rows)).and(hostile::of(rows)).and(command);
    }
    let (sized, timed): (Vec<&Row>, Vec<_>) = rows.iter().partition(|row| row.sizes.is_some());
    let lead = lead.and(sizes::of(&sized)).and(sizes::against_speed(view, &sized));
    if timed.is_empty() {
        return lead.and(command);
    }
    let is_ranked_here = !task.starts_with("nostr-");
    lead.and(verdict(task, &timed))
        .and(is_ranked_here.then(|| ranking::of(view, task, &timed)))
        .and(is_ranked_here.then(|| stages::of(&timed)).flatten())
        .and(all_rows(task, timed.len()))
        .and(legend(task, &timed))
        .and(notes(&timed))
        .and(command)
}

fn lead(task: &str, rows: &[&Row]) -> Tag {
    let name = tag("code").text(task);
    let lead = match about::task(task) {
        Some(about) => about.lead,
        None => "This version does not know the task; its rows are shown as they are.",
    };
    let row = rows[0];
    let passes = rows.iter().map(|row| row.passes_ns.len()).max().unwrap_or_default();
    let amount = match passes {
        0 => String::new(),
        passes => {
            let units = speed::amount(&row.unit, row.units);
            let times =
                if passes == 1 { "one pass".to_owned() } else { format!("{passes} passes") };
            format!(" {units}, {}; {times}, one core.", scale::bytes(row.bytes))
        }
    };
    tag("p").class("lead").with(name).text(" ").text(lead).text(amount)
}

fn verdict(task: &str, rows: &[&Row]) -> Option<Tag> {
    about::is_known(task).then(|| tag("p").class("verdict").text(terminal::summary(task, rows)))
}

/// The place of the table of all rows.
fn all_rows(task: &str, rows: usize) -> Tag {
    let summary = match rows {
        1 => "The row, with every pass".to_owned(),
        rows => format!("All {rows} rows, with every pass"),
    };
    tag("details")
        .class("block rows")
        .attr("data-rows", task)
        .with(tag("summary").text(summary))
        .with(needs_scripts())
}

/// The text in the place of a table that a script makes.
pub(super) fn needs_scripts() -> Tag {
    let raw = tag("a").attr("href", crate::RAW).text(crate::RAW);
    tag("p")
        .class("lead")
        .text("A script shows this table from the data of the page; the numbers are in ")
        .with(raw)
        .text(".")
}

fn legend(task: &str, rows: &[&Row]) -> Option<Tag> {
    let checks = terminal::checks_of(task);
    let made = |check: &str| rows.iter().any(|row| row.checks.iter().any(|made| made == check));
    let terms = checks.iter().filter(|(_, check)| made(check)).map(|(letter, check)| {
        tag("li").with(tag("span").class("letter").text(letter)).text(" ").text(check)
    });
    let terms: Vec<Tag> = terms.collect();
    (!terms.is_empty()).then(|| {
        tag("div")
            .class("legend")
            .with(tag("h3").text("Checks"))
            .with(tag("ul").class("letters").with_all(terms))
    })
}

/// The distinct notes of a peer, with the variants they apply to.
pub(super) fn notes(rows: &[&Row]) -> Option<Tag> {
    let mut notes: Vec<(&str, &str, bool, Vec<&str>)> = Vec::new();
    for row in rows {
        let Some(note) = &row.note else { continue };
        let is_mismatch = row.parity == Parity::Mismatch;
        match notes.iter_mut().find(|(peer, text, ..)| *peer == row.peer && *text == note) {
            Some((.., variants)) => variants.push(&row.variant),
            None => notes.push((&row.peer, note, is_mismatch, vec![&row.variant])),
        }
    }
    let items = notes.iter().map(|(peer, note, is_mismatch, variants)| {
        let mark = is_mismatch.then(|| tag("strong").class("bad").text("mismatch: "));
        let who = tag("b").text(peer);
        tag("li").with(who).text(format!(" {}: ", variants.join(", "))).with(mark).text(note)
    });
    let items: Vec<Tag> = items.collect();
    (!items.is_empty()).then(|| {
        tag("div").class("notes").with(tag("h3").text("Notes")).with(tag("ul").with_all(items))
    })
}

fn command(view: &View<'_>, task: &str) -> Tag {
    let command = tag("code").class("command").text(repeat::of_task(view, task));
    tag("p").class("again").text("To repeat it: ").with(command)
}
