//! Charts as SVG files that are legible on light and dark backgrounds and describe themselves in words: one per
//! group that several peers have, one of the stages of a repository, one of sizes and speeds of formats.

mod axis;
mod bars;
#[cfg(test)]
mod boxes;
mod labels;
pub(crate) mod scatter;
mod stages;

use results::terminal::Baseline;
use results::{Results, Row};

use crate::html::{Html, Tag, tag};

/// A picture of some of the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// The file name, without an extension.
    pub name: String,
    /// The file.
    pub svg: String,
}

/// The pictures of a run, whose rows are in the order of the report.
///
/// `baseline` replaces the default rows that ratios are computed against.
pub fn charts(results: &Results, baseline: Option<&Baseline>) -> Vec<Chart> {
    let mut charts = Vec::new();
    for rows in results.rows.chunk_by(|a, b| a.task == b.task) {
        let kinds = rows.chunk_by(|a, b| a.group() == b.group());
        charts.extend(kinds.filter_map(|kind| bars::chart(results, kind, baseline)));
        charts.extend(stages::chart(results, rows));
    }
    let points = scatter::points(results);
    if !points.is_empty() {
        let drawing = scatter::drawing(&points, &source(results))
            .describe("Size against speed of formats of Nostr events", &scatter::words(&points));
        charts.push(Chart { name: "nostr-size-speed".to_owned(), svg: file(drawing) });
    }
    charts
}

/// A picture that is being drawn.
pub(crate) struct Drawing {
    width: f64,
    height: f64,
    inside: Html,
    words: Html,
}

impl Drawing {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, inside: Html::default(), words: Html::default() }
    }

    pub(crate) fn add(&mut self, part: Tag) {
        self.inside = std::mem::take(&mut self.inside).and(part);
    }

    /// A text that starts, is centred or ends at a place.
    pub(crate) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.add(tag("text").class(class).attr("x", place(x)).attr("y", place(y)).text(text));
    }

    pub(crate) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let line = tag("line").class(class).attr("x1", place(x1)).attr("y1", place(y1));
        self.add(line.attr("x2", place(x2)).attr("y2", place(y2)));
    }

    /// Adds a title and a description.
    pub(crate) fn describe(mut self, title: &str, words: &str) -> Self {
        self.words = Html::from(tag("title").attr("id", "title").text(title))
            .and(tag("desc").attr("id", "words").text(words));
        self
    }

    fn svg(self) -> Tag {
        tag("svg")
            .attr("viewBox", format!("0 0 {} {}", self.width, self.height))
            .attr("width", self.width)
            .attr("height", self.height)
            .with(self.words)
            .with(self.inside)
    }

    /// For the page, with the page's style; `words` describe the content.
    pub(crate) fn inline(self, words: &str) -> Tag {
        self.svg().class("drawing").attr("role", "img").attr("aria-label", words)
    }
}

/// A separate file with an embedded style.
fn file(mut drawing: Drawing) -> String {
    drawing.words = std::mem::take(&mut drawing.words).and(tag("style").text(STYLE));
    let svg = drawing
        .svg()
        .attr("xmlns", "http://www.w3.org/2000/svg")
        .attr("role", "img")
        .attr("aria-labelledby", "title words");
    format!("{}\n", Html::from(svg).as_str())
}

/// The machine and the day of the run.
pub(crate) fn source(results: &Results) -> String {
    let day = results.started.get(..10).unwrap_or(&results.started);
    let quick = results.settings.as_ref().is_some_and(|settings| settings.quick);
    let quick = if quick { ", a quick run" } else { "" };
    format!("{}, {day}{quick}", results.machine.cpu)
}

/// A name for a file.
fn file_name(row: &Row) -> String {
    let name = format!("{}-{}", row.task, row.group());
    let kept = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    name.chars().map(kept).take(80).collect()
}

/// A place on the paper with one digit.
pub(crate) fn place(at: f64) -> String {
    format!("{at:.1}")
}

/// A round step that divides `whole` into at most six parts.
pub(crate) fn step(whole: f64) -> f64 {
    let power = 10f64.powf((whole / 6.0).log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    power * factors.into_iter().find(|factor| whole / (power * factor) <= 6.0).unwrap_or(10.0)
}

/// The width of a text in the widest of the usual fonts of systems.
fn text_width(text: &str, font_size: f64, is_bold: bool) -> f64 {
    let each = if is_bold { 0.7 } else { 0.62 };
    each * font_size * text.chars().count() as f64
}

/// A name shortened to `most` characters.
pub(crate) fn short(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

/// Needs no escaping: it has no special characters.
const STYLE: &str = include_str!("../../page/chart.css");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn every_picture_says_in_words_what_it_shows_and_is_legible_on_both_papers() {
        let charts = charts(&samples::results(), None);
        assert!(
            charts.len() >= 4,
            "{:?}",
            charts.iter().map(|chart| &chart.name).collect::<Vec<_>>()
        );
        for Chart { name, svg } in &charts {
            assert!(
                svg.contains("<title id=\"title\">") && svg.contains("<desc id=\"words\">"),
                "{name}"
            );
            assert!(svg.contains("prefers-color-scheme"), "{name}");
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
        }
    }

    #[test]
    fn a_peer_that_is_called_like_markup_is_a_text_in_the_picture() {
        let mut results = samples::results();
        for row in &mut results.rows {
            row.peer = format!("{}<script>", row.peer);
        }
        for Chart { svg, .. } in charts(&results, None) {
            assert!(!svg.contains("<script"));
        }
    }

    #[test]
    fn no_text_of_a_picture_covers_another_or_the_edge() {
        let mut long = samples::results();
        for row in &mut long.rows {
            row.peer += "-with-a-very-long-name-after-it";
        }
        for results in [samples::published(), samples::results(), long] {
            for Chart { name, svg } in charts(&results, None) {
                assert_eq!(boxes::faults(&svg), Vec::<String>::new(), "{name}");
            }
        }
    }

    #[test]
    fn a_ratio_names_the_row_that_it_compares_with() {
        let charts = charts(&samples::published(), None);
        let svg = |name: &str| &charts.iter().find(|chart| chart.name == name).unwrap().svg;
        assert!(svg("decode-verified").contains(">11.3 × go-indigo</text>"));
        assert!(svg("commit-full").contains(">14.1 × go-indigo</text>"));
        for Chart { name, svg } in &charts {
            let bare = svg.split("<text ").skip(1).filter(|text| text.contains("×</text>"));
            assert_eq!(bare.count(), 0, "{name}");
        }
    }

    #[test]
    fn names_of_files_are_plain() {
        for Chart { name, .. } in charts(&samples::results(), None) {
            assert!(
                name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-'),
                "{name}"
            );
        }
    }

    #[test]
    fn steps_are_round_and_few() {
        for whole in [1.0, 7.0, 60.0, 611.0, 955.0, 123_456.0] {
            let count = whole / step(whole);
            assert!((1.0..=6.0).contains(&count), "{whole}: {count}");
        }
    }
}
