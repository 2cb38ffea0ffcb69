//! What people pay each other.

use super::{About, Scene};
use crate::hex::hex;
use crate::nostr_events::lexicon::bech32;
use crate::nostr_events::page::Page;

/// Kind 9734.
pub(super) fn request(page: &mut Page, scene: &mut Scene<'_>) {
    let About { id, pubkey, .. } = scene.about();
    page.tag(&["p", &pubkey]);
    page.tag_before(0, &["amount", amount(scene)]);
    let mut relays = vec!["relays", scene.relay()];
    let room = page.left().saturating_sub(90);
    let mut used = 60;
    while used < room && relays.len() < MOST_RELAYS {
        relays.push(scene.relay());
        used += 30;
    }
    page.tag_before(80, &relays);
    page.tag_before(0, &["e", &id]);
    page.write(scene.lexicon.plain(&mut scene.random, page.left()));
}

/// Kind 9735: with the request in it.
pub(super) fn receipt(page: &mut Page, scene: &mut Scene<'_>) {
    let invoice = invoice(scene);
    let preimage = scene.hex32();
    let has_preimage = scene.random.chance(1, 2);
    let other = 4 * TAG_OF_ID + invoice.len() + 60;
    // In JSON within JSON each quote takes two bytes, and there are some 50 of them.
    let bytes = page.left().saturating_sub(other + 50).clamp(560, 1400);
    let (request, json) = scene.event(9734, bytes);
    let about = scene.about();
    let to =
        request.draft.tags.iter().find(|tag| tag[0] == "p").map_or(&about.pubkey, |tag| &tag[1]);
    page.tag(&["p", to]);
    page.tag(&["P", &hex(&request.pubkey)]);
    if let Some(tag) = request.draft.tags.iter().find(|tag| tag[0] == "e") {
        page.tag(&["e", &tag[1]]);
    }
    page.tag(&["bolt11", &invoice]);
    page.tag(&["description", &json]);
    if has_preimage {
        page.tag_before(0, &["preimage", &preimage]);
    }
}

/// Kind 9041.
pub(super) fn goal(page: &mut Page, scene: &mut Scene<'_>) {
    let closed_at = (scene.now + scene.random.below(3_000_000)).to_string();
    page.tag(&["relays", scene.relay(), scene.relay()]);
    page.tag(&["amount", amount(scene)]);
    page.tag_before(40, &["closed_at", &closed_at]);
    let summary = scene.lexicon.plain(&mut scene.random, page.left().saturating_sub(60));
    page.tag_before(10, &["summary", &summary]);
    page.write(scene.lexicon.plain(&mut scene.random, page.left()));
}

fn amount(scene: &mut Scene<'_>) -> &'static str {
    scene.random.pick::<&str>(&["21000", "21000", "100000", "500000", "1000000", "2100000"])
}

/// A bill of the Lightning network, as one looks.
fn invoice(scene: &mut Scene<'_>) -> String {
    let chars = scene.random.between(260, 360) as usize;
    format!("lnbc210n1{}", bech32(&mut scene.random, chars))
}

/// Bytes of a tag that names an event or a person.
const TAG_OF_ID: usize = 73;

/// Values of a tag, at most.
const MOST_RELAYS: usize = 40;
