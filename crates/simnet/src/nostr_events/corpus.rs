//! The events, and who wrote them.

use nostr::OwnedEvent;

use super::calibration::{ALL, KINDS};
use super::lexicon::{Lexicon, rank};
use super::manifest::EventCounts;
use super::writing::{Scene, write};
use crate::nostr_sampling::{self, EventGroup, Sampler};
use crate::random::{Random, Seed};
use crate::schnorr_events::{self, Author};

/// What events to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Everything follows from this number.
    pub seed: u64,
    /// How many people write.
    pub authors: usize,
    /// How many events they write together.
    pub events: usize,
}

impl Default for Spec {
    /// 10,000 events of 2,500 authors.
    fn default() -> Self {
        Self { seed: 4_621_332_152, authors: 2_500, events: 10_000 }
    }
}

impl Spec {
    /// Events for tests: 1,000 of 250 authors.
    pub fn quick() -> Self {
        Self { authors: 250, events: 1_000, ..Self::default() }
    }
}

/// Generated events, in the order in which they were written.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    events: Vec<OwnedEvent>,
}

impl Corpus {
    /// Makes the events of `spec`.
    ///
    /// # Panics
    /// If there are to be events, but no authors.
    pub fn generate(spec: &Spec) -> Self {
        let seed = Seed::new(spec.seed, "nostr events");
        let mut random = seed.stream(0);
        let lexicon = Lexicon::generate(&mut random);
        let authors: Vec<_> = (0..spec.authors).map(|_| Author::generate(&mut random)).collect();
        let people = people(&authors, &mut random);
        let mut scene = Scene::new(seed.stream(1), &lexicon, &authors, &people);
        let mut created_at = FIRST_SECOND;
        let mut events = Vec::with_capacity(spec.events);
        for (kind, bytes) in plan(spec.events, &mut random) {
            created_at += random.below(40);
            let draft = write(kind, bytes, created_at, &mut scene);
            let author = &authors[rank(authors.len(), &mut random)];
            let event = author.sign(draft);
            scene.remember(&event);
            events.push(owned(event));
        }
        Self { spec: spec.clone(), events }
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The events.
    pub fn events(&self) -> &[OwnedEvent] {
        &self.events
    }

    /// The events as JSON, each followed by a line feed.
    pub fn to_file(&self) -> String {
        nostr_sampling::json_lines(&self.events)
    }

    /// Up to 100 events of each kind that tables tell apart, as a [file of groups](nostr_sampling::grouped_lines).
    pub fn to_file_by_kind(&self) -> String {
        nostr_sampling::grouped_lines(&self.by_kind())
    }

    /// Up to 100 events of each class of size and of tags, as a [file of groups](nostr_sampling::grouped_lines).
    pub fn to_file_by_category(&self) -> String {
        nostr_sampling::grouped_lines(&self.by_category())
    }

    /// Up to 100 events of each kind that tables tell apart.
    pub fn by_kind(&self) -> Vec<EventGroup<'_, OwnedEvent>> {
        Sampler::default().by_kinds(&self.events, GROUP_EVENTS)
    }

    /// Up to 100 events of each class of size and of tags.
    pub fn by_category(&self) -> Vec<EventGroup<'_, OwnedEvent>> {
        Sampler::default().by_categories(&self.events, GROUP_EVENTS)
    }

    /// What a decoder must find.
    pub fn counts(&self) -> EventCounts {
        EventCounts::of(&self.events)
    }
}

/// Kind and length of each event, in any order.
fn plan(events: usize, random: &mut Random) -> Vec<(u16, usize)> {
    let deck = random.deck(&KINDS.each_ref().map(|kind| kind.weight), events);
    let mut lens: Vec<Vec<u64>> = Vec::with_capacity(KINDS.len());
    for (index, kind) in KINDS.iter().enumerate() {
        let count = deck.iter().filter(|drawn| **drawn == index).count() as u64;
        // Each in the middle of its share, so that few events have the quantiles of many.
        let middle = |at| (2 * at + 1) * ALL / (2 * count);
        let mut of_kind: Vec<u64> = (0..count).map(|at| kind.bytes.at(middle(at))).collect();
        random.shuffle(&mut of_kind);
        lens.push(of_kind);
    }
    let len = |index: usize| lens[index].pop().expect("one for each that was counted");
    let mut len = len;
    deck.into_iter().map(|index| (KINDS[index].number, len(index) as usize)).collect()
}

/// Whom one may follow: the authors, and many who write nothing here.
fn people(authors: &[Author], random: &mut Random) -> Vec<[u8; 32]> {
    let mut people: Vec<_> = authors.iter().map(Author::pubkey).collect();
    people.extend((0..SILENT_PEOPLE).map(|_| random.bytes32()));
    random.shuffle(&mut people);
    people
}

fn owned(event: schnorr_events::Event) -> OwnedEvent {
    let schnorr_events::Event { id, pubkey, draft, sig } = event;
    let schnorr_events::Draft { created_at, kind, tags, content } = draft;
    OwnedEvent { id, pubkey, created_at: created_at as i64, kind, tags, content, sig }
}

/// Events of a group of a file of groups, at most.
const GROUP_EVENTS: usize = 100;

/// Real follow lists of 40,000 entries name 15,000 people.
const SILENT_PEOPLE: usize = 30_000;

/// Before the first event: 2026-07-01T00:00:00Z.
const FIRST_SECOND: u64 = 1_782_864_000;
