//! How do the rows of the task `nostr-size` read? In bytes an event, and as a part of JSON's.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::{paint, wrap};
use crate::{Row, Sizes};

/// The table of all events, and below it how each kind does as it is written.
pub(super) fn tables(rows: &[&Row]) -> String {
    let (of_kinds, of_all): (Vec<&Row>, Vec<&Row>) =
        rows.iter().copied().partition(|row| row.variant.contains('@'));
    let mut text = paint::painted(paint::TITLE, &title(&of_all)) + "\n\n";
    text += &(paint::table(&all(&of_all), &[]) + "\n\n");
    if !of_kinds.is_empty() {
        text += &(paint::table(&kinds(&of_kinds), &[]) + "\n\n");
    }
    text + &wrap(LEGEND, 0) + "\n"
}

/// Which format is smallest, as it is and compressed.
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
    let told = [
        smallest("As written", &|sizes| sizes.raw),
        smallest("Each event alone under gzip", &|sizes| sizes.gzip6),
        smallest("All together under Zstandard", &|sizes| sizes.framed_zstd3),
    ];
    told.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn title(rows: &[&Row]) -> String {
    let events = rows.first().map_or(0, |row| row.units);
    format!("nostr-size: bytes an event, over {} events", super::thousands(events as f64))
}

fn all(rows: &[&Row]) -> String {
    let json = sizes_of(rows, "json");
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["format", "raw", "% of JSON", "gzip-6", "zstd-3", "framed zstd-3", "parity"]);
    let mut rows: Vec<(&&Row, Sizes)> =
        rows.iter().filter_map(|row| Some((row, row.sizes?))).collect();
    rows.sort_by_key(|(_, sizes)| sizes.raw);
    for (row, sizes) in rows {
        let each = |bytes: u64| format!("{:.1}", bytes as f64 / row.units.max(1) as f64);
        table.add_row([
            row.variant.clone(),
            each(sizes.raw),
            percent(sizes.raw, json.map(|json| json.raw)),
            each(sizes.gzip6),
            each(sizes.zstd3),
            each(sizes.framed_zstd3),
            super::table::parity_of_sizes(row).to_owned(),
        ]);
    }
    for column in 1..=5 {
        table.column_mut(column).expect("seven columns").set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// Each format's part of JSON, kind by kind.
fn kinds(rows: &[&Row]) -> String {
    let mut kinds: Vec<&str> = rows.iter().filter_map(behind_at).collect();
    kinds.sort_by_key(|kind| (kind.len(), *kind));
    kinds.dedup();
    let mut formats: Vec<&str> = rows.iter().map(before_at).collect();
    formats.sort_unstable();
    formats.dedup();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["% of JSON"].into_iter().chain(kinds.iter().copied()));
    for format in formats {
        let part = |kind: &&str| {
            let of = |format: &str| sizes_of(rows, &format!("{format}@{kind}")).map(|it| it.raw);
            of(format).map_or_else(|| "–".to_owned(), |raw| percent(raw, of("json")))
        };
        table.add_row([format.to_owned()].into_iter().chain(kinds.iter().map(part)));
    }
    for column in 1..=kinds.len() {
        let column = table.column_mut(column).expect("one for each kind");
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn percent(bytes: u64, json: Option<u64>) -> String {
    let part = |json: u64| format!("{:.1}", 100.0 * bytes as f64 / json.max(1) as f64);
    json.map_or_else(|| "–".to_owned(), part)
}

fn sizes_of(rows: &[&Row], variant: &str) -> Option<Sizes> {
    rows.iter().find(|row| row.variant == variant)?.sizes
}

fn before_at<'r>(row: &&'r Row) -> &'r str {
    row.variant.split('@').next().unwrap_or_default()
}

fn behind_at<'r>(row: &&'r Row) -> Option<&'r str> {
    row.variant.split_once('@').map(|(_, kind)| kind)
}

const LEGEND: &str = "raw as the format writes it; gzip-6 and zstd-3 each event alone; framed zstd-3 \
all events behind their lengths, compressed as one";
