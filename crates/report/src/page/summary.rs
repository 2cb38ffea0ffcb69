//! The top of the page: the headline figures, then a card per headline work.

use results::terminal::speed;
use results::{Results, Row};

use super::{anchor, is_nostr, title};
use crate::html::{Html, Tag, tag};
use crate::picture::{ratio, ratio_to};
use crate::standing::{self, Headline, Means, Standing};

/// The headline figures: geometric means over tasks; without another peer the first speed; without a speed the number of
/// rows.
pub(super) fn figures(results: &Results) -> Tag {
    let means = [("AT Protocol", is_atproto as fn(&str) -> bool), ("Nostr", is_nostr)];
    let means = means.map(|(name, counts)| Some(mean(name, Means::of(results, counts)?)));
    let means: Vec<Tag> = means.into_iter().flatten().collect();
    let figures = tag("div").class("figures");
    if means.is_empty() { figures.with(first_speed(results)) } else { figures.with_all(means) }
}

/// The cards and their explanation; nothing without a kind of work that we and another peer did.
pub(super) fn of(results: &Results) -> Option<Tag> {
    let cards: Vec<Tag> = standing::headlines(results).iter().map(card).collect();
    let has_means = Means::of(results, |_| true).is_some();
    has_means.then(|| {
        tag("section")
            .class("overview")
            .attr("aria-label", "Summary")
            .with(lost(results))
            .with(tag("ul").class("cards").with_all(cards))
            .with(tag("p").class("lead").text(HOW))
    })
}

fn is_atproto(task: &str) -> bool {
    !is_nostr(task)
}

fn mean(name: &str, means: Means) -> Tag {
    let Means { tasks, single, batch } = means;
    let tasks =
        if tasks == 1 { format!("one {name} task") } else { format!("{tasks} {name} tasks") };
    let of = format!("Wireproof one at a time, geometric mean of {tasks}; ");
    let many = tag("b").text(format!("{} × {OTHER}", ratio(batch)));
    let words = Html::text(of).and(many).and(Html::text(" with many in a call"));
    figure_line(&ratio(single), &format!("× {OTHER}"), words)
}

fn first_speed(results: &Results) -> Tag {
    let ranked = || results.rows.iter().filter(|row| row.is_ranked() && row.median().is_some());
    let ours = ranked().find(|row| row.peer == results::PEER);
    let row = ours.or_else(|| ranked().next());
    let Some((row, median)) = row.and_then(|row| Some((row, row.median()?))) else {
        return figure_line(&results.rows.len().to_string(), "rows", Html::default());
    };
    let sentence = speed::sentence(&row.unit, median);
    let (number, unit) = sentence.split_once(' ').unwrap_or((&sentence, ""));
    let words = format!("{} {}: {}", row.peer, row.variant, title(&row.task));
    figure_line(number, unit, Html::text(words))
}

fn figure_line(number: &str, unit: &str, words: Html) -> Tag {
    tag("p")
        .class("mean")
        .with(tag("strong").text(number).text(" ").with(tag("span").text(unit)))
        .text(" ")
        .with(tag("span").class("words").with(words))
}

/// The kinds of work at which another peer is faster than our rows of one unit at a time.
fn lost(results: &Results) -> Option<Tag> {
    let tasks = results.rows.chunk_by(|a, b| a.task == b.task);
    let lost = tasks.flat_map(standing::all_of).filter(|standing| standing.single_times() < 1.0);
    let lost = lost.filter_map(|standing| {
        let Standing { single, peer, .. } = standing;
        let times = ratio_to(single, peer)?;
        Some(format!("{} {} ({times})", single.task, single.work()))
    });
    let lost: Vec<String> = lost.collect();
    let text = format!("Slower than another peer, one at a time: {}.", lost.join(", "));
    (!lost.is_empty()).then(|| tag("p").class("lost").text(text))
}

fn card((headline, standing): &(Headline, Standing<'_>)) -> Tag {
    let link = tag("a").attr("href", format!("#{}", anchor(headline.task))).text(headline.words);
    let Standing { single, batch, prepared, peer, .. } = *standing;
    let many = batch.map(|row| way(row, peer, row.batch_label().unwrap_or("many in a call")));
    let prepared = prepared.map(|row| way(row, peer, &row.prepared_label()));
    let against = format!("{} ({}): {}", peer.peer, peer.variant, figure(peer));
    tag("li")
        .with(tag("h2").with(link))
        .with(way(single, peer, "one at a time"))
        .with(many)
        .with(prepared)
        .with(tag("p").class("who").text(against))
}

/// The ratio of one of our rows to the other peer's, its way, and its speed.
fn way(row: &Row, peer: &Row, label: &str) -> Tag {
    let is_slower = row.median() < peer.median();
    let times = ratio_to(row, peer).unwrap_or_default();
    let (number, name) = times.split_once(' ').unwrap_or((&times, ""));
    let paragraph = if is_slower { tag("p").class("lost") } else { tag("p") };
    paragraph
        .with(tag("strong").text(number))
        .text(" ")
        .with(tag("b").text(name))
        .text(" ")
        .with(tag("small").text(format!("{label}, {}", figure(row))))
}

fn figure(row: &Row) -> String {
    row.median().map_or_else(String::new, |median| speed::sentence(&row.unit, median))
}

/// The subject of the means' comparison.
const OTHER: &str = "the fastest other";

const HOW: &str = "The figures at the top are geometric means over tasks of our speed divided by the speed of the fastest other peer \
     at the same work. Each task counts once, by the geometric mean of its kinds of work. Every kind counts that we and two other peers \
     or more did, even if another is faster. Rows with cached keys, an index or a builder, and rows of a forced back end do not count.";
