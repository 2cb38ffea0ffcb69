//! The controls that choose which rows the page shows.

use std::collections::BTreeSet;

use results::{Results, Row};

use crate::html::{Tag, tag};

/// The form of all choices, hidden until a script can act on it.
pub(super) fn of(results: &Results) -> Tag {
    let timed = || results.rows.iter().filter(|row| !row.passes_ns.is_empty());
    let languages: BTreeSet<&str> = timed().map(|row| row.language.as_str()).collect();
    let checks: BTreeSet<&str> =
        timed().flat_map(|row| row.checks.iter().map(String::as_str)).collect();
    let peers: BTreeSet<&str> =
        timed().filter(|row| row.is_ranked()).map(|row| row.peer.as_str()).collect();
    let threads: BTreeSet<u32> = timed().filter_map(Row::threads).collect();
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
    rows.any(Row::is_batch).then(|| {
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
