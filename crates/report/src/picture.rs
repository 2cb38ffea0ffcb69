//! Scales, number formats, and pictures inside tables: bars with a point for every pass, in percent of the available width,
//! each with its description.

use bench::Row;
use bench::terminal::speed;

use crate::html::{Html, Tag, tag};

/// A picture with a description in words.
pub(crate) fn picture(class: &str, words: &str) -> Tag {
    tag("svg").class(class).attr("role", "img").attr("aria-label", words)
}

/// A row's median as a bar, and each of its passes as a point.
pub(crate) fn speed_bar(row: &Row, greatest: f64) -> Html {
    let Some(median) = median(row) else { return Html::default() };
    let bar = tag("rect")
        .class("bar")
        .attr("y", BAR_TOP)
        .attr("height", BAR)
        .attr("rx", 2)
        .attr("width", percent(median, greatest));
    let points = passes(row).into_iter().map(|pass| {
        let at = percent(pass, greatest);
        tag("circle").class("pass").attr("cx", at).attr("cy", MIDDLE).attr("r", "2.5")
    });
    picture("speed", &words(row)).with(bar).with_all(points).into()
}

fn words(row: &Row) -> String {
    let (Some(rate), passes) = (row.per_s, row.passes_ns.len()) else { return String::new() };
    let median = speed::sentence(&row.unit, rate.median);
    match passes {
        0 | 1 => format!("{median}, one pass"),
        passes => {
            format!("median {median}, {passes} passes from {}", speed::range(&row.unit, rate))
        }
    }
}

/// Stacked parts, each with its name.
pub(crate) fn stacked_bar(parts: &[(&str, f64)], greatest: f64, words: &str) -> Html {
    let mut start = 0.0;
    let rects = parts.iter().enumerate().map(|(at, (name, size))| {
        let rect = tag("rect")
            .class(&format!("part part-{at}"))
            .attr("x", percent(start, greatest))
            .attr("y", BAR_TOP)
            .attr("height", BAR)
            .attr("width", percent(*size, greatest))
            .with(tag("title").text(name));
        start += size;
        rect
    });
    let rects: Vec<Tag> = rects.collect();
    picture("speed", words).with_all(rects).into()
}

/// Numbers over time, on a scale from zero to the greatest.
pub(crate) fn line(numbers: &[Option<f64>], words: &str) -> Html {
    let known = || numbers.iter().flatten().copied();
    let (least, greatest) = (known().fold(f64::MAX, f64::min), known().fold(f64::MIN, f64::max));
    let room = (greatest - least).max(0.1 * greatest.abs()).max(f64::MIN_POSITIVE);
    let last = (numbers.len().max(2) - 1) as f64;
    let place = |at: usize, number: f64| {
        let x = 4.0 + 92.0 * at as f64 / last;
        let y = 20.0 - 16.0 * ((number - least) / room);
        (format!("{x:.1}%"), format!("{y:.1}"))
    };
    let points: Vec<(usize, f64)> =
        numbers.iter().enumerate().filter_map(|(at, number)| Some((at, (*number)?))).collect();
    let segments = points.windows(2).map(|pair| {
        let [(x1, y1), (x2, y2)] = [pair[0], pair[1]].map(|(at, number)| place(at, number));
        tag("line").class("way").attr("x1", x1).attr("y1", y1).attr("x2", x2).attr("y2", y2)
    });
    let dots = points.iter().map(|(at, number)| {
        let (x, y) = place(*at, *number);
        tag("circle").class("pass").attr("cx", x).attr("cy", y).attr("r", "2.5")
    });
    picture("time", words).with_all(segments).with_all(dots).into()
}

const BAR_TOP: u32 = 7;
const BAR: u32 = 10;
const MIDDLE: u32 = 12;

/// The displayed number of a row with `per_s` units a second: a speed, or a time for long units.
pub(crate) fn value(unit: &str, per_s: f64) -> f64 {
    if speed::is_long(unit) { 1e3 / per_s } else { per_s }
}

/// The row's number at the median.
pub(crate) fn median(row: &Row) -> Option<f64> {
    row.median().map(|per_s| value(&row.unit, per_s))
}

/// The number of each of its passes.
pub(crate) fn passes(row: &Row) -> Vec<f64> {
    let per_s = |ns: &u64| row.units as f64 * 1e9 / (*ns).max(1) as f64;
    row.passes_ns.iter().map(|ns| value(&row.unit, per_s(ns))).collect()
}

/// The greatest number of any pass of these rows that may be ranked; more than zero.
pub(crate) fn greatest<'r>(rows: impl IntoIterator<Item = &'r Row>) -> f64 {
    let passes = rows.into_iter().filter(|row| row.is_ranked()).flat_map(passes);
    passes.fold(f64::MIN_POSITIVE, f64::max)
}

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
    fn a_ratio_has_three_digits_or_all_of_a_great_one() {
        assert_eq!([0.456, 7.0, 30.04, 1234.4].map(ratio), ["0.46", "7.00", "30.0", "1234"]);
    }
}
