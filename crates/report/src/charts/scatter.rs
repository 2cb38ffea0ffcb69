//! Size against speed: a point per codec of a format, bytes per event to the right, events per second upwards on a
//! logarithmic scale.

use std::collections::HashMap;

use results::terminal::thousands;
use results::{Results, Row};

use super::labels::{Area, Labels, RADIUS};
use super::{Drawing, axis, place, short};
use crate::html::{Tag, tag};
use crate::picture::{self, share};

/// A codec of a format.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point<'r> {
    pub(crate) format: &'r str,
    pub(crate) peer: &'r str,
    pub(crate) bytes: f64,
    pub(crate) per_s: f64,
}

/// The codecs with a known size and speed, the smallest format first, without batches and parts of the corpus.
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

/// The chart, for the page; `source` is the machine and day.
pub(crate) fn svg(points: &[Point<'_>], source: &str) -> Tag {
    drawing(points, source)
        .inline("Size against reading speed of each codec, as in the table below")
}

/// The content in words.
pub(crate) fn words(points: &[Point<'_>]) -> String {
    let word = |point: &Point<'_>| {
        let Point { format, peer, bytes, per_s } = point;
        format!("{format} by {peer}: {bytes:.0} bytes, {} events/s", thousands(*per_s))
    };
    points.iter().map(word).collect::<Vec<_>>().join("; ")
}

pub(crate) fn drawing(points: &[Point<'_>], source: &str) -> Drawing {
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    heading(&mut drawing, source);
    let paper = Paper::of(points);
    paper.axes(&mut drawing);
    let placed: Vec<_> = points.iter().map(|point| (point, paper.place(point))).collect();
    // Labels may reach beyond the axes to the right.
    let frame = Area { right: WIDTH - 8.0, ..PLOT };
    let mut labels = Labels::between(frame, placed.iter().map(|(_, place)| *place), &paper.lines());
    for (point, (x, y)) in &placed {
        let ours = results::is_ours(point.peer);
        if let Some(label) = labels.place((*x, *y), &label_of(point), ours) {
            label.draw(&mut drawing, ours);
        }
    }
    for (point, (x, y)) in &placed {
        let title = tag("title").text(words(std::slice::from_ref(point)));
        drawing.add(dot(*x, *y, results::is_ours(point.peer)).with(title));
    }
    drawing
}

fn heading(drawing: &mut Drawing, source: &str) {
    drawing.text("title", 16.0, 26.0, TITLE);
    drawing.text("soft", 16.0, 46.0, &short(source, 104));
    drawing.add(dot(22.0, 64.0, true));
    drawing.text("soft", 32.0, 68.0, "wireproof");
    drawing.add(dot(122.0, 64.0, false));
    drawing.text(
        "soft",
        132.0,
        68.0,
        "other implementations; smaller is further left, faster is higher",
    );
    drawing.text("soft", 16.0, 90.0, UP);
    drawing.text("soft end", PLOT.right, HEIGHT - 12.0, ACROSS);
}

fn dot(x: f64, y: f64, ours: bool) -> Tag {
    let circle = tag("circle").class(if ours { "dot ours" } else { "dot" });
    circle.attr("cx", place(x)).attr("cy", place(y)).attr("r", RADIUS)
}

/// The format; with the implementation, if it is not ours.
fn label_of(point: &Point<'_>) -> String {
    if point.peer == results::PEER {
        return short(point.format, 34);
    }
    short(&format!("{} · {}", point.format, point.peer), 40)
}

/// The axes.
struct Paper {
    bytes: Vec<f64>,
    /// The ends of the axis, and its ticks.
    per_s: [f64; 2],
    ticks: Vec<f64>,
}

impl Paper {
    fn of(points: &[Point<'_>]) -> Self {
        let range = |number: fn(&Point<'_>) -> f64| {
            let numbers = || points.iter().map(number);
            (numbers().fold(f64::MAX, f64::min), numbers().fold(0.0, f64::max))
        };
        let (lightest, heaviest) = range(|point| point.bytes);
        let (slowest, fastest) = range(|point| point.per_s);
        let bytes = axis::linear_ticks(lightest, heaviest);
        let per_s = [slowest / MARGIN, fastest * MARGIN];
        let enclosing = axis::log_ticks(per_s[0], per_s[1]);
        let is_inside = |tick: &&f64| per_s[0] <= **tick && **tick <= per_s[1];
        let ticks: Vec<f64> = enclosing.iter().filter(is_inside).copied().collect();
        if ticks.len() < 2 {
            return Self { bytes, per_s: ends(&enclosing), ticks: enclosing };
        }
        Self { bytes, per_s, ticks }
    }

    fn place(&self, point: &Point<'_>) -> (f64, f64) {
        (self.across(point.bytes), self.up(point.per_s))
    }

    fn across(&self, bytes: f64) -> f64 {
        let [least, greatest] = ends(&self.bytes);
        PLOT.left + (PLOT.right - PLOT.left) * share(bytes - least, greatest - least)
    }

    fn up(&self, per_s: f64) -> f64 {
        let [least, greatest] = self.per_s;
        PLOT.bottom
            - (PLOT.bottom - PLOT.top) * share((per_s / least).ln(), (greatest / least).ln())
    }

    /// The heights of the lines across the paper.
    fn lines(&self) -> Vec<f64> {
        self.ticks.iter().map(|tick| self.up(*tick)).collect()
    }

    fn axes(&self, drawing: &mut Drawing) {
        for tick in &self.ticks {
            let y = self.up(*tick);
            drawing.line("grid", (PLOT.left, y), (PLOT.right, y));
            drawing.text("tick end", PLOT.left - 8.0, y + 4.0, &axis::label(*tick));
        }
        drawing.line("grid", (PLOT.left, PLOT.bottom), (PLOT.right, PLOT.bottom));
        for tick in &self.bytes {
            let x = self.across(*tick);
            drawing.line("grid", (x, PLOT.bottom), (x, PLOT.bottom + 5.0));
            drawing.text("tick middle", x, PLOT.bottom + 20.0, &axis::label(*tick));
        }
    }
}

fn ends(ticks: &[f64]) -> [f64; 2] {
    [ticks[0], ticks[ticks.len() - 1]]
}

/// The speed comes from the first of these tasks that has rows.
const READING: [&str; 2] = ["nostr-deserialize", "nostr-validated"];
const TITLE: &str = "Formats of Nostr events: size against reading speed";
const UP: &str = "events read per second, logarithmic scale";
const ACROSS: &str = "bytes per event";
/// The ends of the axis of speeds, as a factor to the slowest and the fastest.
const MARGIN: f64 = 1.15;
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 640.0;
const PLOT: Area = Area { left: 76.0, right: 832.0, top: 106.0, bottom: 580.0 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charts::boxes;
    use crate::samples;

    #[test]
    fn a_codec_is_a_point_if_its_format_has_a_size_and_it_has_a_speed() {
        let results = samples::results();
        let points = points(&results);
        assert!(points.len() >= 6);
        assert!(points.is_sorted_by(|a, b| a.bytes <= b.bytes));
        assert!(points.iter().all(|point| !point.format.contains(['/', '@'])));
    }

    fn svg_of(points: &[Point<'_>]) -> String {
        crate::html::Html::from(svg(points, "a machine")).as_str().to_owned()
    }

    #[test]
    fn the_chart_has_a_title_and_axes_with_names_and_units() {
        let results = samples::published();
        let svg = svg_of(&points(&results));
        for text in [TITLE, ACROSS, UP] {
            assert!(svg.contains(&format!(">{text}</text>")), "{text}");
        }
    }

    #[test]
    fn every_point_of_the_published_run_has_a_label() {
        let results = samples::published();
        let points = points(&results);
        let svg = svg_of(&points);
        assert!(points.len() > 30);
        for point in &points {
            let label = format!(">{}</text>", label_of(point));
            assert!(svg.contains(&label), "{label}");
        }
    }

    #[test]
    fn no_text_covers_another_or_a_point_however_crowded_the_points_are() {
        let long = "a-format-whose-name-is-far-longer-than-any-that-is-known".to_owned();
        let formats: Vec<String> = (0..80)
            .map(|at| if at % 7 == 0 { long.clone() } else { format!("format-{at}") })
            .collect();
        let spread = |seed: u64, range: f64| {
            let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            range * random as f64 / f64::from(1 << 24)
        };
        for (bytes, power) in [(0.0, 0.0), (40.0, 0.2), (2_000.0, 2.0), (1e9, 12.0)] {
            let points: Vec<Point<'_>> = (0..80_u64)
                .map(|at| Point {
                    format: &formats[at as usize],
                    peer: if at % 3 == 0 { results::PEER } else { "rust-another-library" },
                    bytes: 100.0 + spread(2 * at + 1, bytes),
                    per_s: 1e4 * 10f64.powf(spread(2 * at + 2, power)),
                })
                .collect();
            for some in [&points[..1], &points[..2], &points[..20], &points] {
                let svg = svg_of(some);
                assert_eq!(boxes::faults(&svg), Vec::<String>::new(), "{bytes} {power}");
                assert_eq!(svg.matches("<circle").count(), some.len() + 2);
            }
        }
    }
}
