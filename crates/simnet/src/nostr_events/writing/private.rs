//! What only some can read: messages, wrapped events, drafts, and the data of applications.

use super::Scene;
use crate::nostr_events::lexicon::base64;
use crate::nostr_events::page::Page;

/// Kind 4: the base64 of whole blocks of 16 bytes, and that of the first block's vector.
pub(super) fn message(page: &mut Page, scene: &mut Scene<'_>) {
    let person = scene.person();
    page.tag(&["p", &person]);
    let room = page.left().saturating_sub("?iv=".len() + 24);
    let bytes = (room / 4 * 3 / 16 * 16).max(16);
    let [text, vector] = [bytes, 16].map(|bytes| base64(&mut scene.random, bytes));
    page.write(format!("{text}?iv={vector}"));
}

/// Kind 1059.
pub(super) fn gift_wrap(page: &mut Page, scene: &mut Scene<'_>) {
    let person = scene.person();
    page.tag(&["p", &person]);
    page.write(sealed(page.left(), scene));
}

/// Kind 31234.
pub(super) fn draft(page: &mut Page, scene: &mut Scene<'_>) {
    let name = scene.hex32();
    page.tag(&["d", &name[..16]]);
    page.tag(&["k", "1"]);
    let about = scene.about();
    if page.left() > 300 && scene.random.chance(1, 2) {
        page.tag(&["e", &about.id, scene.relay(), "root"]);
    }
    page.write(sealed(page.left(), scene));
}

/// Kind 30078: what an application keeps, sealed or as a list of keys and numbers.
pub(super) fn app_data(page: &mut Page, scene: &mut Scene<'_>) {
    page.tag(&["d", &format!("{}/{}", scene.word(), scene.word())]);
    if scene.random.chance(1, 2) {
        return page.write(sealed(page.left(), scene));
    }
    let mut entries = Vec::new();
    let mut room = page.left().saturating_sub(4);
    loop {
        let (word, number) = (scene.word(), scene.random.next_u64() >> 34);
        let entry = match scene.random.below(3) {
            0 => format!(r#"{{"name":"{word}","at":{number}}}"#),
            1 => format!(r#"{{"key":"{}","seen":{number}}}"#, scene.person()),
            _ => format!(r#""{}""#, scene.lexicon.plain(&mut scene.random, 60)),
        };
        let Some(left) = room.checked_sub(entry.len() + 10) else { break };
        room = left;
        entries.push(entry);
    }
    page.write(format!("[{}]", entries.join(",")));
}

/// What is encrypted by NIP-44: base64 that begins with the version.
fn sealed(room: usize, scene: &mut Scene<'_>) -> String {
    let bytes = (room.saturating_sub(4) / 4 * 3).max(99);
    let mut text = base64(&mut scene.random, bytes - 2);
    text.replace_range(..2, "Ag");
    text
}
