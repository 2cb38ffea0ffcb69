//! The state shared by the writers of all kinds of events, and a builder that fills an event up to a
//! given length.

use kernels::hex;

use super::vocabulary::{Vocabulary, json_len, log_rank, rank};
use crate::random::Random;
use crate::schnorr_events::{Author, SignedEvent, UnsignedEvent};

/// A function that fills in the tags and the content of an event.
pub(super) type Fill = fn(&mut EventBuilder, &mut Writer<'_>);

/// The words, authors and earlier events that the tags and contents of new events are drawn from.
pub(super) struct Writer<'c> {
    pub(super) random: Random,
    pub(super) vocabulary: &'c Vocabulary,
    /// The creation time of the event being written, in seconds since 1970.
    pub(super) now: u64,
    fill_of: fn(u16) -> Fill,
    authors: &'c [Author],
    pubkeys: &'c [[u8; 32]],
    earlier: Vec<EarlierEvent>,
    /// The keys named last, at most [`RECENT_KEYS`], and the place of the next one.
    recent: Vec<[u8; 32]>,
    next_recent: usize,
}

/// An event that later events can refer to.
#[derive(Clone, Copy)]
struct EarlierEvent {
    id: [u8; 32],
    pubkey: [u8; 32],
    kind: u16,
}

/// A reference to an event, as text.
pub(super) struct EventRef {
    pub(super) id: String,
    pub(super) pubkey: String,
    pub(super) kind: String,
}

impl<'c> Writer<'c> {
    /// A writer that fills in events of a kind by the function that `fill_of` returns for it.
    pub(super) fn new(
        fill_of: fn(u16) -> Fill,
        random: Random,
        vocabulary: &'c Vocabulary,
        authors: &'c [Author],
        pubkeys: &'c [[u8; 32]],
    ) -> Self {
        Self {
            random,
            vocabulary,
            now: 0,
            fill_of,
            authors,
            pubkeys,
            earlier: Vec::new(),
            recent: Vec::with_capacity(RECENT_KEYS),
            next_recent: 0,
        }
    }

    /// Writes an event of `kind` whose JSON has about `bytes` bytes.
    pub(super) fn write(&mut self, kind: u16, bytes: usize, created_at: u64) -> UnsignedEvent {
        let mut event = EventBuilder::new(kind, bytes);
        self.now = created_at;
        (self.fill_of)(kind)(&mut event, self);
        event.into_unsigned(created_at)
    }

    /// Lets later events refer to this one.
    pub(super) fn remember(&mut self, event: &SignedEvent) {
        let SignedEvent { id, pubkey, unsigned, .. } = event;
        self.earlier.push(EarlierEvent { id: *id, pubkey: *pubkey, kind: unsigned.kind });
    }

    /// A reference to an event, two in three times to an earlier one, mostly a recent one.
    pub(super) fn event_ref(&mut self) -> EventRef {
        let (count, random) = (self.earlier.len(), &mut self.random);
        let is_earlier = count > 0 && random.chance(2, 3);
        let EarlierEvent { id, pubkey, kind } = if is_earlier {
            self.earlier[count - 1 - log_rank(count, random)]
        } else {
            let pubkey = self.pubkeys[rank(self.pubkeys.len(), random)];
            EarlierEvent { id: random.bytes32(), pubkey, kind: 1 }
        };
        EventRef { id: hex::encode(&id), pubkey: hex::encode(&pubkey), kind: kind.to_string() }
    }

    /// A random public key in hexadecimal, every second time one that was named recently.
    pub(super) fn pubkey(&mut self) -> String {
        let random = &mut self.random;
        if !self.recent.is_empty() && random.chance(1, 2) {
            return hex::encode(random.pick::<[u8; 32]>(&self.recent));
        }
        let pubkey = self.pubkeys[rank(self.pubkeys.len(), random)];
        match self.recent.get_mut(self.next_recent) {
            Some(oldest) => *oldest = pubkey,
            None => self.recent.push(pubkey),
        }
        self.next_recent = (self.next_recent + 1) % RECENT_KEYS;
        hex::encode(&pubkey)
    }

    /// A random relay address.
    pub(super) fn relay(&mut self) -> &'c str {
        self.vocabulary.relay(&mut self.random)
    }

    /// A random word.
    pub(super) fn word(&mut self) -> &'c str {
        self.vocabulary.word(&mut self.random)
    }

    /// Text whose JSON has at most `bytes` bytes, and hardly less.
    pub(super) fn prose(&mut self, bytes: usize) -> String {
        self.vocabulary.prose(&mut self.random, bytes)
    }

    /// A signed event of about `bytes` bytes by a random author, and its JSON.
    pub(super) fn embedded_event(&mut self, kind: u16, bytes: usize) -> (SignedEvent, String) {
        let created_at = self.now - self.random.below(5_000);
        let unsigned = self.write(kind, bytes, created_at);
        let author = &self.authors[rank(self.authors.len(), &mut self.random)];
        let event = author.sign(unsigned);
        let json = event.to_json();
        (event, json)
    }

    /// 32 random bytes in hexadecimal.
    pub(super) fn hex32(&mut self) -> String {
        hex::encode(&self.random.bytes32())
    }
}

/// An event under construction, with the bytes of JSON that remain of its intended length.
pub(super) struct EventBuilder {
    kind: u16,
    remaining: usize,
    tags: Vec<Vec<String>>,
    content: String,
}

impl EventBuilder {
    /// An empty event of `kind`; its JSON is to have `bytes` bytes.
    fn new(kind: u16, bytes: usize) -> Self {
        let remaining = bytes.saturating_sub(BARE_BYTES + kind.to_string().len());
        Self { kind, remaining, tags: Vec::new(), content: String::new() }
    }

    /// The remaining bytes of JSON.
    pub(super) fn remaining(&self) -> usize {
        self.remaining
    }

    /// Adds a tag, even beyond the intended length.
    pub(super) fn tag(&mut self, values: &[&str]) {
        self.remaining = self.remaining.saturating_sub(tag_len(values));
        self.tags.push(values.iter().map(|value| (*value).to_owned()).collect());
    }

    /// Adds a tag if at least `reserve` bytes remain after it; returns whether it was added.
    pub(super) fn tag_if_room(&mut self, reserve: usize, values: &[&str]) -> bool {
        let fits = tag_len(values) + reserve <= self.remaining;
        if fits {
            self.tag(values);
        }
        fits
    }

    /// Sets the content.
    pub(super) fn set_content(&mut self, content: String) {
        self.remaining = self.remaining.saturating_sub(json_len(&content));
        self.content = content;
    }

    fn into_unsigned(self, created_at: u64) -> UnsignedEvent {
        UnsignedEvent { created_at, kind: self.kind, tags: self.tags, content: self.content }
    }
}

/// The length of a tag in JSON with the comma after it, in bytes.
fn tag_len(values: &[&str]) -> usize {
    values.iter().map(|value| json_len(value) + 3).sum::<usize>() + 2
}

/// The number of keys that count as named recently.
const RECENT_KEYS: usize = 2_000;

/// The length of an event in JSON without kind, tags and content, in bytes.
const BARE_BYTES: usize = 341;
