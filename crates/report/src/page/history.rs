//! The ratios of rows over several runs.

use results::Results;
use results::terminal::ratio as names;

use super::{View, moment, title};
use crate::html::{Html, Tag, body, cell, framed, head, heading, row, row_heading, tag};
use crate::picture::ratio;
use crate::ratios::{Name, Ratios};

/// A table per task with a column per run; empty for a single run.
pub(super) fn of(view: &View<'_>) -> Option<Tag> {
    (view.runs.len() > 1).then(|| {
        let text = "The ratio of each row to the named row of the same run. Speeds of different days or \
                    machines are not comparable, ratios are.";
        let tables = view.tasks().into_iter().filter_map(|(task, rows)| {
            let lines = rows.iter().filter_map(|row| line(view, Name::of(row)));
            let lines: Vec<Tag> = lines.collect();
            (!lines.is_empty()).then(|| table(view, task, lines))
        });
        tag("section")
            .attr("id", "history")
            .attr("aria-labelledby", "history-title")
            .with(tag("h2").attr("id", "history-title").text("Over time"))
            .with(tag("p").class("lead").text(text))
            .with_all(tables)
    })
}

fn table(view: &View<'_>, task: &str, lines: Vec<Tag>) -> Tag {
    let runs =
        view.runs.iter().map(|run| heading(moment(&run.started)).attr("title", &run.machine.cpu));
    let headings = [heading("peer"), heading("variant")].into_iter().chain(runs);
    let caption = format!("{}: ratios of each run", title(task));
    framed(&caption, "plain", Html::from(head(headings)).and(body(lines)))
}

fn line(view: &View<'_>, name: Name<'_>) -> Option<Tag> {
    let of_run = |(run, ratios): (&&Results, &Ratios<'_>)| {
        let (times, other) = ratios.get(name)?;
        let row = run.rows.iter().find(|row| Name::of(row) == name)?;
        Some(names::named(&ratio(times.median), row, other))
    };
    let ratios: Vec<Option<String>> = view.runs.iter().zip(&view.ratios).map(of_run).collect();
    ratios.iter().any(Option::is_some).then(|| {
        let none = || "–".to_owned();
        let numbers = ratios.iter().map(|times| cell().text(times.clone().unwrap_or_else(none)));
        row()
            .with(row_heading().text(name.peer))
            .with(cell().class("variant").text(name.variant))
            .with_all(numbers)
    })
}
