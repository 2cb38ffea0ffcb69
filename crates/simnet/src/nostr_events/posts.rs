//! Public posts: notes, reactions, reposts, articles, media and job results.

use kernels::hex;

use super::vocabulary::{EMOJI, json_len};
use super::writer::{EventBuilder, EventRef, Writer};
use crate::random::Random;

/// Note (kind 1).
pub(super) fn note(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    match writer.random.below(100) {
        0..40 => {}
        40..86 => reply(event, writer),
        86..93 => thread(event, writer),
        _ => topics(event, writer),
    }
    if writer.random.chance(1, 4) {
        extras(event, writer);
    }
    let text = if writer.random.chance(1, NOTES_PER_CONTROL) {
        text_with_controls(writer, event.remaining())
    } else {
        writer.prose(event.remaining())
    };
    event.set_content(text);
}

/// Text with control characters before its first words, as pasted from a terminal.
fn text_with_controls(writer: &mut Writer<'_>, bytes: usize) -> String {
    let count = writer.random.between(1, 12) as usize;
    let prose = writer.prose(bytes.saturating_sub(count * "\\u0000".len()));
    let mut text = String::with_capacity(bytes);
    for (at, word) in prose.split_inclusive(' ').enumerate() {
        text.extend((at < count).then(|| *writer.random.pick::<char>(&CONTROLS)));
        text.push_str(word);
    }
    text
}

/// The tags of a reply.
fn reply(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let EventRef { id, pubkey, .. } = writer.event_ref();
    match writer.random.below(3) {
        0 => event.tag_if_room(WORDS, &["e", &id]),
        1 => event.tag_if_room(WORDS, &["e", &id, "", "root"]),
        _ => event.tag_if_room(WORDS, &["e", &id, writer.relay(), "root", &pubkey]),
    };
    event.tag_if_room(WORDS, &["p", &pubkey]);
}

/// The tags of a reply within a thread.
fn thread(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let [root, last] = [writer.event_ref(), writer.event_ref()];
    event.tag_if_room(WORDS, &["e", &root.id, writer.relay(), "root", &root.pubkey]);
    event.tag_if_room(WORDS, &["e", &last.id, writer.relay(), "reply", &last.pubkey]);
    event.tag_if_room(WORDS, &["p", &root.pubkey]);
    event.tag_if_room(WORDS, &["p", &last.pubkey]);
    for _ in 0..writer.random.below(9) {
        let key = writer.pubkey();
        event.tag_if_room(WORDS, &["p", &key]);
    }
}

fn topics(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    for _ in 0..writer.random.between(1, 12) {
        event.tag_if_room(WORDS, &["t", writer.word()]);
    }
}

/// Tags that only some clients write.
fn extras(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let link = writer.vocabulary.link(&mut writer.random);
    match writer.random.below(10) {
        0 => {
            let [url, hash] = [format!("url {link}"), format!("x {}", writer.hex32())];
            event.tag_if_room(WORDS, &["imeta", &url, "m image/jpeg", "dim 1170x2532", &hash])
        }
        1 => event.tag_if_room(WORDS, &["emoji", writer.word(), &link]),
        2 => {
            let (pubkey, name) = (writer.pubkey(), writer.word());
            let address = format!("30023:{pubkey}:{name}");
            event.tag_if_room(WORDS, &["a", &address, writer.relay(), "mention"])
        }
        3 => {
            let EventRef { id, pubkey, .. } = writer.event_ref();
            event.tag_if_room(WORDS, &["q", &id, writer.relay(), &pubkey])
        }
        4 => event.tag_if_room(WORDS, &["client", writer.word()]),
        5 | 6 => {
            let name = *writer.random.pick::<&str>(&RARE_NAMES);
            event.tag_if_room(WORDS, &[name, writer.word()])
        }
        _ => event.tag_if_room(WORDS, &["r", &link]),
    };
}

/// Channel message (kind 42).
pub(super) fn channel_message(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let EventRef { id, pubkey, .. } = writer.event_ref();
    event.tag(&["e", &id, writer.relay(), "root"]);
    if writer.random.chance(1, 3) {
        event.tag_if_room(WORDS, &["p", &pubkey]);
    }
    event.set_content(writer.prose(event.remaining()));
}

/// Reaction (kind 7).
pub(super) fn reaction(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let EventRef { id, pubkey, kind } = writer.event_ref();
    let relay = writer.relay();
    let content = match writer.random.below(5) {
        0..3 => "+",
        _ => *writer.random.pick::<&str>(&EMOJI),
    };
    let budget = event.remaining().saturating_sub(EVENT_AND_AUTHOR);
    if budget > 100 && writer.random.chance(1, 2) {
        event.tag(&["e", &id, relay, &pubkey]);
        event.tag(&["p", &pubkey, relay]);
    } else {
        event.tag(&["e", &id]);
        if event.remaining() > 70 {
            event.tag(&["p", &pubkey]);
        }
    }
    event.tag_if_room(9, &["k", &kind]);
    // The participants of the conversation.
    while event.remaining() > 80 {
        let key = writer.pubkey();
        event.tag(&["p", &key]);
    }
    event.set_content(content.to_owned());
}

/// Repost (kind 6), with the quoted event if it fits.
pub(super) fn repost(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let budget = event.remaining().saturating_sub(EVENT_AND_AUTHOR + 40);
    if budget < SHORTEST_QUOTE {
        let EventRef { id, pubkey, kind } = writer.event_ref();
        event.tag(&["e", &id, writer.relay()]);
        event.tag(&["p", &pubkey]);
        event.tag_if_room(0, &["k", &kind]);
        return;
    }
    // In JSON within JSON a quote takes two bytes, and there are some 40 of them.
    let (quoted, mut json) = writer.embedded_event(1, budget - 40);
    while json_len(&json) > budget + 200 {
        json = writer.embedded_event(1, budget - 100).1;
    }
    event.tag(&["e", &hex::encode(&quoted.id), writer.relay()]);
    event.tag(&["p", &hex::encode(&quoted.pubkey)]);
    event.set_content(json);
}

/// Deletion (kind 5).
pub(super) fn deletion(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let EventRef { id, pubkey, kind } = writer.event_ref();
    event.tag(&["e", &id]);
    while event.remaining() > 90 {
        let about = writer.event_ref();
        if writer.random.chance(3, 5) {
            event.tag(&["p", &about.pubkey])
        } else {
            event.tag(&["e", &about.id])
        }
    }
    if writer.random.chance(1, 6) {
        event.tag_if_room(0, &["a", &format!("30023:{pubkey}:{}", writer.word())]);
    }
    event.tag_if_room(0, &["k", &kind]);
    event.tag_if_room(0, &["alt", "Deletion event"]);
}

/// Labels (kind 1985).
pub(super) fn labels(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    event.tag(&["L", "social.labels.example"]);
    event.tag(&["l", writer.word(), "social.labels.example"]);
    while event.remaining() > 110 {
        let about = writer.event_ref();
        match writer.random.below(10) {
            0 => event.tag(&["t", writer.word()]),
            1 => event.tag(&["r", &writer.vocabulary.link(&mut writer.random)]),
            2..5 => event.tag(&["p", &about.pubkey]),
            _ => event.tag(&["e", &about.id, writer.relay()]),
        }
    }
}

/// Article (kind 30023).
pub(super) fn article(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let (vocabulary, random) = (writer.vocabulary, &mut writer.random);
    let summary_bytes = summary_bytes(event.remaining(), random);
    let [title, summary] = [50, summary_bytes].map(|bytes| vocabulary.title(random, bytes));
    let image = vocabulary.link(random);
    let published = (writer.now - random.below(10_000_000)).to_string();
    event.tag(&["d", &title.replace(' ', "-")]);
    for tag in [["title", &title], ["published_at", &published], ["summary", &summary]] {
        event.tag_if_room(20, &tag);
    }
    event.tag_if_room(20, &["image", &image]);
    for _ in 0..writer.random.between(1, 6) {
        event.tag_if_room(20, &["t", writer.word()]);
    }
    let mut text = format!("# {title}\n\n");
    while json_len(&text) + 400 < event.remaining() {
        let len = writer.random.between(200, 900) as usize;
        let budget = event.remaining() - json_len(&text) - 40;
        text.push_str(&writer.prose(len.min(budget)));
        text.push_str(writer.random.pick::<&str>(&["\n\n", "\n\n## And then\n\n", "\n\n> "]));
    }
    let budget = event.remaining().saturating_sub(json_len(&text));
    text.push_str(&writer.prose(budget));
    event.set_content(text);
}

/// The length of an article's summary: some are a large part of the article, and the longest article is nearly all
/// summary.
fn summary_bytes(remaining: usize, random: &mut Random) -> usize {
    match remaining {
        LONG_ARTICLE.. => (remaining - 1_000).min(LONGEST_SUMMARY),
        _ if random.chance(1, 9) => remaining * random.between(30, 80) as usize / 100,
        _ => 140,
    }
}

/// Repository state (kind 30618): a tag per branch, named by it.
pub(super) fn repository_state(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    event.tag(&["d", writer.word()]);
    event.tag(&["HEAD", "ref: refs/heads/main"]);
    let mut branch = "refs/heads/main".to_owned();
    while event.tag_if_room(0, &[&branch, &writer.hex32()[..40]]) {
        branch = format!("refs/heads/{}-{}", writer.word(), writer.word());
    }
}

/// The bytes reserved for a few words of content.
const WORDS: usize = 12;

/// The length of an article with the text in its summary, in bytes.
const LONG_ARTICLE: usize = 36_000;

/// The length of the longest summary in bytes, which the default limit on a value allows.
const LONGEST_SUMMARY: usize = 60_000;

/// One in this many notes has control characters.
const NOTES_PER_CONTROL: u64 = 400;

/// The control characters that JSON escapes, without NUL and the ones in text files.
const CONTROLS: [char; 28] = [
    '\u{1}', '\u{2}', '\u{3}', '\u{4}', '\u{5}', '\u{6}', '\u{7}', '\u{8}', '\u{b}', '\u{c}',
    '\u{e}', '\u{f}', '\u{10}', '\u{11}', '\u{12}', '\u{13}', '\u{14}', '\u{15}', '\u{16}',
    '\u{17}', '\u{18}', '\u{19}', '\u{1a}', '\u{1b}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{1f}',
];

/// Names of tags that occur in a few events in a thousand.
const RARE_NAMES: [&str; 66] = [
    "-",
    "N",
    "about",
    "agent",
    "amt",
    "banner",
    "bitcoin",
    "blossoms",
    "blurhash",
    "challenge",
    "clone",
    "consensus_threshold",
    "content-warning",
    "current_participants",
    "delegation",
    "dim",
    "display_name",
    "ephemeralKey",
    "expiration",
    "f",
    "fa",
    "g",
    "goal",
    "guid",
    "i",
    "lamport",
    "layer",
    "lnurl",
    "location",
    "lud16",
    "m",
    "maintainers",
    "mostr",
    "n",
    "name",
    "network",
    "nip05",
    "nonce",
    "other",
    "picture",
    "pm",
    "poll_option",
    "premium",
    "proxy",
    "rtt-open",
    "rtt-read",
    "s",
    "server",
    "service",
    "sharedSecret",
    "size",
    "source",
    "subject",
    "thumb",
    "type",
    "u",
    "url",
    "value_maximum",
    "value_minimum",
    "vsk",
    "web",
    "website",
    "x",
    "y",
    "z",
    "zap",
];

/// The length of the tags of an event and its author, in bytes.
const EVENT_AND_AUTHOR: usize = 145;

/// The minimum length of a note within JSON, in bytes.
const SHORTEST_QUOTE: usize = 430;

/// Video (kind 34236).
pub(super) fn video(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let (vocabulary, random) = (writer.vocabulary, &mut writer.random);
    let [video, image] = [vocabulary.link(random), vocabulary.link(random)];
    let title = vocabulary.title(random, 30);
    let hash = writer.hex32();
    event.tag(&["d", &hash[..24]]);
    event.tag(&["title", &title]);
    let parts = [format!("url {video}"), format!("image {image}"), format!("x {hash}")];
    event.tag(&["imeta", &parts[0], "m video/mp4", "dim 480x480", &parts[1], &parts[2]]);
    event.tag_if_room(40, &["duration", "6"]);
    event.tag_if_room(40, &["alt", &title]);
    for name in ["loops", "likes", "reposts", "comments"] {
        event.tag_if_room(40, &[name, &writer.random.below(90_000).to_string()]);
    }
    for _ in 0..writer.random.below(8) {
        event.tag_if_room(40, &["t", writer.word()]);
    }
    event.set_content(writer.prose(event.remaining()));
}

/// Live event (kind 30311).
pub(super) fn live_event(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let (vocabulary, random) = (writer.vocabulary, &mut writer.random);
    let title = vocabulary.title(random, 24);
    let [image, stream] = [vocabulary.link(random), vocabulary.link(random)];
    let starts = (writer.now - random.below(9_000)).to_string();
    let status = *random.pick::<&str>(&["live", "ended", "planned"]);
    event.tag(&["d", &writer.hex32()[..32]]);
    for tag in [["title", &title], ["status", status], ["starts", &starts]] {
        event.tag(&tag);
    }
    event.tag_if_room(0, &["streaming", &stream]);
    event.tag_if_room(0, &["image", &image]);
    while event.remaining() > 130 {
        let (key, relay) = (writer.pubkey(), writer.relay());
        match writer.random.below(4) {
            0 => event.tag(&["t", writer.word()]),
            1 => event.tag(&["p", &key, relay, "Host"]),
            _ => event.tag(&["p", &key, relay, "Participant"]),
        }
    }
    let summary = writer.vocabulary.plain(&mut writer.random, event.remaining().saturating_sub(14));
    event.tag_if_room(0, &["summary", &summary]);
}

/// Job request (kind 5300).
pub(super) fn job_request(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let key = writer.pubkey();
    event.tag(&["p", &key]);
    let alt = writer.vocabulary.plain(&mut writer.random, 60);
    event.tag_if_room(0, &["alt", &alt]);
    let mut relays = vec!["relays"];
    let mut budget = event.remaining().saturating_sub(11);
    while let Some(rest) = budget.checked_sub(writer.vocabulary.longest_relay() + 3) {
        let relay = writer.relay();
        budget = rest + writer.vocabulary.longest_relay() - relay.len();
        relays.push(relay);
    }
    event.tag(&relays);
}

/// Job result (kind 6300): recommended events as a list of tags in JSON.
pub(super) fn job_result(event: &mut EventBuilder, writer: &mut Writer<'_>) {
    let (request, json) = writer.embedded_event(5300, 605);
    event.tag(&["p", &hex::encode(&request.pubkey)]);
    event.tag(&["e", &hex::encode(&request.id), writer.relay()]);
    event.tag(&["status", "success"]);
    event.tag(&["request", &json]);
    let count = (event.remaining() / RECOMMENDED_BYTES).max(1);
    let recommended = |EventRef { id, .. }| format!(r#"["e","{id}"]"#);
    let list: Vec<_> = (0..count).map(|_| recommended(writer.event_ref())).collect();
    event.set_content(format!("[{}]", list.join(",")));
}

/// The length of a tag within JSON within JSON, in bytes.
const RECOMMENDED_BYTES: usize = 77;

#[cfg(test)]
mod tests {
    use nostr::Limits;

    use super::*;
    use crate::random::Seed;

    #[test]
    fn no_summary_exceeds_the_default_limit_on_a_value() {
        let mut random = Seed::new(1, "summaries").stream(0);
        for remaining in (0..1 << 20).step_by(997) {
            let len = summary_bytes(remaining, &mut random);
            assert!(len <= Limits::default().value_bytes, "{len} of {remaining}");
        }
    }
}
