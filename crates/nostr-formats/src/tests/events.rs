//! Events for the tests of the formats, fixed and pseudo-random.

use bumpalo::Bump;

use nostr::OwnedEvent;
use nostr::canonical::{self, ControlChars};

/// The event of the published test vectors.
pub(crate) fn golden() -> OwnedEvent {
    let bytes: [u8; 128] = std::array::from_fn(|at| at as u8);
    let hex = "ab".repeat(32);
    OwnedEvent {
        id: *bytes.first_chunk().unwrap(),
        pubkey: *bytes[32..].first_chunk().unwrap(),
        created_at: 1_700_000_123,
        kind: 30_023,
        tags: vec![
            tag(&["e", &hex, "wss://relay.example"]),
            tag(&["custom", "DEADBEEF", "deadbeef"]),
            tag(&[]),
        ],
        content: "Hello, Nostr \u{1f30d}".to_owned(),
        sig: *bytes[64..].first_chunk().unwrap(),
    }
}

/// Events as on relays, which every format holds.
pub(crate) fn ordinary() -> Vec<OwnedEvent> {
    let mut random = Random(7);
    let mut events = vec![golden(), with_tags(&[]), with_content("")];
    events.extend((0..60).map(|_| random_event(&mut random)));
    events.into_iter().map(with_its_id).collect()
}

/// Sets the right id of an event.
pub(crate) fn with_its_id(mut event: OwnedEvent) -> OwnedEvent {
    let arena = Bump::new();
    event.id = canonical::id(&event.borrow_in(&arena), ControlChars::Verbatim, &mut Vec::new());
    event
}

/// Edge cases of the layouts, by name.
pub(super) fn edges() -> Vec<(&'static str, OwnedEvent)> {
    let times = [
        ("a time before 1970", -1),
        ("the minimum time", i64::MIN),
        ("the maximum time", i64::MAX),
        ("time zero", 0),
    ];
    let at = |created_at| OwnedEvent { created_at, ..golden() };
    let of_kind = |kind| OwnedEvent { kind, ..golden() };
    let mut edges: Vec<_> = times.map(|(name, seconds)| (name, at(seconds))).into();
    edges.extend([
        ("kind zero", of_kind(0)),
        ("the maximum kind", of_kind(u16::MAX)),
        (
            "digits in upper case",
            with_tags(&[tag(&["e", &"AB".repeat(32), "DEADBEEF", "dEadbeef"])]),
        ),
        ("an odd number of digits", with_tags(&[tag(&["e", &"a".repeat(63), "abc", "a"])])),
        ("few digits", with_tags(&[tag(&["ab", "2024", "cafe", "cafeca", "beefbeef"])])),
        ("many digits", with_tags(&[tag(&["ab", &"0123456789abcdef".repeat(100)])])),
        ("digits except the last", with_tags(&[tag(&["e", &format!("{}g", "a".repeat(63))])])),
        ("empty values", with_tags(&[tag(&["", "", ""])])),
        ("empty tags", with_tags(&[tag(&[]), tag(&[]), tag(&["x"]), tag(&[])])),
        ("control characters in a value", with_tags(&[tag(&["x", "\u{1}\u{1f}\u{7f}\n\r\t"])])),
        ("NUL in a value", with_tags(&[tag(&["x", "a\0b", "\0"])])),
        ("NUL in the content", with_content("a\0b\u{1}\u{8}\u{c}\u{1f}")),
        ("content of digits", with_content(&"deadbeef".repeat(20))),
        ("content of few digits", with_content("cafe")),
        ("content of digits in upper case", with_content("DEADBEEF")),
        ("127 bytes of content", with_content(&"x".repeat(127))),
        ("content of 1 MiB", with_content(&"\u{e9}x ".repeat((1 << 20) / 4))),
        ("a value of 32 KiB", with_tags(&[tag(&["x", &"x".repeat(32 << 10)])])),
        ("a value of 64 KiB", with_tags(&[tag(&["x", &"x".repeat(64 << 10)])])),
        ("a value of 64 KiB of digits", with_tags(&[tag(&["x", &"ab".repeat(32 << 10)])])),
        ("255 values in a tag", with_tags(&[vec!["x".to_owned(); 255]])),
        ("256 values in a tag", with_tags(&[vec!["x".to_owned(); 256]])),
        ("70,000 values in a tag", with_tags(&[vec!["x".to_owned(); 70_000]])),
        ("70,000 tags", with_tags(&vec![tag(&["x"]); 70_000])),
    ]);
    for len in [1, 23, 24, 31, 32, 125, 126, 127, 128, 255, 256] {
        let (text, digits) = ("x".repeat(len), "0a".repeat(len));
        edges.push(("lengths at the limits of heads", with_tags(&[tag(&[&text, &digits])])));
        edges.push(("counts at the limits of heads", with_tags(&vec![tag(&["x"]); len])));
    }
    edges.into_iter().map(|(name, event)| (name, with_its_id(event))).collect()
}

fn with_tags(tags: &[Vec<String>]) -> OwnedEvent {
    OwnedEvent { tags: tags.to_vec(), ..golden() }
}

fn with_content(content: &str) -> OwnedEvent {
    OwnedEvent { content: content.to_owned(), ..golden() }
}

fn tag(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn random_event(random: &mut Random) -> OwnedEvent {
    let tag_count = random.below(20);
    OwnedEvent {
        id: random.bytes(),
        pubkey: random.bytes(),
        created_at: random.below(1 << 32) as i64,
        kind: random.below(1 << 16) as u16,
        tags: (0..tag_count).map(|_| random_tag(random)).collect(),
        content: (0..random.below(12)).map(|_| random_text(random)).collect(),
        sig: random.bytes(),
    }
}

fn random_tag(random: &mut Random) -> Vec<String> {
    (0..random.below(6)).map(|_| random_text(random)).collect()
}

fn random_text(random: &mut Random) -> String {
    let len = random.below(40);
    match random.below(6) {
        0 => kernels::hex::encode(&random.bytes::<32>()),
        1 => kernels::hex::encode(&random.bytes::<64>()[..len]),
        2 => (0..len).map(|_| b"0123456789abcdefABCDEFg"[random.below(23)] as char).collect(),
        3 => "wss://relay.example/".to_owned(),
        4 => "\"\\\n\u{e9}\u{4e16}\u{1f30d}".chars().cycle().take(len).collect(),
        _ => ["e", "p", "t", "", "a"][random.below(5)].to_owned(),
    }
}

/// The xorshift64* generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| (self.next() >> 40) as u8)
    }

    /// Changes `bytes` in one to three places.
    pub(crate) fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len().max(1)).min(bytes.len());
            let end = (at + self.below(9)).min(bytes.len());
            match self.below(8) {
                _ if bytes.is_empty() => return,
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.next() as u8,
                2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
                3 => drop(bytes.drain(at..end)),
                4 => bytes.insert(at, self.next() as u8),
                5 => bytes[at..end].fill(0xff),
                6 => bytes.extend_from_within(at..end),
                _ => bytes.truncate(at),
            }
        }
    }
}
