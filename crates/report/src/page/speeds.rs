//! The table of a task with a body for each group, the fastest row first; and the ratios over several runs.

use bench::terminal::{self, speed};
use bench::{Parity, Row};

use super::{Placed, View, anchor, model, moment, title};
use crate::html::{
    Html, Tag, body, cell, framed, head, heading, number, number_heading, row, row_heading, tag,
};
use crate::ratios::Name;
use crate::{about, picture, picture as scale};

pub(super) fn of(view: &View<'_>, task: &str, rows: &[Placed<'_>]) -> Tag {
    let shape = Shape::of(view, task, rows);
    let bodies = rows.chunk_by(|(_, a), (_, b)| a.group() == b.group());
    let bodies = bodies.map(|rows| group(view, &shape, rows));
    let caption = format!("{}: every row, the fastest of each kind first", title(task));
    framed(&caption, "speeds", Html::from(shape.head()).and(Html::all(bodies)))
        .attr("data-task", anchor(task))
}

/// The columns of the table and the unit of its numbers.
struct Shape {
    measure: String,
    checks: Vec<(char, &'static str)>,
    has_checks: bool,
    has_bytes: bool,
    has_allocations: bool,
    has_history: bool,
    columns: usize,
}

impl Shape {
    fn of(view: &View<'_>, task: &str, rows: &[Placed<'_>]) -> Self {
        let plain: Vec<&Row> = rows.iter().map(|(_, row)| *row).collect();
        let checks = terminal::checks_of(task);
        let has_checks = plain.iter().any(|row| !row.checks.is_empty());
        // Bytes per second are not meaningful for signatures.
        let has_bytes = matches!(task, "decode" | "repo");
        let has_allocations = plain.iter().any(|row| row.allocations.is_some());
        let has_history = view.runs.len() > 1;
        let optional = [has_checks, has_bytes, has_allocations, has_history];
        let columns = 8 + optional.into_iter().filter(|has| *has).count();
        let measure = speed::heading(&plain);
        Self { measure, checks, has_checks, has_bytes, has_allocations, has_history, columns }
    }

    fn head(&self) -> Tag {
        let drawn =
            if self.measure == "ms" { "time, shorter is better" } else { "median and every pass" };
        let headings = [
            Some(heading("peer").attr("data-sort", "peer")),
            Some(heading("variant").attr("data-sort", "variant")),
            Some(number_heading(&self.measure).attr("data-sort", "speed")),
            Some(heading(drawn).class("drawn")),
            Some(number_heading("slowest – fastest").attr("data-sort", "spread")),
            Some(number_heading("ratio").attr("data-sort", "ratio")),
            self.has_history.then(|| heading("over time")),
            self.has_bytes.then(|| number_heading("MB/s")),
            self.has_allocations.then(|| number_heading("allocations")),
            self.has_checks.then(|| heading("checks").attr("data-sort", "checks")),
            Some(heading("equal work")),
            Some(heading("").class("more").with(tag("span").class("unseen").text("details"))),
        ];
        head(headings.into_iter().flatten())
    }
}

fn group(view: &View<'_>, shape: &Shape, rows: &[Placed<'_>]) -> Tag {
    let first = rows[0].1;
    let greatest = scale::greatest(rows.iter().map(|(_, row)| *row));
    let against = rows.iter().find_map(|(_, row)| view.newest_ratios().get(Name::of(row)));
    let against = against.map(|(_, row)| {
        let text = format!("ratio to {} {}", row.peer, row.variant);
        tag("span").class("against").text(text)
    });
    let name = first.group();
    let words = about::group(&first.task, &name);
    let words = words.map(|words| tag("span").class("words").text(words));
    let heading = tag("th")
        .attr("scope", "rowgroup")
        .attr("role", "rowheader")
        .attr("colspan", shape.columns)
        .with(tag("span").class("kind").text(&name))
        .with(words)
        .with(against);
    let heading = row().class("group").with(heading);
    body(
        std::iter::once(heading)
            .chain(rows.iter().map(|placed| line(view, shape, *placed, greatest))),
    )
}

fn line(view: &View<'_>, shape: &Shape, (at, row): Placed<'_>, greatest: f64) -> Tag {
    let none = || "–".to_owned();
    let name = Name::of(row);
    let ratio = view.newest_ratios().get(name);
    let is_baseline = ratio.is_some_and(|(_, against)| Name::of(against) == name);
    let cells = [
        Some(peer(row)),
        Some(variant(row)),
        Some(
            number(row.per_s.map_or_else(none, |rate| speed::number(&row.unit, rate.median)))
                .class("median"),
        ),
        Some(cell().class("drawn").with(picture::speed_bar(row, greatest))),
        Some(
            number(row.per_s.map_or_else(none, |rate| speed::range(&row.unit, rate)))
                .class("range"),
        ),
        Some(
            number(ratio.map_or_else(none, |(ratio, _)| scale::ratio(ratio.median)))
                .class(if ratio.is_some() { "ratio" } else { "ratio none" }),
        ),
        shape.has_history.then(|| over_time(view, row)),
        shape
            .has_bytes
            .then(|| number(row.mb_per_s.map_or_else(none, |speed| format!("{speed:.0}")))),
        shape
            .has_allocations
            .then(|| number(row.allocations.map_or_else(none, |count| format!("{count:.1}")))),
        shape.has_checks.then(|| checks(row, shape)),
        Some(parity(row)),
        Some(cell().class("more")),
    ];
    let ours = if row.peer == bench::own::PEER { "row ours" } else { "row" };
    let class = format!(
        "{ours}{}{}",
        if row.is_ranked() { "" } else { " unranked" },
        if is_baseline { " baseline" } else { "" }
    );
    crate::html::row().class(&class).attr("data-row", at).with_all(cells.into_iter().flatten())
}

fn peer(row: &Row) -> Tag {
    row_heading()
        .class("peer")
        .with(tag("span").class("name").text(&row.peer))
        .with(tag("span").class("version").text(format!("{} {}", row.language, row.version)))
}

fn variant(row: &Row) -> Tag {
    let batch = model::is_batch(row).then(|| tag("span").class("chip").text("batch"));
    cell().class("variant").with(Html::text(&row.variant)).with(batch)
}

/// A letter for each check that is made, and a dot for each that is not; their names for screen
/// readers.
fn checks(row: &Row, shape: &Shape) -> Tag {
    let made = |check: &str| row.checks.iter().any(|made| made == check);
    if shape.checks.is_empty() {
        return cell().class("checks").text(row.checks.join(", "));
    }
    let letters = shape.checks.iter().map(|(letter, check)| match made(check) {
        true => tag("span").class("made").attr("title", check).text(letter),
        false => tag("span").class("unmade").text("·"),
    });
    let letters = tag("span").class("letters").attr("aria-hidden", "true").with_all(letters);
    let words = match row.checks.is_empty() {
        true => "none".to_owned(),
        false => row.checks.join(", "),
    };
    cell().class("checks").with(letters).with(tag("span").class("unseen").text(words))
}

fn parity(row: &Row) -> Tag {
    let (class, word) = match row.parity {
        Parity::Ok if row.per_s.is_none() => ("bad", "equal, then failed"),
        Parity::Ok if row.note.is_some() => ("fair", "equal, some not given"),
        Parity::Ok => ("good", "equal"),
        Parity::Mismatch => ("bad", "mismatch"),
        Parity::Unproven => ("bad", "failed"),
    };
    cell().class("parity").with(tag("span").class(class).text(word))
}

fn over_time(view: &View<'_>, row: &Row) -> Tag {
    let ratios = view.ratios.iter().map(|ratios| Some(ratios.get(Name::of(row))?.0.median));
    let ratios: Vec<Option<f64>> = ratios.collect();
    let word = |ratio: &Option<f64>| ratio.map_or("–".to_owned(), scale::ratio);
    let words =
        format!("ratios, oldest first: {}", ratios.iter().map(word).collect::<Vec<_>>().join(", "));
    cell().class("over-time").with(picture::line(&ratios, &words))
}

/// A table of each task with a column for each run; empty for a single run.
pub(super) fn history(view: &View<'_>) -> Option<Tag> {
    (view.runs.len() > 1).then(|| {
        let text = "Ratios to the same row of the same run: speeds of different days or machines say \
                    little, ratios say more.";
        let tables = view.tasks().into_iter().filter_map(|(task, rows)| {
            let lines: Vec<Tag> = rows.iter().filter_map(|(_, row)| history_line(view, Name::of(row))).collect();
            (!lines.is_empty()).then(|| history_table(view, task, lines))
        });
        tag("section")
            .attr("id", "history")
            .attr("aria-labelledby", "history-title")
            .with(tag("h2").attr("id", "history-title").text("Over time"))
            .with(tag("p").class("lead").text(text))
            .with_all(tables)
    })
}

fn history_table(view: &View<'_>, task: &str, lines: Vec<Tag>) -> Tag {
    let runs = view
        .runs
        .iter()
        .map(|run| number_heading(moment(&run.started)).attr("title", &run.machine.cpu));
    let headings = [heading("peer"), heading("variant")].into_iter().chain(runs);
    let caption = format!("{}: ratios of each run", title(task));
    framed(&caption, "plain", Html::from(head(headings)).and(body(lines)))
}

fn history_line(view: &View<'_>, name: Name<'_>) -> Option<Tag> {
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
