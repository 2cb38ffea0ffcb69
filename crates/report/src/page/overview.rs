//! What is there to know in half a minute? Of each task, who was fastest at its first kind of work.

use bench::Row;
use bench::terminal::speed;

use super::{Placed, View, anchor, title};
use crate::html::{Html, Tag, tag};
use crate::{about, scale};

pub(super) fn of(view: &View<'_>, tasks: &[(&str, Vec<Placed<'_>>)]) -> Option<Tag> {
    let cards: Vec<Tag> = tasks.iter().filter_map(|(task, rows)| card(view, task, rows)).collect();
    (!cards.is_empty()).then(|| {
        tag("section")
            .class("overview")
            .attr("aria-label", "The fastest of each task")
            .with(tag("ul").class("cards").with_all(cards))
    })
}

fn card(view: &View<'_>, task: &str, rows: &[Placed<'_>]) -> Option<Tag> {
    let first = fastest(task, rows)?;
    let unit = speed::heading(&[first]);
    let number = speed::number(&first.unit, first.median()?);
    let figure =
        tag("p").class("figure").text(number).text(" ").with(tag("span").class("unit").text(unit));
    let peer = tag("p").class("who").with(tag("strong").text(&first.peer)).with(work(first));
    let name = tag("a").attr("href", format!("#{}", anchor(task))).text(title(task));
    let card = tag("li").with(tag("h2").with(name)).with(figure).with(peer);
    Some(card.with(against(view, first)))
}

/// The fastest at the first kind of work, which is the one with most checks. Of formats none is the
/// first: there, the fastest of all, but for batches and parts of the corpus.
fn fastest<'r>(task: &str, rows: &[Placed<'r>]) -> Option<&'r Row> {
    let mut ranked = rows.iter().map(|(_, row)| *row).filter(|row| row.is_ranked());
    if !task.starts_with("nostr-") {
        // Rows come in order of speed.
        return ranked.next();
    }
    let whole = ranked.filter(|row| !row.variant.contains(['/', '@']));
    whole.max_by(|a, b| a.median().unwrap_or(0.0).total_cmp(&b.median().unwrap_or(0.0)))
}

fn work(row: &Row) -> Html {
    let group = row.group();
    Html::text(", ").and(Html::text(about::group(&row.task, &group).unwrap_or(&group)))
}

fn against(view: &View<'_>, row: &Row) -> Option<Tag> {
    let (ratio, against) = view.newest_ratios().get(crate::ratios::Name::of(row))?;
    if against.peer == row.peer {
        return None;
    }
    let times = format!("{}× {}", scale::ratio(ratio.median), against.peer);
    Some(tag("p").class("times").text(times))
}
