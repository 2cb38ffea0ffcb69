//! Labels of points, placed where they cover neither each other nor a point.

use super::{Drawing, text_width};

/// A rectangle of the drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Area {
    /// The square around a place.
    fn around((x, y): (f64, f64), reach: f64) -> Self {
        Self { left: x - reach, right: x + reach, top: y - reach, bottom: y + reach }
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn holds(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right <= self.right
            && self.top <= other.top
            && other.bottom <= self.bottom
    }
}

/// The labels that are placed, and the room that is left.
pub(super) struct Labels {
    frame: Area,
    points: Vec<(f64, f64)>,
    /// Labels, points and the lines between them.
    used: Vec<Area>,
    /// Lines across the frame, which the line of a label may cross.
    lines: Vec<Area>,
}

/// A text next to its point, with a line to it if it is further away.
pub(super) struct Label {
    text: String,
    area: Area,
    /// Whether the text ends at its point.
    is_left: bool,
    line: Option<[(f64, f64); 2]>,
}

impl Labels {
    /// No label yet, inside the frame, around these points and between lines at these heights.
    pub(super) fn between(
        frame: Area,
        points: impl Iterator<Item = (f64, f64)>,
        lines: &[f64],
    ) -> Self {
        let line = |y: &f64| Area { top: y - 0.5, bottom: y + 0.5, ..frame };
        let points: Vec<_> = points.collect();
        let used = points.iter().map(|point| Area::around(*point, RADIUS + 1.0)).collect();
        Self { frame, points, used, lines: lines.iter().map(line).collect() }
    }

    /// Places a label where there is room, nearer to its point than to others if possible; `None` without room.
    pub(super) fn place(&mut self, point: (f64, f64), text: &str, is_bold: bool) -> Option<Label> {
        let width = text_width(text, FONT, is_bold);
        let free = |offset: (f64, f64)| self.free_at(point, offset, width);
        let clear = || offsets().filter(|offset| !self.is_nearer_to_another(point, *offset));
        let label = clear().find_map(free).or_else(|| offsets().find_map(free))?;
        self.used.push(label.area);
        if let Some([from, to]) = label.line {
            self.used.extend(along(from, to));
        }
        Some(Label { text: text.to_owned(), ..label })
    }

    /// Whether the end of a label at an offset from its point is nearer to another point.
    fn is_nearer_to_another(&self, (x, y): (f64, f64), (right, down): (f64, f64)) -> bool {
        let distance = |other: &(f64, f64)| (x + right - other.0).hypot(y + down - other.1);
        let own = right.hypot(down) - 1.0;
        self.points.iter().any(|other| distance(other) < own)
    }

    /// The label at an offset from the point to the nearer end of the text, if all of that is free.
    fn free_at(&self, (x, y): (f64, f64), (right, down): (f64, f64), width: f64) -> Option<Label> {
        let left = if right > 0.0 { x + right } else { x + right - width };
        let middle = y + down;
        let area = Area {
            left,
            right: left + width,
            top: middle - HEIGHT / 2.0,
            bottom: middle + HEIGHT / 2.0,
        };
        let is_free = |area: &Area| !self.used.iter().any(|used| used.meets(area));
        let is_on_line = self.lines.iter().any(|line| line.meets(&area));
        if !self.frame.holds(&area) || is_on_line || !is_free(&area) {
            return None;
        }
        let is_far = down.abs() > HEIGHT / 2.0 || right.abs() > NEAR;
        let end = if right > 0.0 { area.left - 1.0 } else { area.right + 1.0 };
        let line = is_far.then(|| [outside((x, y), (end, middle)), (end, middle)]);
        let is_crossing =
            line.is_some_and(|[from, to]| !along(from, to).all(|area| is_free(&area)));
        let is_left = right < 0.0;
        (!is_crossing).then(|| Label { text: String::new(), area, is_left, line })
    }
}

impl Label {
    pub(super) fn draw(&self, drawing: &mut Drawing, is_bold: bool) {
        if let Some([from, to]) = self.line {
            drawing.line("leader", from, to);
        }
        let owner = if is_bold { " ours" } else { "" };
        let (x, end) = if self.is_left { (self.area.right, " end") } else { (self.area.left, "") };
        let class = format!("label{owner}{end}");
        drawing.text(&class, x, self.area.bottom - 3.5, &self.text);
    }
}

/// Offsets from a point to the nearer end of its label, the nearest first.
fn offsets() -> impl Iterator<Item = (f64, f64)> {
    let rights = [NEAR, 22.0, 40.0, 64.0, 96.0];
    let downs = (0..=14).map(|step| 7.0 * f64::from(step));
    let mut offsets: Vec<(f64, f64)> = downs
        .flat_map(|down| rights.map(|right| (right, down)))
        .flat_map(|(right, down)| [(right, down), (-right, down), (right, -down), (-right, -down)])
        .collect();
    offsets.sort_by(|a, b| a.0.hypot(a.1).total_cmp(&b.0.hypot(b.1)));
    offsets.into_iter()
}

/// Where a line from a point to an end leaves the point's dot.
fn outside((x, y): (f64, f64), (to_x, to_y): (f64, f64)) -> (f64, f64) {
    let gap = RADIUS + 4.5;
    let part = gap / (to_x - x).hypot(to_y - y).max(gap);
    (x + part * (to_x - x), y + part * (to_y - y))
}

/// Small areas along a line.
fn along((x, y): (f64, f64), (to_x, to_y): (f64, f64)) -> impl Iterator<Item = Area> {
    (1..=12).map(move |step| {
        let part = f64::from(step) / 12.0;
        Area::around((x + part * (to_x - x), y + part * (to_y - y)), 0.5)
    })
}

/// The radius of a point.
pub(super) const RADIUS: f64 = 5.0;
/// The size of labels in pixels, and the height of their line.
const FONT: f64 = 11.0;
const HEIGHT: f64 = 14.0;
/// From the middle of a point to a label without a line.
const NEAR: f64 = 9.0;
