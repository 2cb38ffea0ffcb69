//! The stages of a repository: a mark per stage and peer, on a logarithmic axis of milliseconds.

use std::collections::HashSet;

use results::{Results, Row};

use super::{Chart, Drawing, axis, file, place, short, source};
use crate::html::{Tag, tag};
use crate::picture::{stage_names, stage_times};

/// The picture of the rows of a task that have stages, the fastest of every peer; nothing if none has.
pub(super) fn chart(results: &Results, rows: &[Row]) -> Option<Chart> {
    let staged = rows.iter().filter(|row| row.is_ranked() && !row.stages_ns.is_empty());
    let staged: Vec<&Row> = staged.collect();
    let group = staged.first()?.group();
    let mut seen = HashSet::new();
    let best = staged.into_iter().filter(|row| row.group() == group);
    let best: Vec<&Row> = best.filter(|row| seen.insert(row.peer.as_str())).take(MOST).collect();
    let drawing = draw(results, &best).describe(TITLE, &words(&best));
    let name = format!("{}-stages", short(&best[0].task, 40));
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    is_plain.then(|| Chart { name, svg: file(drawing) })
}

fn draw(results: &Results, rows: &[&Row]) -> Drawing {
    let names = stage_names(rows);
    let bottom = TOP + LINE * rows.len() as f64;
    let mut drawing = Drawing::new(WIDTH, bottom + 48.0);
    drawing.text("title", LEFT, 26.0, TITLE);
    let about =
        "Median time of each stage; further left is faster. Stages under 0.01 ms are not drawn.";
    drawing.text("soft", LEFT, 46.0, about);
    let apart = "a stage that a peer does not time apart is in the one before it";
    drawing.text("soft", LEFT, 63.0, &short(&format!("{}; {apart}", source(results)), 108));
    legend(&mut drawing, &names);
    drawing.text("soft end", WIDTH - LEFT, 90.0, WHOLE);
    let scale = Milliseconds::of(rows, &names);
    scale.draw(&mut drawing, bottom);
    for (at, row) in rows.iter().enumerate() {
        line(&mut drawing, row, &names, &scale, TOP + LINE * at as f64);
    }
    drawing
}

fn legend(drawing: &mut Drawing, names: &[&str]) {
    let keys = names.iter().copied().enumerate().map(|(at, name)| (Some(at), name));
    let keys = std::iter::once((None, WHOLE)).chain(keys).take(KEYS);
    for (place, (at, name)) in keys.enumerate() {
        let x = LEFT + 6.0 + 98.0 * place as f64;
        drawing.add(at.map_or_else(|| whole_mark(x, 86.0), |at| mark(at, x, 86.0)));
        drawing.text("soft", x + 10.0, 90.0, &short(name, 11));
    }
}

/// The name, the marks and the whole time of a row.
fn line(drawing: &mut Drawing, row: &Row, names: &[&str], scale: &Milliseconds, top: f64) {
    let class = if results::is_ours(&row.peer) { "name ours" } else { "name" };
    drawing.text(class, BARS - 12.0, top + 17.0, &short(&row.peer, 20));
    let middle = top + 13.0;
    drawing.line("grid", (BARS, middle), (BARS + ROOM, middle));
    let whole = whole(row, names);
    drawing.add(whole_mark(scale.along(whole), middle));
    for (name, ms) in stage_times(row, names).into_iter().filter(|(_, ms)| *ms >= LEAST_MS) {
        let at = names.iter().position(|known| *known == name).unwrap_or_default();
        let title = tag("title").text(format!("{name} {ms:.2} ms"));
        drawing.add(mark(at, scale.along(ms), middle).with(title));
    }
    drawing.text("number", WIDTH - LEFT, top + 17.0, &format!("{whole:.2} ms"));
}

fn whole(row: &Row, names: &[&str]) -> f64 {
    stage_times(row, names).iter().map(|(_, ms)| ms).sum()
}

/// The mark of a stage: the first four have different shapes, as colours alone do not tell them apart for everyone.
fn mark(at: usize, x: f64, y: f64) -> Tag {
    let corners: &[(f64, f64)] = match at {
        0 => return tag("circle").class("part-0").attr("cx", place(x)).attr("cy", y).attr("r", 5),
        1 => &[(-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)],
        2 => &[(0.0, -6.0), (5.5, 4.5), (-5.5, 4.5)],
        _ => &[(0.0, -6.5), (6.5, 0.0), (0.0, 6.5), (-6.5, 0.0)],
    };
    let corner = |(right, down): &(f64, f64)| format!("{},{}", place(x + right), place(y + down));
    let corners = corners.iter().map(corner).collect::<Vec<_>>().join(" ");
    tag("polygon").class(&format!("part-{at}")).attr("points", corners)
}

fn whole_mark(x: f64, y: f64) -> Tag {
    let bar = tag("rect").class("whole").attr("x", place(x - 1.0)).attr("y", place(y - 9.0));
    bar.attr("width", 2).attr("height", 18)
}

/// The logarithmic axis.
struct Milliseconds {
    ticks: Vec<f64>,
}

impl Milliseconds {
    fn of(rows: &[&Row], names: &[&str]) -> Self {
        let times = rows.iter().flat_map(|row| stage_times(row, names));
        let least = times.map(|(_, ms)| ms).filter(|ms| *ms >= LEAST_MS).fold(1.0, f64::min);
        let greatest = rows.iter().map(|row| whole(row, names)).fold(1.0, f64::max);
        Self { ticks: axis::powers_of_ten(least, greatest) }
    }

    fn along(&self, ms: f64) -> f64 {
        let [least, greatest] = [self.ticks[0], self.ticks[self.ticks.len() - 1]];
        BARS + ROOM * ((ms / least).ln() / (greatest / least).ln()).clamp(0.0, 1.0)
    }

    fn draw(&self, drawing: &mut Drawing, bottom: f64) {
        for tick in &self.ticks {
            let x = self.along(*tick);
            drawing.line("grid", (x, TOP), (x, bottom + 4.0));
            drawing.text("tick middle", x, bottom + 18.0, &axis::label(*tick));
        }
        drawing.text("soft middle", BARS + ROOM / 2.0, bottom + 38.0, AXIS);
    }
}

fn words(rows: &[&Row]) -> String {
    let names = stage_names(rows);
    let row = |row: &&Row| {
        let parts = stage_times(row, &names);
        let parts: Vec<String> =
            parts.iter().map(|(name, ms)| format!("{name} {ms:.2} ms")).collect();
        format!("{}: {}", row.peer, parts.join(", "))
    };
    format!("{AXIS}. {}", rows.iter().map(row).collect::<Vec<_>>().join("; "))
}

const TITLE: &str = "Verifying a whole repository, stage by stage";
const AXIS: &str = "milliseconds, logarithmic scale";
/// The name of the sum of all stages.
const WHOLE: &str = "all stages";
/// The shortest stage that is drawn: a logarithmic axis has no zero.
const LEAST_MS: f64 = 0.01;
/// Names in the legend.
const KEYS: usize = 7;
/// Peers in one picture.
const MOST: usize = 16;
const WIDTH: f64 = 800.0;
const LEFT: f64 = 16.0;
const TOP: f64 = 104.0;
const LINE: f64 = 26.0;
const BARS: f64 = 180.0;
const ROOM: f64 = 490.0;

#[cfg(test)]
mod tests {
    use crate::samples;

    #[test]
    fn the_axis_is_logarithmic_and_says_so_with_a_tick_for_each_power_of_ten() {
        let mut charts = crate::charts(&samples::published(), None).into_iter();
        let svg = charts.find(|chart| chart.name == "repo-stages").unwrap().svg;
        assert!(svg.contains(">milliseconds, logarithmic scale</text>"));
        let tick = |label: &str| {
            let before = svg.split_once(&format!(" class=\"tick middle\">{label}</text>")).unwrap();
            let x = before.0.rsplit_once("<text x=\"").unwrap().1;
            x.split_once('"').unwrap().0.parse::<f64>().unwrap()
        };
        let places = ["0.01", "0.1", "1", "10", "100", "1,000", "10,000"].map(tick);
        let step = places[1] - places[0];
        assert!(step > 20.0);
        assert!(places.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() < 0.2), "{places:?}");
    }
}
