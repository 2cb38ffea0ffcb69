//! Tables of frequent tag names and strings, which are stored by number.
//!
//! The entries are taken from real events and NIPs. The numbers are part of version 1: an entry never changes.

/// Tag names by number.
pub const NAMES: [&str; 63] = [
    "p",
    "e",
    "t",
    "r",
    "d",
    "a",
    "q",
    "k",
    "l",
    "L",
    "i",
    "m",
    "u",
    "x",
    "g",
    "P",
    "E",
    "A",
    "K",
    "I",
    "s",
    "f",
    "alt",
    "client",
    "relays",
    "relay",
    "title",
    "summary",
    "image",
    "description",
    "published_at",
    "name",
    "url",
    "imeta",
    "emoji",
    "nonce",
    "bolt11",
    "preimage",
    "amount",
    "zap",
    "proxy",
    "expiration",
    "content-warning",
    "subject",
    "source",
    "status",
    "type",
    "size",
    "dim",
    "blurhash",
    "thumb",
    "server",
    "lnurl",
    "delegation",
    "request",
    "param",
    "closed_at",
    "starts",
    "ends",
    "location",
    "challenge",
    "web",
    "word",
];

/// Strings of values and contents by number.
pub const STRINGS: [&str; 64] = [
    "root",
    "reply",
    "mention",
    "read",
    "write",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "+",
    "-",
    "🤙",
    "❤️",
    "wss://relay.damus.io",
    "wss://relay.damus.io/",
    "wss://nos.lol",
    "wss://nos.lol/",
    "wss://relay.primal.net",
    "wss://relay.primal.net/",
    "wss://relay.nostr.band",
    "wss://relay.nostr.band/",
    "wss://relay.snort.social",
    "wss://relay.snort.social/",
    "wss://nostr.wine",
    "wss://nostr.wine/",
    "wss://purplepag.es",
    "wss://purplepag.es/",
    "wss://nostr.mom",
    "wss://nostr.mom/",
    "wss://eden.nostr.land",
    "wss://eden.nostr.land/",
    "wss://relay.mostr.pub",
    "wss://relay.mostr.pub/",
    "wss://nostr-pub.wellorder.net",
    "wss://nostr-pub.wellorder.net/",
    "wss://nostr.bitcoiner.social",
    "wss://nostr.bitcoiner.social/",
    "wss://offchain.pub",
    "wss://offchain.pub/",
    "wss://nostr.oxtr.dev",
    "wss://nostr.oxtr.dev/",
    "wss://relay.nostr.bg",
    "wss://relay.nostr.bg/",
    "wss://relay.current.fyi",
    "wss://nostr.land",
    "wss://nostr.land/",
    "wss://premium.primal.net",
    "wss://premium.primal.net/",
    "wss://relay.momostr.pink/",
    "wss://ditto.pub/relay",
    "activitypub",
    "pink.momostr",
    "nostr",
    "bitcoin",
    "Bitcoin",
    "json",
    "web",
    "rss",
    "open",
    "closed",
    "image/jpeg",
];

/// The number of a name.
#[inline]
pub(super) fn name(text: &str) -> Option<u8> {
    find(&NAMES, &NAME_SLOTS, text)
}

/// The number of a string.
#[inline]
pub(super) fn string(text: &str) -> Option<u8> {
    find(&STRINGS, &STRING_SLOTS, text)
}

#[inline]
fn find(words: &[&str], slots: &Slots, text: &str) -> Option<u8> {
    let mut slot = first_slot(text.as_bytes())?;
    while let Some(word) = words.get(usize::from(slots[slot])) {
        if *word == text {
            return Some(slots[slot]);
        }
        slot = (slot + 1) % slots.len();
    }
    None
}

/// The first slot of a text in the hash table; `None` if it is empty or longer than every word.
#[inline]
const fn first_slot(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > MAX_BYTES {
        return None;
    }
    let (first, last) = (text[0] as usize, text[text.len() - 1] as usize);
    let middle = text[text.len() / 2] as usize;
    Some((first * 5 + middle * 29 + last * 67 + text.len() * 101) % SLOTS)
}

/// A hash table with linear probing: numbers of words by slot.
type Slots = [u8; SLOTS];

const fn slots(words: &[&str]) -> Slots {
    let mut slots = [NO_WORD; SLOTS];
    let mut number = 0;
    while number < words.len() {
        let Some(mut slot) = first_slot(words[number].as_bytes()) else {
            panic!("a word is too long")
        };
        while slots[slot] != NO_WORD {
            slot = (slot + 1) % SLOTS;
        }
        slots[slot] = number as u8;
        number += 1;
    }
    slots
}

static NAME_SLOTS: Slots = slots(&NAMES);
static STRING_SLOTS: Slots = slots(&STRINGS);

const SLOTS: usize = 512;
const NO_WORD: u8 = 0xff;

/// Length of the longest word in bytes.
const MAX_BYTES: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use nostr::Value;

    #[test]
    fn every_word_has_its_number_and_no_other_text_has_one() {
        for (number, word) in NAMES.iter().enumerate() {
            assert_eq!(name(word), Some(number as u8), "{word}");
        }
        for (number, word) in STRINGS.iter().enumerate() {
            assert_eq!(string(word), Some(number as u8), "{word}");
            assert!(word.len() <= MAX_BYTES);
        }
        for other in ["", "E ", "wss://", "relay.damus.io", "rooT", &"x".repeat(200)] {
            assert_eq!((name(other), string(other)), (None, None), "{other}");
        }
    }

    #[test]
    fn no_string_could_be_stored_as_digits() {
        assert!(STRINGS.iter().all(|word| Value::Text(word).hex_len(1).is_none()));
    }
}
