//! How is a number drawn? As a bar with a point for every pass, in percent of the width it is given, so
//! that it fits a phone and a wall. What is drawn is also said in words.

use bench::Row;
use bench::terminal::speed;

use crate::html::{Html, Tag, tag};
use crate::scale;

/// A picture with what it shows in words.
pub(crate) fn picture(class: &str, words: &str) -> Tag {
    tag("svg").class(class).attr("role", "img").attr("aria-label", words)
}

/// A row's median as a bar, and each of its passes as a point.
pub(crate) fn speed_bar(row: &Row, greatest: f64) -> Html {
    let Some(median) = scale::median(row) else { return Html::default() };
    let bar = tag("rect")
        .class("bar")
        .attr("y", BAR_TOP)
        .attr("height", BAR)
        .attr("rx", 2)
        .attr("width", scale::percent(median, greatest));
    let points = scale::passes(row).into_iter().map(|pass| {
        let at = scale::percent(pass, greatest);
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

/// Parts one behind the other, each with its name.
pub(crate) fn stacked_bar(parts: &[(&str, f64)], greatest: f64, words: &str) -> Html {
    let mut start = 0.0;
    let rects = parts.iter().enumerate().map(|(at, (name, size))| {
        let rect = tag("rect")
            .class(&format!("part part-{at}"))
            .attr("x", scale::percent(start, greatest))
            .attr("y", BAR_TOP)
            .attr("height", BAR)
            .attr("width", scale::percent(*size, greatest))
            .with(tag("title").text(name));
        start += size;
        rect
    });
    let rects: Vec<Tag> = rects.collect();
    picture("speed", words).with_all(rects).into()
}

/// Numbers over time, between nothing and the greatest.
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
