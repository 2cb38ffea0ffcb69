//! Scales, number formats, and pictures inside tables: bars in percent of the available width, with their descriptions.

use results::Row;
use results::terminal::{ratio as names, speed};

use crate::html::{Html, Tag, tag};

/// A picture with a description in words.
pub(crate) fn picture(words: &str) -> Tag {
    tag("svg").attr("role", "img").attr("aria-label", words)
}

/// A row's median as a bar, for the cell next to the number.
pub(crate) fn speed_bar(row: &Row, scale: &Scale) -> Html {
    let Some(median) = median(row) else { return Html::default() };
    let bar = tag("rect").class("bar").attr("width", percent(scale.along(median), 1.0));
    tag("svg").attr("aria-hidden", "true").with(bar).into()
}

/// Stacked parts with their names.
pub(crate) fn stacked_bar(parts: &[(&str, f64)], greatest: f64, words: &str) -> Html {
    let mut start = 0.0;
    let rects = parts.iter().enumerate().map(|(at, (name, size))| {
        let rect = tag("rect")
            .class(&format!("part part-{at}"))
            .attr("x", percent(start, greatest))
            .attr("width", percent(*size, greatest))
            .with(tag("title").text(name));
        start += size;
        rect
    });
    let rects: Vec<Tag> = rects.collect();
    picture(words).with_all(rects).into()
}

/// The displayed number of a row with `per_s` units a second: a speed, or a time for long units.
pub(crate) fn value(unit: &str, per_s: f64) -> f64 {
    if speed::is_long(unit) { 1e3 / per_s } else { per_s }
}

/// The row's number at the median.
pub(crate) fn median(row: &Row) -> Option<f64> {
    row.median().map(|per_s| value(&row.unit, per_s))
}

/// The numbers of its passes.
pub(crate) fn passes(row: &Row) -> Vec<f64> {
    let per_s = |ns: &u64| row.units as f64 * 1e9 / (*ns).max(1) as f64;
    row.passes_ns.iter().map(|ns| value(&row.unit, per_s(ns))).collect()
}

/// The scale of bars: from zero to the greatest number, or logarithmic where the numbers span more than [`SPAN`] times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// Where a logarithmic scale begins.
    least: Option<f64>,
    greatest: f64,
}

impl Scale {
    /// The scale of all passes of the ranked rows among these.
    pub(crate) fn of<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Self {
        let passes = rows.into_iter().filter(|row| row.is_ranked()).flat_map(passes);
        let (least, greatest) = passes
            .fold((f64::MAX, f64::MIN_POSITIVE), |(least, greatest), pass| {
                (least.min(pass), greatest.max(pass))
            });
        let is_wide = least > 0.0 && greatest > SPAN * least && greatest.is_finite();
        // A power of ten that leaves the least a visible bar.
        Self { least: is_wide.then(|| 10f64.powf((least.log10() - 0.3).floor())), greatest }
    }

    pub(crate) fn is_logarithmic(self) -> bool {
        self.least.is_some()
    }

    /// How far along the scale a number is, from 0 to 1.
    pub(crate) fn along(self, number: f64) -> f64 {
        match self.least {
            None => share(number, self.greatest),
            Some(least) => share((number / least).ln(), (self.greatest / least).ln()),
        }
    }

    /// The powers of ten within a logarithmic scale.
    pub(crate) fn powers(self) -> Vec<f64> {
        let Some(least) = self.least else { return Vec::new() };
        let powers = (0..40).map(|power| least * 10f64.powi(power));
        powers.take_while(|power| *power <= self.greatest).collect()
    }
}

/// The span from which a scale is logarithmic.
const SPAN: f64 = 20.0;

/// A part of the whole as an attribute of SVG, clamped to the whole.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    format!("{:.2}%", 100.0 * share(part, whole))
}

/// A part of the whole, clamped to 0 to 1; NaN is 0.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    let share = part / whole;
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
}

/// A ratio with three significant digits where it has a fraction.
pub(crate) fn ratio(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 100.0 => format!("{ratio:.0}"),
        ratio if ratio >= 10.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.2}"),
    }
}

/// The ratio of a row to another one, with its name: `3.10 × rust-shrike`; `None` without a speed of both.
pub(crate) fn ratio_to(row: &Row, other: &Row) -> Option<String> {
    Some(names::named(&ratio(row.median()? / other.median()?), row, other))
}

/// A number of bytes with its unit.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes >= 1e6 => format!("{:.1} MB", bytes / 1e6),
        bytes if bytes >= 1e3 => format!("{:.1} kB", bytes / 1e3),
        bytes => format!("{bytes} bytes"),
    }
}

/// Bytes per unit of a row.
pub(crate) fn per_unit(row: &Row, bytes: u64) -> f64 {
    bytes as f64 / row.units.max(1) as f64
}

/// The stages that some row has: the known ones in their order, then the others.
pub(crate) fn stage_names<'r>(rows: &[&'r Row]) -> Vec<&'r str> {
    let mut names: Vec<&str> =
        rows.iter().flat_map(|row| row.stages_ns.keys()).map(String::as_str).collect();
    let place = |name: &str| STAGES.iter().position(|known| *known == name).unwrap_or(STAGES.len());
    names.sort_by_key(|name| (place(name), *name));
    names.dedup();
    names
}

/// The stages of a row in milliseconds, at the median of its passes.
pub(crate) fn stage_times<'n>(row: &Row, names: &[&'n str]) -> Vec<(&'n str, f64)> {
    let ms = |name: &&'n str| Some((*name, median_ns(row.stages_ns.get(*name)?)? / 1e6));
    names.iter().filter_map(ms).collect()
}

fn median_ns(passes_ns: &[u64]) -> Option<f64> {
    let mut sorted = passes_ns.to_vec();
    sorted.sort();
    let [below, above] = [sorted.len().checked_sub(1)? / 2, sorted.len() / 2];
    Some(f64::midpoint(sorted[below] as f64, sorted[above] as f64))
}

/// The stages of a repository, in order.
pub(crate) const STAGES: [&str; 4] = ["parse", "signature", "walk", "rebuild"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stays_on_the_paper() {
        assert_eq!(percent(1.0, 4.0), "25.00%");
        assert_eq!(percent(5.0, 4.0), "100.00%");
        assert_eq!(percent(f64::INFINITY, f64::INFINITY), "0.00%");
    }

    #[test]
    fn a_scale_is_logarithmic_where_numbers_span_more_than_twenty_times() {
        let rows = |least: u64| {
            let mut results = crate::samples::results();
            let mut row = results.rows.swap_remove(0);
            (row.parity, row.units, row.passes_ns) =
                (results::Parity::Ok, 1_000, vec![1_000, least]);
            row.per_s = results::Rate::of(row.units, &row.passes_ns);
            row
        };
        let linear = Scale::of([&rows(20_000)]);
        assert!(!linear.is_logarithmic() && linear.powers().is_empty());
        assert_eq!(linear.along(5e8), 0.5);
        let wide = Scale::of([&rows(100_000)]);
        assert!(wide.is_logarithmic());
        assert_eq!(wide.powers(), [1e6, 1e7, 1e8, 1e9]);
        assert!((wide.along(1e7) - 1.0 / 3.0).abs() < 1e-9 && wide.along(1e9) == 1.0);
    }

    #[test]
    fn a_ratio_has_three_digits_or_all_of_a_great_one() {
        assert_eq!([0.456, 7.0, 30.04, 1234.4].map(ratio), ["0.46", "7.00", "30.0", "1234"]);
    }
}
