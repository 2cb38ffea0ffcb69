//! The task `nostr-size`: bytes per event, and as a percentage of JSON.

use super::speed::thousands;
use super::style::{Grid, PLAIN, TITLE, styled, wrap};
use super::table::parity_of_sizes;
use crate::{Row, Sizes};

/// The table of all events, and a table of each kind.
pub(super) fn tables(rows: &[&Row]) -> String {
    let (of_kinds, of_all): (Vec<&Row>, Vec<&Row>) =
        rows.iter().copied().partition(|row| row.variant.contains('@'));
    let mut text = styled(TITLE, &title(&of_all)) + "\n\n";
    text += &(all(&of_all) + "\n\n");
    if !of_kinds.is_empty() {
        text += &(kinds(&of_kinds) + "\n\n");
    }
    text + &wrap(LEGEND, 0) + "\n"
}

/// The smallest formats, bare and compressed.
pub(super) fn paragraph(rows: &[&Row]) -> String {
    let of_all: Vec<&Row> = rows.iter().copied().filter(|row| !row.variant.contains('@')).collect();
    let json = sizes_of(&of_all, "json");
    let smallest = |name: &str, len: &dyn Fn(&Sizes) -> u64| {
        let least = of_all.iter().filter_map(|row| Some((row, len(row.sizes.as_ref()?))));
        let (row, bytes) = least.min_by_key(|(_, bytes)| *bytes)?;
        let part = json.map_or_else(String::new, |json| {
            format!(", {:.1} % of JSON", 100.0 * bytes as f64 / len(&json) as f64)
        });
        Some(format!("{name}, the smallest is {}{part}.", row.variant))
    };
    let sentences = [
        smallest("Bare", &|sizes| sizes.raw),
        smallest("Each event alone under gzip", &|sizes| sizes.gzip6),
        smallest("All together under Zstandard", &|sizes| sizes.framed_zstd3),
    ];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn title(rows: &[&Row]) -> String {
    let events = rows.first().map_or(0, |row| row.units);
    format!("nostr-size: bytes per event, over {} events", thousands(events as f64))
}

fn all(rows: &[&Row]) -> String {
    let json = sizes_of(rows, "json");
    let headings = ["format", "raw", "% of JSON", "gzip-6", "zstd-3", "framed zstd-3", "parity"];
    let mut grid = Grid::new(headings);
    let mut rows: Vec<(&&Row, Sizes)> =
        rows.iter().filter_map(|row| Some((row, row.sizes?))).collect();
    rows.sort_by_key(|(_, sizes)| sizes.raw);
    for (row, sizes) in rows {
        let each = |bytes: u64| format!("{:.1}", bytes as f64 / row.units.max(1) as f64);
        let cells = [
            row.variant.clone(),
            each(sizes.raw),
            percent(sizes.raw, json.map(|json| json.raw)),
            each(sizes.gzip6),
            each(sizes.zstd3),
            each(sizes.framed_zstd3),
            parity_of_sizes(row).to_owned(),
        ];
        grid.row(PLAIN, cells);
    }
    grid.align_right(1..=5);
    grid.render()
}

/// The percentage of JSON by format and kind.
fn kinds(rows: &[&Row]) -> String {
    let mut kinds: Vec<&str> = rows.iter().filter_map(kind_of).collect();
    kinds.sort_by_key(|kind| (kind.len(), *kind));
    kinds.dedup();
    let mut formats: Vec<&str> = rows.iter().map(format_of).collect();
    formats.sort_unstable();
    formats.dedup();
    let mut grid = Grid::new(["% of JSON"].into_iter().chain(kinds.iter().copied()));
    for format in formats {
        let part = |kind: &&str| {
            let of = |format: &str| sizes_of(rows, &format!("{format}@{kind}")).map(|it| it.raw);
            of(format).map_or_else(|| "–".to_owned(), |raw| percent(raw, of("json")))
        };
        grid.row(PLAIN, [format.to_owned()].into_iter().chain(kinds.iter().map(part)));
    }
    grid.align_right(1..=kinds.len());
    grid.render()
}

fn percent(bytes: u64, json: Option<u64>) -> String {
    let part = |json: u64| format!("{:.1}", 100.0 * bytes as f64 / json.max(1) as f64);
    json.map_or_else(|| "–".to_owned(), part)
}

fn sizes_of(rows: &[&Row], variant: &str) -> Option<Sizes> {
    rows.iter().find(|row| row.variant == variant)?.sizes
}

fn format_of<'r>(row: &&'r Row) -> &'r str {
    row.variant.split('@').next().unwrap_or_default()
}

fn kind_of<'r>(row: &&'r Row) -> Option<&'r str> {
    row.variant.split_once('@').map(|(_, kind)| kind)
}

const LEGEND: &str = "raw: uncompressed; gzip-6 and zstd-3: each event alone; framed zstd-3: all \
length-prefixed events compressed together";
