//! Events about people and between them: profiles, lists, encrypted messages and payments.

use kernels::hex;

use super::vocabulary::{base64, bech32, json_len};
use super::writer::{EventBuilder, EventRef, Writer};
use crate::schnorr_events::to_json;

/// Profile (kind 0): JSON within JSON.
pub(super) fn profile(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let name = writer.word().to_owned();
    let mut fields = vec![format!(r#""name":{}"#, to_json(&name))];
    let link = writer.vocabulary.link(&mut writer.random);
    let mut budget = event.remaining().saturating_sub(json_len(&fields[0]) + 2);
    for field in [
        format!(r#""picture":"{link}""#),
        format!(r#""display_name":{}"#, to_json(writer.word())),
        format!(r#""lud16":"{name}@{}.example""#, writer.word()),
        format!(r#""nip05":"{name}@{}.example""#, writer.word()),
        format!(r#""banner":"{link}""#),
    ] {
        if json_len(&field) + 1 < budget && writer.random.chance(3, 4) {
            budget -= json_len(&field) + 1;
            fields.push(field);
        }
    }
    if budget > 24 {
        let about = writer.vocabulary.prose(&mut writer.random, budget - 14);
        // A character escaped once in the profile is escaped twice in the event.
        let escapes = json_len(&about) - about.len();
        let about = if escapes > 4 {
            writer.vocabulary.plain(&mut writer.random, budget - 14)
        } else {
            about
        };
        fields.push(format!(r#""about":{}"#, to_json(&about)));
    }
    event.set_content(format!("{{{}}}", fields.join(",")));
}

/// Follow list (kind 3).
pub(super) fn follows(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    // Most clients write keys only; the others write a relay and a name with every key.
    let names = writer.random.chance(3, 10);
    if writer.random.chance(1, 4) && event.remaining() > 900 {
        let relays = [writer.relay(), writer.relay(), writer.relay()];
        let entry = |relay: &str| format!(r#""{relay}":{{"read":true,"write":true}}"#);
        event.set_content(format!("{{{}}}", relays.map(entry).join(",")));
    }
    while event.remaining() > TAG_OF_ID {
        let key = writer.pubkey();
        match names {
            true if writer.random.chance(1, 3) => {
                event.tag(&["p", &key, writer.relay(), writer.word()]);
            }
            true => event.tag(&["p", &key, "", writer.word()]),
            false => event.tag(&["p", &key]),
        }
        if writer.random.chance(1, 180) {
            event.tag(&["t", writer.word()]);
        }
    }
}

/// Relay list (kind 10002).
pub(super) fn relay_list(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    while event.remaining() > 50 {
        let relay = writer.relay();
        match writer.random.below(4) {
            0 => event.tag(&["r", relay, "read"]),
            1 => event.tag(&["r", relay, "write"]),
            _ => event.tag(&["r", relay]),
        }
    }
    event.tag_if_room(0, &["r", "wss://relay.example"]);
}

/// Encrypted message (kind 4): base64 of blocks of 16 bytes and of the initialization vector.
pub(super) fn encrypted_message(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let key = writer.pubkey();
    event.tag(&["p", &key]);
    let budget = event.remaining().saturating_sub("?iv=".len() + 24);
    let bytes = (budget / 4 * 3 / 16 * 16).max(16);
    let [text, vector] = [bytes, 16].map(|bytes| base64(&mut writer.random, bytes));
    event.set_content(format!("{text}?iv={vector}"));
}

/// Gift wrap (kind 1059).
pub(super) fn gift_wrap(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let key = writer.pubkey();
    event.tag(&["p", &key]);
    event.set_content(nip44(event.remaining(), writer));
}

/// Encrypted draft (kind 31234).
pub(super) fn encrypted_draft(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let name = writer.hex32();
    event.tag(&["d", &name[..16]]);
    event.tag(&["k", "1"]);
    let about = writer.event_ref();
    if event.remaining() > 300 && writer.random.chance(1, 2) {
        event.tag(&["e", &about.id, writer.relay(), "root"]);
    }
    event.set_content(nip44(event.remaining(), writer));
}

/// Application data (kind 30078), encrypted, as a list of keys and numbers, or as counts.
pub(super) fn app_data(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    event.tag(&["d", &format!("{}/{}", writer.word(), writer.word())]);
    if COUNTS_BYTES.contains(&event.remaining()) {
        return counts_by_minute(event, writer);
    }
    if writer.random.chance(1, 2) {
        return event.set_content(nip44(event.remaining(), writer));
    }
    let mut entries = Vec::new();
    let mut budget = event.remaining().saturating_sub(4);
    loop {
        let (word, number) = (writer.word(), writer.random.next_u64() >> 34);
        let entry = match writer.random.below(3) {
            0 => format!(r#"{{"name":"{word}","at":{number}}}"#),
            1 => format!(r#"{{"key":"{}","seen":{number}}}"#, writer.pubkey()),
            _ => format!(r#""{}""#, writer.vocabulary.plain(&mut writer.random, 60)),
        };
        let Some(rest) = budget.checked_sub(entry.len() + 10) else { break };
        budget = rest;
        entries.push(entry);
    }
    event.set_content(format!("[{}]", entries.join(",")));
}

/// The counts of a day: a tag per minute, named by it.
fn counts_by_minute(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    for minute in 0..24 * 60 {
        let name = format!("20260101{:02}{:02}", minute / 60, minute % 60);
        event.tag(&[&name, &writer.random.below(100).to_string()]);
    }
}

/// A NIP-44 payload: base64 that begins with the version.
fn nip44(budget: usize, writer: &mut Writer<'_>) -> String {
    let bytes = (budget.saturating_sub(4) / 4 * 3).max(99);
    let mut text = base64(&mut writer.random, bytes - 2);
    text.replace_range(..2, "Ag");
    text
}

/// Zap request (kind 9734).
pub(super) fn zap_request(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let EventRef { id, pubkey, .. } = writer.event_ref();
    event.tag(&["p", &pubkey]);
    event.tag_if_room(0, &["amount", amount(writer)]);
    let mut relays = vec!["relays", writer.relay()];
    let budget = event.remaining().saturating_sub(90);
    let mut used = 60;
    while used < budget && relays.len() < MAX_RELAYS {
        relays.push(writer.relay());
        used += 30;
    }
    event.tag_if_room(80, &relays);
    event.tag_if_room(0, &["e", &id]);
    event.set_content(writer.vocabulary.plain(&mut writer.random, event.remaining()));
}

/// Zap receipt (kind 9735), with the request in it.
pub(super) fn zap_receipt(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let invoice = invoice(writer);
    let preimage = writer.hex32();
    let has_preimage = writer.random.chance(1, 2);
    let other = 4 * TAG_OF_ID + invoice.len() + 60;
    // In JSON within JSON a quote takes two bytes, and there are some 50 of them.
    let bytes = event.remaining().saturating_sub(other + 50).clamp(560, 1400);
    let (request, json) = writer.embedded_event(9734, bytes);
    let about = writer.event_ref();
    let to =
        request.unsigned.tags.iter().find(|tag| tag[0] == "p").map_or(&about.pubkey, |tag| &tag[1]);
    event.tag(&["p", to]);
    event.tag(&["P", &hex::encode(&request.pubkey)]);
    if let Some(tag) = request.unsigned.tags.iter().find(|tag| tag[0] == "e") {
        event.tag(&["e", &tag[1]]);
    }
    event.tag(&["bolt11", &invoice]);
    event.tag(&["description", &json]);
    if has_preimage {
        event.tag_if_room(0, &["preimage", &preimage]);
    }
}

/// Zap goal (kind 9041).
pub(super) fn zap_goal(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let closed_at = (writer.now + writer.random.below(3_000_000)).to_string();
    event.tag(&["relays", writer.relay(), writer.relay()]);
    event.tag(&["amount", amount(writer)]);
    event.tag_if_room(40, &["closed_at", &closed_at]);
    let summary = writer.vocabulary.plain(&mut writer.random, event.remaining().saturating_sub(60));
    event.tag_if_room(10, &["summary", &summary]);
    event.set_content(writer.vocabulary.plain(&mut writer.random, event.remaining()));
}

fn amount(writer: &mut Writer<'_>) -> &'static str {
    writer.random.pick::<&str>(&["21000", "21000", "100000", "500000", "1000000", "2100000"])
}

/// Text in the form of a Lightning invoice.
fn invoice(writer: &mut Writer<'_>) -> String {
    let chars = writer.random.between(260, 360) as usize;
    format!("lnbc210n1{}", bech32(&mut writer.random, chars))
}

/// The length of a tag with an event id or a key, in bytes.
const TAG_OF_ID: usize = 73;

/// Application data of about the length of the counts of a day consists of these counts.
const COUNTS_BYTES: std::ops::Range<usize> = 24_000..60_000;

/// The maximum number of values of a relays tag.
const MAX_RELAYS: usize = 40;
