//! The task `nostr-size`: bytes per event, and as a percentage of JSON.

use super::speed::thousands;
use super::style::{Grid, PLAIN, TITLE, styled, wrap};
use super::table::parity_of_sizes;
use crate::{Row, Sizes, is_real, percent_of_json};

/// The table of all events, simulated and real, and a table per kind.
pub(super) fn tables(rows: &[&Row]) -> String {
    let (of_kinds, of_all): (Vec<&Row>, Vec<&Row>) =
        rows.iter().copied().partition(|row| kind_of(row).is_some());
    let mut text = styled(TITLE, &title(&of_all)) + "\n\n";
    text += &(all(&of_all) + "\n");
    text += &unheld(rows);
    if !of_kinds.is_empty() {
        text += &("\n".to_owned() + &kinds(&of_kinds) + "\n");
    }
    let left_out = if of_all.iter().any(|row| is_real(row)) { "" } else { LEFT_OUT };
    text + "\n" + &wrap(&format!("{LEGEND}{left_out}"), 0) + "\n"
}

/// The smallest formats, bare and compressed, of the simulated and of the real events.
pub(super) fn paragraph(rows: &[&Row]) -> String {
    let rows = || rows.iter().copied().filter(|row| kind_of(row).is_none());
    let (real, simulated): (Vec<&Row>, Vec<&Row>) = rows().partition(|row| is_real(row));
    let mut sentences = smallest(&simulated);
    if !real.is_empty() {
        sentences.push("Of the real events:".to_owned());
        sentences.extend(smallest(&real));
    }
    sentences.join(" ")
}

/// A sentence per measure of the same events.
fn smallest(rows: &[&Row]) -> Vec<String> {
    let smallest = |name: &str, len: fn(&Sizes) -> u64| {
        let percents = rows.iter().filter_map(|row| Some((row, percent_of_json(row, rows, len)?)));
        let (row, percent) = percents.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        Some(format!("{name}, the smallest is {}, {percent:.1} % of JSON.", format_of(row)))
    };
    let sentences = [
        smallest("Bare", |sizes| sizes.raw),
        smallest("Each event alone under gzip", |sizes| sizes.gzip6),
        smallest("All together under Zstandard", |sizes| sizes.framed_zstd3),
    ];
    sentences.into_iter().flatten().collect()
}

fn title(rows: &[&Row]) -> String {
    let events = |real: bool| {
        let rows = rows.iter().filter(|row| is_real(row) == real);
        rows.map(|row| row.units + row.unheld).max().unwrap_or(0)
    };
    let real = match events(true) {
        0 => String::new(),
        real => format!(", and {} real ones (@real)", thousands(real as f64)),
    };
    format!("nostr-size: bytes per event, over {} events{real}", thousands(events(false) as f64))
}

/// The formats, the smallest first, with real events below the others.
fn all(rows: &[&Row]) -> String {
    let headings =
        ["format", "raw", "% of JSON", "gzip-6", "zstd-3", "framed zstd-3", "% of JSON", "parity"];
    let mut grid = Grid::new(headings);
    let raw =
        |row: &Row| row.sizes.map_or(f64::MAX, |sizes| sizes.raw as f64 / row.units.max(1) as f64);
    let of_format = |row: &&Row| {
        rows.iter()
            .filter(|it| format_of(it) == format_of(row))
            .min_by_key(|it| is_real(it))
            .map_or(0.0, |it| raw(it))
    };
    let mut sorted = rows.to_vec();
    sorted.sort_by(|a, b| {
        let format = of_format(a).total_cmp(&of_format(b));
        format.then_with(|| a.variant.cmp(&b.variant))
    });
    for row in sorted {
        grid.row(PLAIN, cells(row, rows));
    }
    grid.align_right(1..=6);
    grid.render()
}

fn cells(row: &Row, rows: &[&Row]) -> [String; 8] {
    let each = |len: fn(&Sizes) -> u64| {
        let per_event = |sizes: Sizes| len(&sizes) as f64 / row.units.max(1) as f64;
        row.sizes.map_or_else(none, |sizes| format!("{:.1}", per_event(sizes)))
    };
    let percent =
        |len| percent_of_json(row, rows, len).map_or_else(none, |part| format!("{part:.1}"));
    [
        row.variant.clone(),
        each(|sizes| sizes.raw),
        percent(|sizes| sizes.raw),
        each(|sizes| sizes.gzip6),
        each(|sizes| sizes.zstd3),
        each(|sizes| sizes.framed_zstd3),
        percent(|sizes| sizes.framed_zstd3),
        parity_of_sizes(row),
    ]
}

/// A line per row without some events, which names them; rows of kinds repeat the events of all.
fn unheld(rows: &[&Row]) -> String {
    let rows = rows.iter().filter(|row| row.unheld > 0 && kind_of(row).is_none());
    let line =
        |row: &&Row| Some(wrap(&format!("{} is {}", row.variant, row.note.as_ref()?), 2) + "\n");
    let lines: String = rows.filter_map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// The percentage of JSON by format and kind.
fn kinds(rows: &[&Row]) -> String {
    let mut kinds: Vec<&str> = rows.iter().filter_map(|row| kind_of(row)).collect();
    kinds.sort_by_key(|kind| (kind.len(), *kind));
    kinds.dedup();
    let mut formats: Vec<&str> = rows.iter().map(|row| format_of(row)).collect();
    formats.sort_unstable();
    formats.dedup();
    let mut grid = Grid::new(["% of JSON"].into_iter().chain(kinds.iter().copied()));
    for format in formats {
        let part = |kind: &&str| {
            let row =
                rows.iter().find(|row| format_of(row) == format && kind_of(row) == Some(kind));
            let percent = row.and_then(|row| percent_of_json(row, rows, |sizes| sizes.raw));
            percent.map_or_else(none, |percent| format!("{percent:.1}"))
        };
        grid.row(PLAIN, [format.to_owned()].into_iter().chain(kinds.iter().map(part)));
    }
    grid.align_right(1..=kinds.len());
    grid.render()
}

fn none() -> String {
    "–".to_owned()
}

fn format_of(row: &Row) -> &str {
    row.variant.split('@').next().unwrap_or_default()
}

/// The kind of a row over one kind of events.
fn kind_of(row: &Row) -> Option<&str> {
    row.variant.split_once('@').map(|(_, kind)| kind).filter(|_| !is_real(row))
}

const LEGEND: &str = "raw: uncompressed; gzip-6 and zstd-3: each event alone; framed zstd-3: all \
length-prefixed events compressed together; % of JSON: of the same events as JSON";

const LEFT_OUT: &str =
    "; real events are left out: --fixtures names no folder with nostr/events.jsonl";
