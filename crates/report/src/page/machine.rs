//! Where was it measured, on which bytes, and who is missing?

use bench::terminal::thousands;

use super::View;
use crate::html::{Tag, tag};
use crate::{scale, table};

pub(super) fn of(view: &View<'_>) -> Tag {
    let machine = &view.newest.machine;
    let fixed = [
        ("processor".to_owned(), machine.cpu.clone()),
        ("cores".to_owned(), machine.cores.to_string()),
        ("instructions".to_owned(), machine.features.join(", ")),
        ("system".to_owned(), machine.os.clone()),
    ];
    let tools = machine.toolchains.iter().map(|(name, version)| (name.clone(), version.clone()));
    let rows = fixed.into_iter().chain(tools).map(|(name, value)| [name, value]);
    tag("section")
        .attr("id", "machine")
        .attr("aria-labelledby", "machine-title")
        .with(tag("h2").attr("id", "machine-title").text("Machine and corpora"))
        .with(table::plain("The machine and its tools", ["", "what"].map(heading_or_what), 2, rows))
        .with(corpora(view))
}

/// A column needs a name for who hears it.
fn heading_or_what(text: &str) -> &str {
    if text.is_empty() { "of" } else { text }
}

fn corpora(view: &View<'_>) -> Tag {
    let rows = view.newest.corpora.iter().map(|corpus| {
        let units = thousands(corpus.units as f64);
        [corpus.name.clone(), corpus.sha256.clone(), scale::bytes(corpus.bytes), units]
    });
    table::plain("The bytes that were worked on", ["corpus", "SHA-256", "bytes", "units"], 2, rows)
}

/// The peers that could not be measured, each with the reason; nothing if there are none.
pub(super) fn unavailable(view: &View<'_>) -> Option<Tag> {
    let missing = &view.newest.unavailable;
    (!missing.is_empty()).then(|| {
        let rows = missing.iter().map(|peer| [peer.peer.clone(), peer.reason.clone()]);
        tag("section")
            .attr("id", "unavailable")
            .attr("aria-labelledby", "unavailable-title")
            .with(tag("h2").attr("id", "unavailable-title").text("Not available"))
            .with(table::plain("Peers that could not be measured", ["peer", "reason"], 2, rows))
    })
}
