//! What is there to know in half a minute? Of each task, who was fastest at its first kind of work.

use bench::Row;
use bench::report::speed;

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
    // Rows come in order of speed.
    let first = rows.iter().map(|(_, row)| *row).find(|row| row.is_ranked())?;
    let unit = speed::heading(&[first]);
    let number = speed::number(&first.unit, first.median()?);
    let figure =
        tag("p").class("figure").text(number).text(" ").with(tag("span").class("unit").text(unit));
    let peer = tag("p").class("who").with(tag("strong").text(&first.peer)).with(work(first));
    let name = tag("a").attr("href", format!("#{}", anchor(task))).text(title(task));
    let card = tag("li").with(tag("h2").with(name)).with(figure).with(peer);
    Some(card.with(against(view, first)))
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
