//! What people tell of themselves: who they are, whom they follow, where they are found.

use super::Scene;
use crate::nostr_events::page::{Page, json_len};
use crate::schnorr_events::to_json;

/// Kind 0: JSON within JSON.
pub(super) fn profile(page: &mut Page, scene: &mut Scene<'_>) {
    let name = scene.word().to_owned();
    let mut fields = vec![format!(r#""name":{}"#, to_json(&name))];
    let link = scene.lexicon.link(&mut scene.random);
    let mut room = page.left().saturating_sub(json_len(&fields[0]) + 2);
    for field in [
        format!(r#""picture":"{link}""#),
        format!(r#""display_name":{}"#, to_json(scene.word())),
        format!(r#""lud16":"{name}@{}.example""#, scene.word()),
        format!(r#""nip05":"{name}@{}.example""#, scene.word()),
        format!(r#""banner":"{link}""#),
    ] {
        if json_len(&field) + 1 < room && scene.random.chance(3, 4) {
            room -= json_len(&field) + 1;
            fields.push(field);
        }
    }
    if room > 24 {
        let about = scene.lexicon.prose(&mut scene.random, room - 14);
        // What is escaped once in the profile is escaped twice in the event.
        let escapes = json_len(&about) - about.len();
        let about =
            if escapes > 4 { scene.lexicon.plain(&mut scene.random, room - 14) } else { about };
        fields.push(format!(r#""about":{}"#, to_json(&about)));
    }
    page.write(format!("{{{}}}", fields.join(",")));
}

/// Kind 3.
pub(super) fn follows(page: &mut Page, scene: &mut Scene<'_>) {
    // Most clients write keys alone; those that do not, write a relay and a name with each.
    let names = scene.random.chance(3, 10);
    if scene.random.chance(1, 4) && page.left() > 900 {
        let relays = [scene.relay(), scene.relay(), scene.relay()];
        let entry = |relay: &str| format!(r#""{relay}":{{"read":true,"write":true}}"#);
        page.write(format!("{{{}}}", relays.map(entry).join(",")));
    }
    while page.left() > FOLLOW {
        let person = scene.person();
        match names {
            true if scene.random.chance(1, 3) => {
                page.tag(&["p", &person, scene.relay(), scene.word()]);
            }
            true => page.tag(&["p", &person, "", scene.word()]),
            false => page.tag(&["p", &person]),
        }
        if scene.random.chance(1, 180) {
            page.tag(&["t", scene.word()]);
        }
    }
}

/// Kind 10002.
pub(super) fn relays(page: &mut Page, scene: &mut Scene<'_>) {
    while page.left() > 50 {
        let relay = scene.relay();
        match scene.random.below(4) {
            0 => page.tag(&["r", relay, "read"]),
            1 => page.tag(&["r", relay, "write"]),
            _ => page.tag(&["r", relay]),
        }
    }
    page.tag_before(0, &["r", "wss://relay.example"]);
}

/// Bytes of somebody who is followed.
const FOLLOW: usize = 73;
