//! How did ratios change from run to run?

use super::{View, moment, title};
use crate::html::{Html, Tag, tag};
use crate::ratios::Name;
use crate::scale;
use crate::table::{body, cell, framed, head, heading, number, number_heading, row, row_heading};

/// A table of each task with a column for each run; nothing of a single run.
pub(super) fn of(view: &View<'_>) -> Option<Tag> {
    (view.runs.len() > 1).then(|| {
        let text = "Ratios to the same row of the same run: speeds of different days or machines say \
                    little, ratios say more.";
        let tables = view.tasks().into_iter().filter_map(|(task, rows)| {
            let lines: Vec<Tag> = rows.iter().filter_map(|(_, row)| line(view, Name::of(row))).collect();
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
    let runs = view
        .runs
        .iter()
        .map(|run| number_heading(moment(&run.started)).attr("title", &run.machine.cpu));
    let headings = [heading("peer"), heading("variant")].into_iter().chain(runs);
    let caption = format!("{}: ratios of each run", title(task));
    framed(&caption, "plain", Html::from(head(headings)).and(body(lines)))
}

fn line(view: &View<'_>, name: Name<'_>) -> Option<Tag> {
    let ratios: Vec<Option<f64>> =
        view.ratios.iter().map(|ratios| Some(ratios.get(name)?.0.median)).collect();
    ratios.iter().any(Option::is_some).then(|| {
        let numbers = ratios.iter().map(|ratio| number(ratio.map_or("–".to_owned(), scale::ratio)));
        row()
            .with(row_heading().text(name.peer))
            .with(cell().class("variant").text(name.variant))
            .with_all(numbers)
    })
}
