//! What people say to each other.

use super::{About, Scene};
use crate::hex::hex;
use crate::nostr_events::lexicon::EMOJI;
use crate::nostr_events::page::{Page, json_len};

/// Kind 1.
pub(super) fn note(page: &mut Page, scene: &mut Scene<'_>) {
    match scene.random.below(100) {
        0..40 => {}
        40..86 => reply(page, scene),
        86..93 => thread(page, scene),
        _ => topics(page, scene),
    }
    if scene.random.chance(1, 5) {
        extras(page, scene);
    }
    page.write(scene.prose(page.left()));
}

/// Whom and what a note answers.
fn reply(page: &mut Page, scene: &mut Scene<'_>) {
    let About { id, pubkey, .. } = scene.about();
    match scene.random.below(3) {
        0 => page.tag_before(WORDS, &["e", &id]),
        1 => page.tag_before(WORDS, &["e", &id, "", "root"]),
        _ => page.tag_before(WORDS, &["e", &id, scene.relay(), "root", &pubkey]),
    };
    page.tag_before(WORDS, &["p", &pubkey]);
}

/// A reply deep in a conversation.
fn thread(page: &mut Page, scene: &mut Scene<'_>) {
    let [root, last] = [scene.about(), scene.about()];
    page.tag_before(WORDS, &["e", &root.id, scene.relay(), "root", &root.pubkey]);
    page.tag_before(WORDS, &["e", &last.id, scene.relay(), "reply", &last.pubkey]);
    page.tag_before(WORDS, &["p", &root.pubkey]);
    page.tag_before(WORDS, &["p", &last.pubkey]);
    for _ in 0..scene.random.below(9) {
        let person = scene.person();
        page.tag_before(WORDS, &["p", &person]);
    }
}

fn topics(page: &mut Page, scene: &mut Scene<'_>) {
    for _ in 0..scene.random.between(1, 12) {
        page.tag_before(WORDS, &["t", scene.word()]);
    }
}

/// What not every client writes.
fn extras(page: &mut Page, scene: &mut Scene<'_>) {
    let link = scene.lexicon.link(&mut scene.random);
    match scene.random.below(8) {
        0 => {
            let [url, hash] = [format!("url {link}"), format!("x {}", scene.hex32())];
            page.tag_before(WORDS, &["imeta", &url, "m image/jpeg", "dim 1170x2532", &hash])
        }
        1 => page.tag_before(WORDS, &["emoji", scene.word(), &link]),
        2 => {
            let (pubkey, name) = (scene.person(), scene.word());
            let address = format!("30023:{pubkey}:{name}");
            page.tag_before(WORDS, &["a", &address, scene.relay(), "mention"])
        }
        3 => {
            let About { id, pubkey, .. } = scene.about();
            page.tag_before(WORDS, &["q", &id, scene.relay(), &pubkey])
        }
        4 => page.tag_before(WORDS, &["client", scene.word()]),
        _ => page.tag_before(WORDS, &["r", &link]),
    };
}

/// Kind 42.
pub(super) fn channel_message(page: &mut Page, scene: &mut Scene<'_>) {
    let About { id, pubkey, .. } = scene.about();
    page.tag(&["e", &id, scene.relay(), "root"]);
    if scene.random.chance(1, 3) {
        page.tag_before(WORDS, &["p", &pubkey]);
    }
    page.write(scene.prose(page.left()));
}

/// Kind 7.
pub(super) fn reaction(page: &mut Page, scene: &mut Scene<'_>) {
    let About { id, pubkey, kind } = scene.about();
    let relay = scene.relay();
    let content = match scene.random.below(5) {
        0..3 => "+",
        _ => *scene.random.pick::<&str>(&EMOJI),
    };
    let room = page.left().saturating_sub(EVENT_AND_AUTHOR);
    if room > 100 && scene.random.chance(1, 2) {
        page.tag(&["e", &id, relay, &pubkey]);
        page.tag(&["p", &pubkey, relay]);
    } else {
        page.tag(&["e", &id]);
        if page.left() > 70 {
            page.tag(&["p", &pubkey]);
        }
    }
    page.tag_before(9, &["k", &kind]);
    // Those who took part in the conversation.
    while page.left() > 80 {
        let person = scene.person();
        page.tag(&["p", &person]);
    }
    page.write(content.to_owned());
}

/// Kind 6: with the event in it, where there is room for one.
pub(super) fn repost(page: &mut Page, scene: &mut Scene<'_>) {
    let room = page.left().saturating_sub(EVENT_AND_AUTHOR + 40);
    if room < SHORTEST_QUOTE {
        let About { id, pubkey, kind } = scene.about();
        page.tag(&["e", &id, scene.relay()]);
        page.tag(&["p", &pubkey]);
        page.tag_before(0, &["k", &kind]);
        return;
    }
    // In JSON within JSON each quote takes two bytes, and there are some 40 of them.
    let (event, mut json) = scene.event(1, room - 40);
    while json_len(&json) > room + 200 {
        json = scene.event(1, room - 100).1;
    }
    page.tag(&["e", &hex(&event.id), scene.relay()]);
    page.tag(&["p", &hex(&event.pubkey)]);
    page.write(json);
}

/// Kind 5.
pub(super) fn deletion(page: &mut Page, scene: &mut Scene<'_>) {
    let About { id, pubkey, kind } = scene.about();
    page.tag(&["e", &id]);
    while page.left() > 90 {
        let about = scene.about();
        match scene.random.chance(3, 5) {
            true => page.tag(&["p", &about.pubkey]),
            false => page.tag(&["e", &about.id]),
        }
    }
    if scene.random.chance(1, 6) {
        page.tag_before(0, &["a", &format!("30023:{pubkey}:{}", scene.word())]);
    }
    page.tag_before(0, &["k", &kind]);
    page.tag_before(0, &["alt", "Deletion event"]);
}

/// Kind 1985.
pub(super) fn labels(page: &mut Page, scene: &mut Scene<'_>) {
    page.tag(&["L", "social.labels.example"]);
    page.tag(&["l", scene.word(), "social.labels.example"]);
    while page.left() > 110 {
        let about = scene.about();
        match scene.random.below(10) {
            0 => page.tag(&["t", scene.word()]),
            1 => page.tag(&["r", &scene.lexicon.link(&mut scene.random)]),
            2..5 => page.tag(&["p", &about.pubkey]),
            _ => page.tag(&["e", &about.id, scene.relay()]),
        }
    }
}

/// Kind 30023.
pub(super) fn article(page: &mut Page, scene: &mut Scene<'_>) {
    let (lexicon, random) = (scene.lexicon, &mut scene.random);
    let [title, summary] = [50, 140].map(|bytes| lexicon.title(random, bytes));
    let image = lexicon.link(random);
    let published = (scene.now - random.below(10_000_000)).to_string();
    page.tag(&["d", &title.replace(' ', "-")]);
    for tag in [["title", &title], ["published_at", &published], ["summary", &summary]] {
        page.tag_before(20, &tag);
    }
    page.tag_before(20, &["image", &image]);
    for _ in 0..scene.random.between(1, 6) {
        page.tag_before(20, &["t", scene.word()]);
    }
    let mut text = format!("# {title}\n\n");
    while json_len(&text) + 400 < page.left() {
        let len = scene.random.between(200, 900) as usize;
        let room = page.left() - json_len(&text) - 40;
        text.push_str(&scene.prose(len.min(room)));
        text.push_str(scene.random.pick::<&str>(&["\n\n", "\n\n## And then\n\n", "\n\n> "]));
    }
    let room = page.left().saturating_sub(json_len(&text));
    text.push_str(&scene.prose(room));
    page.write(text);
}

/// Room for some words.
const WORDS: usize = 12;

/// Bytes of the two tags that say what an event is about.
const EVENT_AND_AUTHOR: usize = 145;

/// Bytes of a note within JSON, at least.
const SHORTEST_QUOTE: usize = 430;
