//! Bar charts: the fastest row of every peer, with a point per pass and the ratio to a named row.

use std::collections::HashSet;

use results::terminal::{self, Baseline, speed};
use results::{Results, Row};

use super::{Chart, Drawing, axis, file, file_name, place, short, source};
use crate::html::tag;
use crate::picture::Scale;
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
    let scale = Scale::of(rows.iter().copied());
    let bottom = TOP + LINE * rows.len() as f64;
    let axis = if scale.is_logarithmic() { AXIS } else { 0.0 };
    let mut drawing = Drawing::new(WIDTH, bottom + axis + 14.0);
    drawing.text("title", LEFT, 26.0, &short(title, 80));
    drawing.text("soft", LEFT, 46.0, &short(&measure(rows), 104));
    drawing.text("soft", LEFT, 63.0, &short(&source(results), 104));
    for power in scale.powers() {
        let x = BARS + ROOM * scale.along(power);
        drawing.line("grid", (x, TOP - 2.0), (x, bottom + 4.0));
        drawing.text("tick middle", x, bottom + 18.0, &axis::label(power));
    }
    if scale.is_logarithmic() {
        let name = format!("{}, logarithmic scale", speed::heading(rows));
        drawing.text("soft middle", BARS + ROOM / 2.0, bottom + 36.0, &name);
    }
    for (at, row) in rows.iter().enumerate() {
        let top = TOP + LINE * at as f64;
        bar(&mut drawing, row, top, scale);
        let number = row.median().map_or(String::new(), |per_s| speed::number(&row.unit, per_s));
        drawing.text("number", NUMBER, top + 15.0, &number);
        let ratio = against.and_then(|other| scale::ratio_to(row, other));
        drawing.text("ratio", NUMBER + 12.0, top + 15.0, &short(&ratio.unwrap_or_default(), 25));
    }
    drawing
}

/// The meaning of bars and points.
fn measure(rows: &[&Row]) -> String {
    let measure = speed::heading(rows);
    let better = if measure == "ms" { "shorter is better" } else { "longer is better" };
    let passes = if rows[0].passes_ns.len() > 1 { "; points are passes" } else { "" };
    format!("{measure}, median; {better}{passes}")
}

fn bar(drawing: &mut Drawing, row: &Row, top: f64, scale: Scale) {
    let ours = results::is_ours(&row.peer);
    drawing.text(
        if ours { "name ours" } else { "name" },
        BARS - 12.0,
        top + 15.0,
        &short(&row.peer, 20),
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
    let against =
        against.map(|row| format!(". Ratios compare with {} ({})", row.peer, row.variant));
    format!("{}{}.", numbers.join(", "), against.unwrap_or_default())
}

/// Peers in one picture.
const MOST: usize = 16;
const WIDTH: f64 = 820.0;
const LEFT: f64 = 16.0;
const TOP: f64 = 78.0;
const LINE: f64 = 26.0;
const BARS: f64 = 180.0;
const ROOM: f64 = 350.0;
/// The end of the numbers; ratios begin after it.
const NUMBER: f64 = 626.0;
/// The height of the ticks and the name of a logarithmic axis.
const AXIS: f64 = 32.0;
