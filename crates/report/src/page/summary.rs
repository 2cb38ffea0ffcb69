//! The top of the page: geometric means over tasks, and a card for each headline work.

use results::terminal::speed;
use results::{Results, Row};

use super::{anchor, is_nostr};
use crate::html::{Tag, tag};
use crate::picture;
use crate::picture::ratio;
use crate::standing::{self, Headline, Means, Standing};

/// The means and the cards; nothing without a kind of work that we and another peer did.
pub(super) fn of(results: &Results) -> Option<Tag> {
    let means = [("AT Protocol", is_atproto as fn(&str) -> bool), ("Nostr", is_nostr)];
    let means = means.map(|(name, counts)| Some(mean(name, Means::of(results, counts)?)));
    let means: Vec<Tag> = means.into_iter().flatten().collect();
    let cards: Vec<Tag> = standing::headlines(results).iter().map(card).collect();
    (!means.is_empty()).then(|| {
        tag("section")
            .class("overview")
            .attr("aria-label", "Summary")
            .with_all(means)
            .with(tag("p").class("lead").text(HOW))
            .with(lost(results))
            .with(tag("ul").class("cards").with_all(cards))
    })
}

fn is_atproto(task: &str) -> bool {
    !is_nostr(task)
}

fn mean(name: &str, means: Means) -> Tag {
    let Means { tasks, single, batch } = means;
    let tasks = if tasks == 1 { "one task".to_owned() } else { format!("{tasks} tasks") };
    tag("p")
        .class("mean")
        .text(format!("{name}, {tasks}: "))
        .with(tag("strong").text(format!("{}×", ratio(single))))
        .text(" one at a time, ")
        .with(tag("strong").text(format!("{}×", ratio(batch))))
        .text(" with many in a call where that is offered")
}

/// The kinds of work at which another peer is faster than our rows of one unit at a time.
fn lost(results: &Results) -> Option<Tag> {
    let tasks = results.rows.chunk_by(|a, b| a.task == b.task);
    let lost = tasks.flat_map(standing::all_of).filter(|standing| standing.single_times() < 1.0);
    let lost = lost.map(|standing| {
        let Standing { single, peer, .. } = standing;
        let times = ratio(standing.single_times());
        format!("{} {} ({times}× {})", single.task, standing::work(single), peer.peer)
    });
    let lost: Vec<String> = lost.collect();
    let text = format!("Slower than another peer, one at a time: {}.", lost.join(", "));
    (!lost.is_empty()).then(|| tag("p").class("lost").text(text))
}

fn card((headline, standing): &(Headline, Standing<'_>)) -> Tag {
    let link = tag("a").attr("href", format!("#{}", anchor(headline.task))).text(headline.words);
    let Standing { single, batch, peer } = *standing;
    let many = batch.zip(standing.batch_times());
    let many =
        many.map(|(row, times)| way(times, row.batch_label().unwrap_or("many in a call"), row));
    let against = format!("next to {} ({}), {}", peer.peer, peer.variant, figure(peer));
    tag("li")
        .with(tag("h2").with(link))
        .with(way(standing.single_times(), "one at a time", single))
        .with(many)
        .with(tag("p").class("who").text(against))
}

/// The ratio of one of our rows, its way, and its speed.
fn way(times: f64, label: &str, row: &Row) -> Tag {
    let class = if times < 1.0 { "figure lost" } else { "figure" };
    tag("p")
        .class(class)
        .with(tag("strong").text(format!("{}×", picture::ratio(times))))
        .text(" ")
        .with(tag("span").class("unit").text(format!("{label}, {}", figure(row))))
}

fn figure(row: &Row) -> String {
    row.median().map_or_else(String::new, |median| speed::sentence(&row.unit, median))
}

const HOW: &str = "Geometric means over tasks of our speed divided by that of the fastest other peer at the same work. Each \
     task counts once, by the geometric mean of its kinds of work; every kind counts that we and another peer did, also \
     where the other is faster. Rows of a forced back end do not count.";
