//! Size against speed: a point for each codec of a format, bytes per event to the right, events per second upwards on a
//! logarithmic scale.

use std::collections::HashMap;

use results::terminal::thousands;
use results::{Results, Row};

use super::{Drawing, place, short, step};
use crate::html::{Tag, tag};
use crate::picture;

/// A codec of a format.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point<'r> {
    pub(crate) format: &'r str,
    pub(crate) peer: &'r str,
    pub(crate) bytes: f64,
    pub(crate) per_s: f64,
}

/// The codecs of which both is known, the smallest format first. Batches and parts of the corpus are left
/// out.
pub(crate) fn points(results: &Results) -> Vec<Point<'_>> {
    let sized = results.rows.iter().filter(|row| !row.variant.contains(['@', '/']));
    let sizes: HashMap<&str, f64> = sized
        .filter_map(|row| Some((row.variant.as_str(), picture::per_unit(row, row.sizes?.raw))))
        .collect();
    let of_task = |task: &str| -> Vec<Point<'_>> {
        let rows = results.rows.iter().filter(|row| row.task == task && row.is_ranked());
        rows.filter_map(|row| point(row, &sizes)).collect()
    };
    let read = READING.into_iter().map(of_task).find(|points| !points.is_empty());
    let mut points = read.unwrap_or_default();
    points.sort_by(|a, b| a.bytes.total_cmp(&b.bytes).then(b.per_s.total_cmp(&a.per_s)));
    points
}

fn point<'r>(row: &'r Row, sizes: &HashMap<&str, f64>) -> Option<Point<'r>> {
    let bytes = *sizes.get(row.variant.as_str())?;
    let per_s = row.median().filter(|per_s| *per_s > 0.0 && per_s.is_finite())?;
    Some(Point { format: &row.variant, peer: &row.peer, bytes, per_s })
}

/// The chart, for the page.
pub(crate) fn svg(points: &[Point<'_>]) -> Tag {
    drawing(points).inline(&words(points))
}

pub(crate) fn words(points: &[Point<'_>]) -> String {
    let word = |point: &Point<'_>| {
        let Point { format, peer, bytes, per_s } = point;
        format!("{format} by {peer}: {bytes:.0} bytes, {} events/s", thousands(*per_s))
    };
    points.iter().map(word).collect::<Vec<_>>().join("; ")
}

pub(crate) fn drawing(points: &[Point<'_>]) -> Drawing {
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    let paper = Paper::of(points);
    paper.axes(&mut drawing);
    let mut taken: Vec<Area> =
        points.iter().map(|point| Area::around(paper.place(point))).collect();
    for point in points {
        let (x, y) = paper.place(point);
        let ours = results::is_ours(point.peer);
        drawing.add(
            tag("circle")
                .class(if ours { "dot ours" } else { "dot" })
                .attr("cx", place(x))
                .attr("cy", place(y))
                .attr("r", 5)
                .with(tag("title").text(words(std::slice::from_ref(point)))),
        );
        label(&mut drawing, point, (x, y), &mut taken);
    }
    drawing
}

/// A name next to a point where there is room; otherwise it is only in the table.
fn label(drawing: &mut Drawing, point: &Point<'_>, (x, y): (f64, f64), taken: &mut Vec<Area>) {
    let text = short(&format!("{} · {}", point.format, point.peer), 34);
    let width = 6.4 * text.chars().count() as f64;
    let places = [
        (9.0, 4.0),
        (-9.0 - width, 4.0),
        (9.0, -8.0),
        (9.0, 16.0),
        (-9.0 - width, -8.0),
        (-9.0 - width, 16.0),
    ];
    for (right, down) in places {
        let area = Area {
            left: x + right,
            right: x + right + width,
            top: y + down - 10.0,
            bottom: y + down + 2.0,
        };
        let is_inside =
            area.left > LEFT && area.right < WIDTH && area.top > 0.0 && area.bottom < BOTTOM;
        if is_inside && !taken.iter().any(|other| other.meets(&area)) {
            let class = if results::is_ours(point.peer) { "label ours" } else { "label" };
            drawing.text(class, x + right, y + down, &text);
            taken.push(area);
            return;
        }
    }
}

/// A part of the paper that is used.
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn around((x, y): (f64, f64)) -> Self {
        Self { left: x - 6.0, right: x + 6.0, top: y - 6.0, bottom: y + 6.0 }
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// The values at the edges of the chart.
struct Paper {
    most_bytes: f64,
    /// Powers of ten.
    least: i32,
    most: i32,
}

impl Paper {
    fn of(points: &[Point<'_>]) -> Self {
        let most_bytes = points.iter().map(|point| point.bytes).fold(1.0, f64::max) * 1.12;
        let power = |point: &Point<'_>| point.per_s.log10();
        let least = points.iter().map(power).fold(f64::MAX, f64::min).floor() as i32;
        let most = points.iter().map(power).fold(f64::MIN, f64::max).ceil() as i32;
        Self {
            most_bytes,
            least,
            most: most.max(least.saturating_add(1)).min(least.saturating_add(20)),
        }
    }

    fn place(&self, point: &Point<'_>) -> (f64, f64) {
        (self.across(point.bytes), self.up(point.per_s.log10()))
    }

    fn across(&self, bytes: f64) -> f64 {
        LEFT + (WIDTH - LEFT - 16.0) * bytes / self.most_bytes
    }

    fn up(&self, power: f64) -> f64 {
        let share = (power - f64::from(self.least)) / f64::from(self.most - self.least);
        BOTTOM - (BOTTOM - 24.0) * share
    }

    fn axes(&self, drawing: &mut Drawing) {
        for power in self.least..=self.most {
            let y = self.up(f64::from(power));
            drawing.line("grid", (LEFT, y), (WIDTH - 16.0, y));
            drawing.text("tick end", LEFT - 8.0, y + 4.0, &magnitude(power));
        }
        let step = step(self.most_bytes);
        let mut bytes = 0.0;
        while bytes <= self.most_bytes {
            drawing.text("tick middle", self.across(bytes), BOTTOM + 20.0, &thousands(bytes));
            bytes += step;
        }
        drawing.text("soft", LEFT, 14.0, "events/s");
        drawing.text("soft end", WIDTH - 16.0, HEIGHT - 6.0, "bytes an event");
    }
}

fn magnitude(power: i32) -> String {
    match power {
        0..3 => format!("{}", 10f64.powi(power)),
        3..6 => format!("{} k", 10f64.powi(power - 3)),
        6..9 => format!("{} M", 10f64.powi(power - 6)),
        _ => format!("10^{power}"),
    }
}

/// The speed is that of the first of these tasks that has rows.
const READING: [&str; 2] = ["nostr-deserialize", "nostr-validated"];
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 370.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_codec_is_a_point_if_its_format_has_a_size_and_it_has_a_speed() {
        let results = samples::results();
        let points = points(&results);
        assert!(points.len() >= 6);
        assert!(points.is_sorted_by(|a, b| a.bytes <= b.bytes));
        assert!(points.iter().all(|point| !point.format.contains(['/', '@'])));
    }
}
