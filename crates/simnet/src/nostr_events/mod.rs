//! Nostr events as a relay receives them, one JSON object a line.
//!
//! Kinds, lengths and tags follow measurements of real relays; events a key, names of tags, the longest value
//! and the gain of binary formats follow 6,232 events that were published under permissive licences. Ids and
//! BIP-340 signatures are real; the content is generated. Some formats cannot hold all of these events: a value of
//! a tag has up to 41 kB, and some text has control characters. No text has a NUL, which the databases of many
//! relays reject.
//!
//! ```
//! use wireproof_simnet::nostr_events::{Corpus, Spec};
//! let corpus = Corpus::generate(&Spec { events: 50, ..Spec::quick() });
//! assert_eq!(corpus.to_file().lines().count(), 50);
//! ```

mod calibration;
mod people;
mod posts;
#[cfg(test)]
mod tests;
mod vocabulary;
mod writer;

use nostr::OwnedEvent;
use serde::{Deserialize, Serialize};

use crate::corpus::{self, NoDetails};
use crate::nostr_sampling::{self, EventGroup, Sampler};
use crate::random::{DEFAULT_SEED, Random, Seed};
use crate::schnorr_events::{Author, SignedEvent, UnsignedEvent};
use crate::time::START_SECOND;
use calibration::{KINDS, QUANTILE_END};
use vocabulary::{Vocabulary, log_rank};
use writer::{Fill, Writer};

/// The specification of a file of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The seed.
    pub seed: u64,
    /// The number of authors; every author writes at least one event if there are enough.
    pub authors: usize,
    /// The number of events of all authors together.
    pub events: usize,
}

impl Default for Spec {
    /// 10,000 events of 4,150 authors.
    fn default() -> Self {
        Self { seed: DEFAULT_SEED, authors: 4_150, events: 10_000 }
    }
}

impl Spec {
    /// A small file for tests: 1,000 events of 415 authors.
    pub fn quick() -> Self {
        Self { authors: 415, events: 1_000, ..Self::default() }
    }
}

/// The description of a file of events, all or some of a corpus.
pub type Manifest = corpus::Manifest<Spec, EventCounts>;

/// Generated events in the order of their creation.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    events: Vec<OwnedEvent>,
}

impl Corpus {
    /// Generates the events of `spec`.
    ///
    /// # Panics
    /// If there are events, but no authors.
    pub fn generate(spec: &Spec) -> Self {
        let seed = Seed::new(spec.seed, "nostr events");
        let mut random = seed.stream(0);
        let vocabulary = Vocabulary::generate(&mut random);
        let authors: Vec<_> = (0..spec.authors).map(|_| Author::generate(&mut random)).collect();
        let pubkeys = pubkeys(&authors, &mut random);
        let mut writer = Writer::new(fill_of, seed.stream(1), &vocabulary, &authors, &pubkeys);
        let mut created_at = START_SECOND;
        let mut events = Vec::with_capacity(spec.events);
        let writers = authors_of(spec, &mut random);
        for ((kind, bytes), author) in plan(spec.events, &mut random).into_iter().zip(writers) {
            created_at += random.below(40);
            let unsigned = writer.write(kind, bytes, created_at);
            let event = authors[author].sign(unsigned);
            writer.remember(&event);
            events.push(owned(event));
        }
        Self { spec: spec.clone(), events }
    }

    /// The specification.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The events.
    pub fn events(&self) -> &[OwnedEvent] {
        &self.events
    }

    /// The events as JSON, one per line.
    pub fn to_file(&self) -> String {
        nostr_sampling::json_lines(&self.events)
    }

    /// The description of `file`, which holds the events that `counts` counts.
    pub fn manifest(&self, counts: EventCounts, file: &str) -> Manifest {
        Manifest::new(self.spec.clone(), counts, NoDetails {}, file)
    }

    /// Up to 100 events of every kind that tables distinguish.
    pub fn by_kind(&self) -> Vec<EventGroup<'_, OwnedEvent>> {
        Sampler::default().by_kinds(&self.events, GROUP_EVENTS)
    }

    /// Up to 100 events of every class of size and of tags.
    pub fn by_category(&self) -> Vec<EventGroup<'_, OwnedEvent>> {
        Sampler::default().by_categories(&self.events, GROUP_EVENTS)
    }

    /// The counts that a decoder finds.
    pub fn counts(&self) -> EventCounts {
        EventCounts::of(&self.events)
    }
}

/// The kinds and lengths of the events, shuffled.
fn plan(events: usize, random: &mut Random) -> Vec<(u16, usize)> {
    let drawn = random.apportioned(&KINDS.each_ref().map(|kind| kind.weight), events);
    let mut lens: Vec<Vec<u64>> = Vec::with_capacity(KINDS.len());
    for (index, kind) in KINDS.iter().enumerate() {
        let count = drawn.iter().filter(|other| **other == index).count() as u64;
        // The middles of the shares, so that few events have the quantiles of many.
        let middle = |at| (2 * at + 1) * QUANTILE_END / (2 * count);
        let mut of_kind: Vec<u64> = (0..count).map(|at| kind.bytes.at(middle(at))).collect();
        random.shuffle(&mut of_kind);
        lens.push(of_kind);
    }
    let mut len = |index: usize| lens[index].pop().expect("a length for each event of the kind");
    drawn.into_iter().map(|index| (KINDS[index].number, len(index) as usize)).collect()
}

/// The authors of the events: every author once, then the n-th of them about 1/n as often as the first; shuffled.
fn authors_of(spec: &Spec, random: &mut Random) -> Vec<usize> {
    let author = |at: usize| if at < spec.authors { at } else { log_rank(spec.authors, random) };
    let mut authors: Vec<usize> = (0..spec.events).map(author).collect();
    random.shuffle(&mut authors);
    authors
}

/// The function that fills in events of a kind.
fn fill_of(kind: u16) -> Fill {
    match kind {
        0 => people::profile,
        1 => posts::note,
        3 => people::follows,
        4 => people::encrypted_message,
        5 => posts::deletion,
        6 => posts::repost,
        7 => posts::reaction,
        42 => posts::channel_message,
        1059 => people::gift_wrap,
        1985 => posts::labels,
        5300 => posts::job_request,
        6300 => posts::job_result,
        9041 => people::zap_goal,
        9734 => people::zap_request,
        9735 => people::zap_receipt,
        10002 => people::relay_list,
        30023 => posts::article,
        30311 => posts::live_event,
        30618 => posts::repository_state,
        31234 => people::encrypted_draft,
        34236 => posts::video,
        _ => people::app_data,
    }
}

/// The keys that events refer to: the authors', and many without events.
fn pubkeys(authors: &[Author], random: &mut Random) -> Vec<[u8; 32]> {
    let mut pubkeys: Vec<_> = authors.iter().map(Author::pubkey).collect();
    pubkeys.extend((0..KEYS_WITHOUT_EVENTS).map(|_| random.bytes32()));
    random.shuffle(&mut pubkeys);
    pubkeys
}

fn owned(event: SignedEvent) -> OwnedEvent {
    let SignedEvent { id, pubkey, unsigned, sig } = event;
    let UnsignedEvent { created_at, kind, tags, content } = unsigned;
    OwnedEvent { id, pubkey, created_at: created_at as i64, kind, tags, content, sig }
}

/// The counts that a decoder finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts {
    /// Events.
    pub events: u64,
    /// Events that cannot be decoded.
    pub errors: u64,
    /// Tags.
    pub tags: u64,
    /// Values of tags, including their names.
    pub values: u64,
    /// Bytes of these values.
    pub value_bytes: u64,
    /// Bytes of contents.
    pub content_bytes: u64,
    /// The sum of the kinds.
    pub kinds: u64,
    /// The sum of the creation times.
    pub seconds: u64,
}

impl EventCounts {
    /// Counts `events`.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e OwnedEvent>) -> Self {
        let mut counts = Self::default();
        events.into_iter().for_each(|event| counts.add(event));
        counts
    }

    fn add(&mut self, event: &OwnedEvent) {
        self.events += 1;
        self.tags += event.tags.len() as u64;
        for value in event.tags.iter().flatten() {
            self.values += 1;
            self.value_bytes += value.len() as u64;
        }
        self.content_bytes += event.content.len() as u64;
        self.kinds += u64::from(event.kind);
        self.seconds = self.seconds.wrapping_add(event.created_at as u64);
    }
}

/// The maximum number of events in a group.
const GROUP_EVENTS: usize = 100;

/// With this number, and the keys named recently, the ids in tags repeat about as often and as soon as in the published
/// events; events compress by Zstandard accordingly.
const KEYS_WITHOUT_EVENTS: usize = 200_000;
