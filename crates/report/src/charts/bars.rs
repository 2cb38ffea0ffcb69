//! Who is how fast at a kind of work? The fastest row of each peer as a bar, with a point for each pass.

use std::collections::HashSet;

use bench::terminal::{self, Baseline, speed};
use bench::{Results, Row, own};

use super::{Chart, Drawing, file, file_name, place, short, source};
use crate::html::tag;
use crate::{about, scale};

/// The picture of the rows of a kind; nothing unless two peers did it.
pub(super) fn chart(results: &Results, kind: &[Row], baseline: Option<&Baseline>) -> Option<Chart> {
    let mut seen = HashSet::new();
    // Rows come in order of speed.
    let ranked = kind.iter().filter(|row| row.is_ranked());
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
    drawing.text(
        "soft",
        LEFT,
        46.0,
        &short(&format!("{measure}, median{better}{passes} · {}", source(results)), 110),
    );
    let greatest = scale::greatest(rows.iter().copied());
    for (at, row) in rows.iter().enumerate() {
        let top = TOP + LINE * at as f64;
        bar(&mut drawing, row, top, greatest);
        let number = row.median().map_or(String::new(), |per_s| speed::number(&row.unit, per_s));
        drawing.text("number", NUMBER, top + 15.0, &number);
        let ratio = row.median().zip(against.and_then(Row::median));
        let ratio = ratio.map_or(String::new(), |(a, b)| format!("{}×", scale::ratio(a / b)));
        drawing.text("number soft", WIDTH - LEFT, top + 15.0, &ratio);
    }
    drawing
}

fn bar(drawing: &mut Drawing, row: &Row, top: f64, greatest: f64) {
    let ours = row.peer == own::PEER;
    drawing.text(
        if ours { "name ours" } else { "name" },
        BARS - 12.0,
        top + 15.0,
        &short(&row.peer, 24),
    );
    let Some(median) = scale::median(row) else { return };
    let along = |number: f64| ROOM * scale::share(number, greatest);
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
