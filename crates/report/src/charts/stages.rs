//! Where does the time of a whole repository go? Stages one behind the other.

use std::collections::HashSet;

use bench::{Results, Row, own};

use super::{Chart, Drawing, file, place, short, source};
use crate::html::tag;
use crate::page::stages::{names, parts};
use crate::scale;

/// The picture of the rows of a task that have stages, the fastest of each peer; nothing if none has.
pub(super) fn chart(results: &Results, rows: &[Row]) -> Option<Chart> {
    let staged = rows.iter().filter(|row| row.is_ranked() && !row.stages_ns.is_empty());
    let staged: Vec<&Row> = staged.collect();
    let group = staged.first()?.group();
    let mut seen = HashSet::new();
    let best = staged.into_iter().filter(|row| row.group() == group);
    let best: Vec<&Row> = best.filter(|row| seen.insert(row.peer.as_str())).take(16).collect();
    let title = "The chain of trust of a whole repository, stage by stage";
    let drawing = draw(results, title, &best).describe(title, &words(&best));
    Some(Chart { name: format!("{}-stages", short(&best[0].task, 40)), svg: file(drawing) }).filter(
        |chart| chart.name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-'),
    )
}

fn draw(results: &Results, title: &str, rows: &[&Row]) -> Drawing {
    let names = names(rows);
    let mut drawing = Drawing::new(WIDTH, TOP + LINE * rows.len() as f64 + 14.0);
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
    let whole = |row: &&Row| parts(row, &names).iter().map(|(_, ms)| ms).sum::<f64>();
    let greatest = rows.iter().map(whole).fold(f64::MIN_POSITIVE, f64::max);
    for (at, row) in rows.iter().enumerate() {
        let top = TOP + LINE * at as f64;
        let class = if row.peer == own::PEER { "name ours" } else { "name" };
        drawing.text(class, BARS - 12.0, top + 15.0, &short(&row.peer, 24));
        let mut x = BARS;
        for (name, ms) in parts(row, &names) {
            let width = ROOM * scale::share(ms, greatest);
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

fn words(rows: &[&Row]) -> String {
    let names = names(rows);
    let row = |row: &&Row| {
        let parts = parts(row, &names);
        let parts: Vec<String> =
            parts.iter().map(|(name, ms)| format!("{name} {ms:.2} ms")).collect();
        format!("{}: {}", row.peer, parts.join(", "))
    };
    rows.iter().map(row).collect::<Vec<_>>().join("; ")
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 16.0;
const TOP: f64 = 82.0;
const LINE: f64 = 26.0;
const BARS: f64 = 180.0;
const ROOM: f64 = 450.0;
