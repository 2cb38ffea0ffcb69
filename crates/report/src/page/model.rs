//! The data that the page's scripts read, and the controls that use it.

use std::collections::{BTreeMap, BTreeSet};

use bench::terminal::speed;
use bench::{Chunks, Counts, Rate, Row};
use serde::Serialize;

use super::{View, repeat};
use crate::html::{Tag, tag};
use crate::picture as scale;

/// The data of the scripts.
#[derive(Debug, Serialize)]
pub(super) struct Model<'r> {
    rows: Vec<RowModel<'r>>,
}

/// A row, by its index in the results.
#[derive(Debug, Serialize)]
struct RowModel<'r> {
    task: &'r str,
    group: String,
    peer: &'r str,
    variant: &'r str,
    language: &'r str,
    version: &'r str,
    unit: &'r str,
    checks: &'r [String],
    /// Each pass in units per second, or milliseconds.
    passes: Vec<f64>,
    /// The unit of `passes`.
    measure: String,
    rate: Option<Rate>,
    ranked: bool,
    is_batch: bool,
    threads: Option<u32>,
    counts: &'r Counts,
    stages_ns: &'r BTreeMap<String, Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<Chunks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocations: Option<f64>,
    note: Option<&'r str>,
    command: String,
}

pub(super) fn of<'r>(view: &View<'r>) -> Model<'r> {
    Model { rows: view.newest.rows.iter().map(|row| of_row(view, row)).collect() }
}

fn of_row<'r>(view: &View<'r>, row: &'r Row) -> RowModel<'r> {
    RowModel {
        task: &row.task,
        group: row.group(),
        peer: &row.peer,
        variant: &row.variant,
        language: &row.language,
        version: &row.version,
        unit: &row.unit,
        checks: &row.checks,
        passes: scale::passes(row),
        measure: speed::heading(&[row]),
        rate: row.per_s,
        ranked: row.is_ranked(),
        is_batch: is_batch(row),
        threads: threads(row),
        counts: &row.counts,
        stages_ns: &row.stages_ns,
        chunks: row.chunks,
        allocations: row.allocations,
        note: row.note.as_deref(),
        command: repeat::of_row(view, row),
    }
}

/// Whether the row works on batches.
pub(super) fn is_batch(row: &Row) -> bool {
    let (way, _) = row.variant.split_once('@').unwrap_or((&row.variant, ""));
    way.split('/').any(|part| part.starts_with("batch"))
}

/// The number of threads in the variant's name; other rows use one core.
pub(super) fn threads(row: &Row) -> Option<u32> {
    let parts = row.variant.split(['/', '@']);
    parts.filter_map(|part| part.strip_prefix("threads-")?.parse().ok()).next()
}

pub(super) fn controls(view: &View<'_>) -> Tag {
    let timed = || view.newest.rows.iter().filter(|row| !row.passes_ns.is_empty());
    let languages: BTreeSet<&str> = timed().map(|row| row.language.as_str()).collect();
    let checks: BTreeSet<&str> =
        timed().flat_map(|row| row.checks.iter().map(String::as_str)).collect();
    let peers: BTreeSet<&str> =
        timed().filter(|row| row.is_ranked()).map(|row| row.peer.as_str()).collect();
    let threads: BTreeSet<u32> = timed().filter_map(threads).collect();
    let search = tag("input")
        .attr("id", "variant")
        .attr("type", "search")
        .attr("placeholder", "peer or variant")
        .attr("autocomplete", "off");
    tag("form")
        .class("tools")
        .attr("id", "tools")
        .attr("aria-label", "Which rows are shown")
        .flag("hidden")
        .with(field("variant", "Name", search))
        .with(choice("language", "Language", "all", languages))
        .with(choice("checks", "Checks", "any", checks))
        .with(ways(timed()))
        .with((!threads.is_empty()).then(|| threads_choice(threads)))
        .with(choice("baseline", "Ratio to", "the usual peer", peers))
        .with(tag("button").attr("type", "reset").text("Reset"))
        .with(tag("output").attr("id", "shown").attr("aria-live", "polite"))
}

fn field(id: &'static str, name: &str, control: Tag) -> Tag {
    let label = tag("label").attr("for", id).text(name);
    tag("div").class("field").with(label).with(control)
}

fn choice<'t>(
    id: &'static str,
    name: &str,
    nothing: &str,
    values: impl IntoIterator<Item = &'t str>,
) -> Tag {
    let none = tag("option").attr("value", "").text(nothing);
    let options = values.into_iter().map(|value| tag("option").attr("value", value).text(value));
    field(id, name, tag("select").attr("id", id).with(none).with_all(options))
}

fn ways<'r>(mut rows: impl Iterator<Item = &'r Row>) -> Option<Tag> {
    rows.any(is_batch).then(|| {
        let options = [("", "all"), ("single", "one at a time"), ("batch", "batches")];
        let options = options.map(|(value, name)| tag("option").attr("value", value).text(name));
        field("way", "Units", tag("select").attr("id", "way").with_all(options))
    })
}

fn threads_choice(threads: BTreeSet<u32>) -> Tag {
    let names: Vec<String> =
        std::iter::once(1).chain(threads).map(|count| count.to_string()).collect();
    choice("threads", "Threads", "any", names.iter().map(String::as_str))
}
