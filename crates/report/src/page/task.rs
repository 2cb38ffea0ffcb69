//! The section of a task, and the overview of all tasks.

use bench::terminal::speed;
use bench::{Parity, Row, Task, terminal};

use super::{Placed, View, anchor, distribution, hostile, repeat, sizes, speeds, stages, title};
use crate::html::{Html, Tag, tag};
use crate::{about, picture as scale};

pub(super) fn section(view: &View<'_>, task: &str, rows: &[Placed<'_>]) -> Tag {
    let heading = tag("h2").attr("id", format!("{}-title", anchor(task))).text(title(task));
    let section = tag("section")
        .class("task")
        .attr("id", anchor(task))
        .attr("aria-labelledby", format!("{}-title", anchor(task)))
        .with(heading)
        .with(lead(task, rows));
    if Task::from_name(task) == Some(Task::Hostile) {
        return section.with(verdict(task, rows)).with(hostile::of(rows)).with(command(view, task));
    }
    let (sized, timed): (Vec<Placed<'_>>, Vec<_>) =
        rows.iter().partition(|(_, row)| row.sizes.is_some());
    let section = section.with(sizes::of(&sized)).with(sizes::against_speed(view, &sized));
    if timed.is_empty() {
        return section.with(command(view, task));
    }
    section
        .with(verdict(task, &timed))
        .with(speeds::of(view, task, &timed))
        .with(stages::of(&timed))
        .with(distribution::evenness(&timed))
        .with(legend(task, &timed))
        .with(notes(&timed))
        .with(distribution::passes(task, &timed))
        .with(command(view, task))
}

fn lead(task: &str, rows: &[Placed<'_>]) -> Html {
    let name = tag("code").text(task);
    let lead = match about::task(task) {
        Some(about) => about.lead,
        None => "This version does not know the task; its rows are shown as they are.",
    };
    let row = rows[0].1;
    let passes = rows.iter().map(|(_, row)| row.passes_ns.len()).max().unwrap_or_default();
    let amount = match passes {
        0 => String::new(),
        passes => {
            let units = speed::amount(&row.unit, row.units);
            let times =
                if passes == 1 { "one pass".to_owned() } else { format!("{passes} passes") };
            format!(" {units}, {}; {times}, one core.", scale::bytes(row.bytes))
        }
    };
    tag("p").class("lead").with(name).text(" ").text(lead).text(amount).into()
}

fn verdict(task: &str, rows: &[Placed<'_>]) -> Option<Tag> {
    let rows: Vec<&Row> = rows.iter().map(|(_, row)| *row).collect();
    about::is_known(task).then(|| tag("p").class("verdict").text(terminal::summary(task, &rows)))
}

fn legend(task: &str, rows: &[Placed<'_>]) -> Option<Tag> {
    let checks = terminal::checks_of(task);
    let made =
        |check: &str| rows.iter().any(|(_, row)| row.checks.iter().any(|made| made == check));
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

/// Each distinct note of a peer once, with the variants it applies to.
fn notes(rows: &[Placed<'_>]) -> Option<Tag> {
    let mut notes: Vec<(&str, &str, bool, Vec<&str>)> = Vec::new();
    for (_, row) in rows {
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

pub(super) fn overview(view: &View<'_>, tasks: &[(&str, Vec<Placed<'_>>)]) -> Option<Tag> {
    let cards: Vec<Tag> = tasks.iter().filter_map(|(task, rows)| card(view, task, rows)).collect();
    (!cards.is_empty()).then(|| {
        tag("section")
            .class("overview")
            .attr("aria-label", "The fastest of each task")
            .with(tag("ul").class("cards").with_all(cards))
    })
}

fn card(view: &View<'_>, task: &str, rows: &[Placed<'_>]) -> Option<Tag> {
    let first = fastest(task, rows)?;
    let unit = speed::heading(&[first]);
    let number = speed::number(&first.unit, first.median()?);
    let figure =
        tag("p").class("figure").text(number).text(" ").with(tag("span").class("unit").text(unit));
    let peer = tag("p").class("who").with(tag("strong").text(&first.peer)).with(work_of(first));
    let name = tag("a").attr("href", format!("#{}", anchor(task))).text(title(task));
    let card = tag("li").with(tag("h2").with(name)).with(figure).with(peer);
    Some(card.with(against(view, first)))
}

/// The fastest at the first kind of work, which is the one with most checks. Of formats none is the
/// first: there, the fastest of all, but for batches and parts of the corpus.
fn fastest<'r>(task: &str, rows: &[Placed<'r>]) -> Option<&'r Row> {
    let mut ranked = rows.iter().map(|(_, row)| *row).filter(|row| row.is_ranked());
    if !task.starts_with("nostr-") {
        // Rows are sorted by speed.
        return ranked.next();
    }
    let whole = ranked.filter(|row| !row.variant.contains(['/', '@']));
    whole.max_by(|a, b| a.median().unwrap_or(0.0).total_cmp(&b.median().unwrap_or(0.0)))
}

fn work_of(row: &Row) -> Html {
    let group = row.group();
    Html::text(", ").and(Html::text(about::group(&row.task, &group).unwrap_or(&group)))
}

fn against(view: &View<'_>, row: &Row) -> Option<Tag> {
    let (ratio, against) = view.newest_ratios().get(crate::ratios::Name::of(row))?;
    if against.peer == row.peer {
        return None;
    }
    let times = format!("{}× {}", scale::ratio(ratio.median), against.peer);
    Some(tag("p").class("times").text(times))
}
