//! Bar charts: the fastest row of each peer with a point for each pass, and the stages of a repository.

use std::collections::HashSet;

use results::terminal::{self, Baseline, speed};
use results::{Results, Row};

use super::{Chart, Drawing, file, file_name, place, short, source};
use crate::html::tag;
use crate::picture::{Scale, stage_names, stage_times};
use crate::{about, picture as scale, standing};

/// The picture of the rows of a kind; nothing unless two peers did it.
pub(super) fn chart(results: &Results, kind: &[Row], baseline: Option<&Baseline>) -> Option<Chart> {
    let mut seen = HashSet::new();
    // Rows are sorted by speed.
    let ranked = kind.iter().filter(|row| standing::represents(row));
    let best: Vec<&Row> = ranked.filter(|row| seen.insert(row.peer.as_str())).take(MOST).collect();
    if best.len() < 2 {
        return None;
    }
    let of_task: Vec<&Row> = results.rows.iter().filter(|row| row.task == best[0].task).collect();
    let against = terminal::baseline_row(best[0], &of_task, baseline);
    let title = title(best[0]);
    let drawing = draw(results, &title, &best, against).describe(&title, &words(&best, against));
    Some(Chart { name: file_name(best[0]), svg: file(drawing) })
}

fn title(row: &Row) -> String {
    let group = row.group();
    let task = about::task(&row.task).map_or(row.task.as_str(), |about| about.title);
    format!("{task}: {}", about::group(&row.task, &group).unwrap_or(&group))
}

fn draw(results: &Results, title: &str, rows: &[&Row], against: Option<&Row>) -> Drawing {
    let mut drawing = Drawing::new(WIDTH, TOP + LINE * rows.len() as f64 + 14.0);
    let measure = speed::heading(rows);
    let better = if measure == "ms" { ", shorter is better" } else { "" };
    drawing.text("title", LEFT, 26.0, title);
    let passes = if rows[0].passes_ns.len() > 1 { "; points are passes" } else { "" };
    let scale = Scale::of(rows.iter().copied());
    let scaled =
        if scale.is_logarithmic() { "; logarithmic, a line for each power of ten" } else { "" };
    let about = format!("{measure}, median{better}{passes}{scaled} · {}", source(results));
    drawing.text("soft", LEFT, 46.0, &short(&about, 110));
    for power in scale.powers() {
        let x = BARS + ROOM * scale.along(power);
        drawing.line("grid", (x, TOP - 2.0), (x, TOP + LINE * rows.len() as f64));
    }
    for (at, row) in rows.iter().enumerate() {
        let top = TOP + LINE * at as f64;
        bar(&mut drawing, row, top, scale);
        let number = row.median().map_or(String::new(), |per_s| speed::number(&row.unit, per_s));
        drawing.text("number", NUMBER, top + 15.0, &number);
        let ratio = row.median().zip(against.and_then(Row::median));
        let ratio = ratio.map_or(String::new(), |(a, b)| format!("{}×", scale::ratio(a / b)));
        drawing.text("number soft", WIDTH - LEFT, top + 15.0, &ratio);
    }
    drawing
}

fn bar(drawing: &mut Drawing, row: &Row, top: f64, scale: Scale) {
    let ours = results::is_ours(&row.peer);
    drawing.text(
        if ours { "name ours" } else { "name" },
        BARS - 12.0,
        top + 15.0,
        &short(&row.peer, 24),
    );
    let Some(median) = scale::median(row) else { return };
    let along = |number: f64| ROOM * scale.along(number);
    drawing.add(
        tag("rect")
            .class(if ours { "bar ours" } else { "bar" })
            .attr("x", BARS)
            .attr("y", place(top + 3.0))
            .attr("width", place(along(median)))
            .attr("height", 16)
            .attr("rx", 2),
    );
    for pass in scale::passes(row) {
        let x = place(BARS + along(pass));
        drawing.add(
            tag("circle").class("pass").attr("cx", x).attr("cy", place(top + 11.0)).attr("r", 2),
        );
    }
}

fn words(rows: &[&Row], against: Option<&Row>) -> String {
    let number = |row: &&Row| {
        let speed = row.median().map_or(String::new(), |per_s| speed::sentence(&row.unit, per_s));
        format!("{} ({}) {speed}", row.peer, row.variant)
    };
    let numbers: Vec<String> = rows.iter().map(number).collect();
    let against = against.map(|row| format!(". Ratios are to {} ({})", row.peer, row.variant));
    format!("{}{}.", numbers.join(", "), against.unwrap_or_default())
}

/// Peers in one picture.
const MOST: usize = 16;
const WIDTH: f64 = 760.0;
const LEFT: f64 = 16.0;
const TOP: f64 = 62.0;
const LINE: f64 = 26.0;
const BARS: f64 = 180.0;
const ROOM: f64 = 400.0;
const NUMBER: f64 = 680.0;

/// The picture of the rows of a task that have stages, the fastest of each peer; nothing if none has.
pub(super) fn stages_chart(results: &Results, rows: &[Row]) -> Option<Chart> {
    let staged = rows.iter().filter(|row| row.is_ranked() && !row.stages_ns.is_empty());
    let staged: Vec<&Row> = staged.collect();
    let group = staged.first()?.group();
    let mut seen = HashSet::new();
    let best = staged.into_iter().filter(|row| row.group() == group);
    let best: Vec<&Row> = best.filter(|row| seen.insert(row.peer.as_str())).take(16).collect();
    let title = "The chain of trust of a whole repository, stage by stage";
    let drawing = draw_stages(results, title, &best).describe(title, &stage_words(&best));
    Some(Chart { name: format!("{}-stages", short(&best[0].task, 40)), svg: file(drawing) }).filter(
        |chart| chart.name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-'),
    )
}

fn draw_stages(results: &Results, title: &str, rows: &[&Row]) -> Drawing {
    let names = stage_names(rows);
    let mut drawing = Drawing::new(WIDTH, STAGES_TOP + LINE * rows.len() as f64 + 14.0);
    drawing.text("title", LEFT, 26.0, title);
    drawing.text(
        "soft",
        LEFT,
        46.0,
        &short(&format!("milliseconds, median; shorter is better · {}", source(results)), 110),
    );
    for (at, name) in names.iter().enumerate() {
        let x = BARS + 110.0 * at as f64;
        let class = format!("part-{at}");
        drawing.add(
            tag("rect")
                .class(&class)
                .attr("x", x)
                .attr("y", 60)
                .attr("width", 10)
                .attr("height", 10)
                .attr("rx", 2),
        );
        drawing.text("soft", x + 16.0, 69.0, &short(name, 14));
    }
    let whole = |row: &&Row| stage_times(row, &names).iter().map(|(_, ms)| ms).sum::<f64>();
    let greatest = rows.iter().map(whole).fold(f64::MIN_POSITIVE, f64::max);
    for (at, row) in rows.iter().enumerate() {
        let top = STAGES_TOP + LINE * at as f64;
        let class = if results::is_ours(&row.peer) { "name ours" } else { "name" };
        drawing.text(class, BARS - 12.0, top + 15.0, &short(&row.peer, 24));
        let mut x = BARS;
        for (name, ms) in stage_times(row, &names) {
            let width = STAGES_ROOM * scale::share(ms, greatest);
            let at = names.iter().position(|known| *known == name).unwrap_or_default();
            drawing.add(
                tag("rect")
                    .class(&format!("part-{at}"))
                    .attr("x", place(x))
                    .attr("y", place(top + 3.0))
                    .attr("width", place(width))
                    .attr("height", 16),
            );
            x += width;
        }
        drawing.text("number", WIDTH - LEFT, top + 15.0, &format!("{:.2} ms", whole(row)));
    }
    drawing
}

fn stage_words(rows: &[&Row]) -> String {
    let names = stage_names(rows);
    let row = |row: &&Row| {
        let parts = stage_times(row, &names);
        let parts: Vec<String> =
            parts.iter().map(|(name, ms)| format!("{name} {ms:.2} ms")).collect();
        format!("{}: {}", row.peer, parts.join(", "))
    };
    rows.iter().map(row).collect::<Vec<_>>().join("; ")
}

const STAGES_TOP: f64 = 82.0;
const STAGES_ROOM: f64 = 450.0;
