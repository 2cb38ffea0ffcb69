//! What people show, and what they let machines do.

use super::{About, Scene};
use crate::hex::hex;
use crate::nostr_events::page::Page;

/// Kind 34236.
pub(super) fn video(page: &mut Page, scene: &mut Scene<'_>) {
    let (lexicon, random) = (scene.lexicon, &mut scene.random);
    let [video, image] = [lexicon.link(random), lexicon.link(random)];
    let title = lexicon.title(random, 30);
    let hash = scene.hex32();
    page.tag(&["d", &hash[..24]]);
    page.tag(&["title", &title]);
    let parts = [format!("url {video}"), format!("image {image}"), format!("x {hash}")];
    page.tag(&["imeta", &parts[0], "m video/mp4", "dim 480x480", &parts[1], &parts[2]]);
    page.tag_before(40, &["duration", "6"]);
    page.tag_before(40, &["alt", &title]);
    for name in ["loops", "likes", "reposts", "comments"] {
        page.tag_before(40, &[name, &scene.random.below(90_000).to_string()]);
    }
    for _ in 0..scene.random.below(8) {
        page.tag_before(40, &["t", scene.word()]);
    }
    page.write(scene.prose(page.left()));
}

/// Kind 30311.
pub(super) fn live_event(page: &mut Page, scene: &mut Scene<'_>) {
    let (lexicon, random) = (scene.lexicon, &mut scene.random);
    let title = lexicon.title(random, 24);
    let [image, stream] = [lexicon.link(random), lexicon.link(random)];
    let starts = (scene.now - random.below(9_000)).to_string();
    let status = *random.pick::<&str>(&["live", "ended", "planned"]);
    page.tag(&["d", &scene.hex32()[..32]]);
    for tag in [["title", &title], ["status", status], ["starts", &starts]] {
        page.tag(&tag);
    }
    page.tag_before(0, &["streaming", &stream]);
    page.tag_before(0, &["image", &image]);
    while page.left() > 130 {
        let (person, relay) = (scene.person(), scene.relay());
        match scene.random.below(4) {
            0 => page.tag(&["t", scene.word()]),
            1 => page.tag(&["p", &person, relay, "Host"]),
            _ => page.tag(&["p", &person, relay, "Participant"]),
        }
    }
    let summary = scene.lexicon.plain(&mut scene.random, page.left().saturating_sub(14));
    page.tag_before(0, &["summary", &summary]);
}

/// Kind 5300.
pub(super) fn job_request(page: &mut Page, scene: &mut Scene<'_>) {
    let person = scene.person();
    page.tag(&["p", &person]);
    let alt = scene.lexicon.plain(&mut scene.random, 60);
    page.tag_before(0, &["alt", &alt]);
    let mut relays = vec!["relays"];
    let mut room = page.left().saturating_sub(11);
    while let Some(left) = room.checked_sub(scene.lexicon.longest_relay() + 3) {
        let relay = scene.relay();
        room = left + scene.lexicon.longest_relay() - relay.len();
        relays.push(relay);
    }
    page.tag(&relays);
}

/// Kind 6300: the events that a machine recommends, as a list of tags in JSON.
pub(super) fn job_result(page: &mut Page, scene: &mut Scene<'_>) {
    let (request, json) = scene.event(5300, 605);
    page.tag(&["p", &hex(&request.pubkey)]);
    page.tag(&["e", &hex(&request.id), scene.relay()]);
    page.tag(&["status", "success"]);
    page.tag(&["request", &json]);
    let count = (page.left() / RECOMMENDED).max(1);
    let recommended = |About { id, .. }| format!(r#"["e","{id}"]"#);
    let list: Vec<_> = (0..count).map(|_| recommended(scene.about())).collect();
    page.write(format!("[{}]", list.join(",")));
}

/// Bytes of a tag within JSON within JSON.
const RECOMMENDED: usize = 77;
