//! Which names and strings are so frequent that a number stands for them?
//!
//! Names of tags and strings as they are in real events and in NIPs. The numbers are part of version 1:
//! a place in these tables is never given to another word.

/// Names of tags, by their numbers.
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

/// Strings that values and contents are, by their numbers.
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
    find(&NAMES, &NAME_PLACES, text)
}

/// The number of a string.
#[inline]
pub(super) fn string(text: &str) -> Option<u8> {
    find(&STRINGS, &STRING_PLACES, text)
}

#[inline]
fn find(words: &[&str], places: &Places, text: &str) -> Option<u8> {
    let mut place = place(text.as_bytes())?;
    while let Some(word) = words.get(usize::from(places[place])) {
        if *word == text {
            return Some(places[place]);
        }
        place = (place + 1) % places.len();
    }
    None
}

/// Where the search for a text begins; nowhere if no word is that long.
#[inline]
const fn place(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > MAX_BYTES {
        return None;
    }
    let (first, last) = (text[0] as usize, text[text.len() - 1] as usize);
    let middle = text[text.len() / 2] as usize;
    Some((first * 5 + middle * 29 + last * 67 + text.len() * 101) % PLACES)
}

/// Numbers of words by place, each at its own place or the next free one behind.
type Places = [u8; PLACES];

const fn places(words: &[&str]) -> Places {
    let mut places = [NO_WORD; PLACES];
    let mut number = 0;
    while number < words.len() {
        let Some(mut place) = place(words[number].as_bytes()) else { panic!("a word is too long") };
        while places[place] != NO_WORD {
            place = (place + 1) % PLACES;
        }
        places[place] = number as u8;
        number += 1;
    }
    places
}

static NAME_PLACES: Places = places(&NAMES);
static STRING_PLACES: Places = places(&STRINGS);

const PLACES: usize = 512;
const NO_WORD: u8 = 0xff;

/// Bytes of the longest word.
const MAX_BYTES: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    #[test]
    fn every_word_has_its_number_and_nothing_else_has_one() {
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
    fn no_string_could_be_told_as_digits() {
        assert!(STRINGS.iter().all(|word| Value::Text(word).hex_len(1).is_none()));
    }
}
