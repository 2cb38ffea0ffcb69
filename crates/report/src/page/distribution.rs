//! How even a row is: percentiles over parts of a pass as a table, and all passes as a box plot.

use bench::{Chunks, Row};

use super::{Placed, anchor};
use crate::charts::{Drawing, place, short, step};
use crate::html::{self, Tag, tag};

/// Nanoseconds per unit over small parts of a pass; `None` if no row has them.
pub(super) fn evenness(rows: &[Placed<'_>]) -> Option<Tag> {
    let known: Vec<(&Row, Chunks)> =
        rows.iter().filter_map(|(_, row)| Some((*row, row.chunks?))).collect();
    let of = known.first()?.1.events;
    let rows = known.iter().map(|(row, chunks)| {
        let Chunks { p50_ns, p95_ns, p99_ns, max_ns, .. } = *chunks;
        let [a, b, c, d] = [p50_ns, p95_ns, p99_ns, max_ns].map(bench::terminal::thousands);
        [row.peer.clone(), row.variant.clone(), a, b, c, d]
    });
    let caption = format!("Nanoseconds per event, over parts of {of} events");
    let table = html::plain_table(
        &caption,
        ["peer", "variant", "median", "95 of 100", "99 of 100", "slowest"],
        2,
        rows,
    );
    let summary = tag("summary").text("How even a pass is");
    Some(tag("details").class("block").with(summary).with(table))
}

/// The passes of each row as a box plot; `None` if every row has a single pass.
pub(super) fn passes(task: &str, rows: &[Placed<'_>]) -> Option<Tag> {
    let rows: Vec<Passes> = rows.iter().filter_map(|(_, row)| Passes::of(row)).collect();
    (!rows.is_empty()).then(|| {
        let summary = tag("summary").text("All passes of each row");
        let text = "Each pass relative to the median of its row: a box holds the middle half, a point is a pass. \
                    The same numbers are in the table above as slowest and fastest.";
        let words: Vec<String> = rows.iter().map(Passes::words).collect();
        let words = format!("Passes relative to the median of each row. {}", words.join("; "));
        tag("details")
            .class("block distribution")
            .attr("data-task", task)
            .attr("id", format!("{}-passes", anchor(task)))
            .with(summary)
            .with(tag("p").text(text))
            .with(tag("div").class("frame").attr("tabindex", 0).attr("role", "region")
                .attr("aria-label", "Chart of passes")
                .with(draw(&rows).inline(&words).class("distribution")))
    })
}

/// The passes of a row in percent of its median, sorted; more is faster.
struct Passes {
    name: String,
    percent: Vec<f64>,
}

impl Passes {
    fn of(row: &Row) -> Option<Self> {
        let median = row.median().filter(|_| row.passes_ns.len() > 1)?;
        let per_s = |ns: &u64| row.units as f64 * 1e9 / (*ns).max(1) as f64;
        let percent = |ns| 100.0 * (per_s(ns) / median - 1.0);
        let mut percent: Vec<f64> = row.passes_ns.iter().map(percent).collect();
        percent.sort_by(f64::total_cmp);
        Some(Self { name: format!("{} · {}", row.peer, row.variant), percent })
    }

    /// The linearly interpolated quantile at `share` of the passes.
    fn quantile(&self, share: f64) -> f64 {
        let at = share * (self.percent.len() - 1) as f64;
        let [below, above] = [at.floor(), at.ceil()].map(|at| self.percent[at as usize]);
        below + (above - below) * at.fract()
    }

    /// The farthest passes within one and a half box lengths of the box.
    fn whiskers(&self) -> (f64, f64) {
        let (low, high) = (self.quantile(0.25), self.quantile(0.75));
        let reach = 1.5 * (high - low);
        let inside =
            || self.percent.iter().copied().filter(|it| *it >= low - reach && *it <= high + reach);
        (inside().fold(low, f64::min), inside().fold(high, f64::max))
    }

    fn words(&self) -> String {
        let (first, last) = (self.percent[0], self.percent[self.percent.len() - 1]);
        format!("{}: {first:+.1} to {last:+.1} %", self.name)
    }
}

fn draw(rows: &[Passes]) -> Drawing {
    let bottom = TOP + LINE * rows.len() as f64;
    let mut drawing = Drawing::new(WIDTH, bottom + 40.0);
    let all = || rows.iter().flat_map(|row| &row.percent).copied().filter(|it| it.is_finite());
    let (least, most) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
    let step = step((most - least).max(0.1));
    let (least, most) =
        ((least / step).floor(), (most / step).ceil().max((least / step).floor() + 1.0));
    let across = |percent: f64| {
        let share = (percent / step - least) / (most - least);
        LEFT + (WIDTH - LEFT - 16.0) * share.clamp(0.0, 1.0)
    };
    for tick in least as i64..=most as i64 {
        let (percent, x) = (tick as f64 * step, across(tick as f64 * step));
        let class = if tick == 0 { "zero" } else { "grid" };
        drawing.line(class, (x, TOP - 4.0), (x, bottom));
        drawing.text("tick middle", x, bottom + 16.0, &format!("{percent:+}"));
    }
    drawing.text(
        "soft end",
        WIDTH - 16.0,
        bottom + 34.0,
        "percent faster or slower than the row’s median",
    );
    for (at, row) in rows.iter().enumerate() {
        let y = TOP + LINE * (at as f64 + 0.5);
        drawing.text("label end", LEFT - 12.0, y + 4.0, &short(&row.name, 44));
        draw_row(&mut drawing, row, y, &across);
    }
    drawing
}

fn draw_row(drawing: &mut Drawing, row: &Passes, y: f64, across: &dyn Fn(f64) -> f64) {
    let ((low, high), [from, middle, to]) =
        (row.whiskers(), [0.25, 0.5, 0.75].map(|it| row.quantile(it)));
    drawing.line("whisker", (across(low), y), (across(high), y));
    drawing.add(
        tag("rect")
            .class("box")
            .attr("x", place(across(from)))
            .attr("y", place(y - 6.0))
            .attr("width", place(across(to) - across(from)))
            .attr("height", 12),
    );
    drawing.line("middle-line", (across(middle), y - 6.0), (across(middle), y + 6.0));
    for pass in &row.percent {
        let circle = tag("circle").class("pass").attr("cx", place(across(*pass)));
        drawing.add(circle.attr("cy", place(y)).attr("r", "2.5"));
    }
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 300.0;
const TOP: f64 = 16.0;
const LINE: f64 = 22.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_holds_the_middle_half_and_whiskers_leave_out_far_passes() {
        let passes =
            Passes { name: String::new(), percent: vec![-90.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0] };
        assert_eq!([0.25, 0.5, 0.75].map(|share| passes.quantile(share)), [-1.5, 0.0, 1.5]);
        assert_eq!(passes.whiskers(), (-2.0, 3.0));
    }

    #[test]
    fn every_pass_is_a_point_and_the_picture_has_words() {
        let results = crate::samples::results();
        let row =
            results.rows.iter().find(|row| row.is_ranked() && row.passes_ns.len() > 1).unwrap();
        let chart = html::Html::from(passes(&row.task, &[(0, row)]).unwrap());
        assert_eq!(chart.as_str().matches("<circle").count(), row.passes_ns.len());
        assert!(chart.as_str().contains("aria-label=\"Passes relative"));
    }
}
