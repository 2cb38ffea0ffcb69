//! Samples of Nostr events: classes of size and of tags, seeded draws, and files of JSON lines.
//!
//! Everything works on owned and on borrowed events ([`EventShape`]).

use nostr::{Event, OwnedEvent};

use crate::random::Seed;

/// The properties of an event that classes depend on.
pub trait EventShape {
    /// The kind.
    fn kind(&self) -> u16;

    /// The number of tags.
    fn tags(&self) -> usize;

    /// The estimated length of its JSON in bytes: 375, 1.1 times the content, and 2 per tag and the
    /// length of every value plus 3.
    fn estimated_bytes(&self) -> usize;

    /// Appends the event as JSON.
    fn write_json(&self, out: &mut Vec<u8>);
}

impl EventShape for Event<'_> {
    fn kind(&self) -> u16 {
        self.kind
    }

    fn tags(&self) -> usize {
        self.tags.len()
    }

    fn estimated_bytes(&self) -> usize {
        let tag = |tag: &nostr::Tag<'_>| estimated_tag(tag.iter().map(|value| value.text_len()));
        estimated(self.content.len(), self.tags.iter().map(tag).sum())
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        nostr::json::encode(self, out);
    }
}

impl EventShape for OwnedEvent {
    fn kind(&self) -> u16 {
        self.kind
    }

    fn tags(&self) -> usize {
        self.tags.len()
    }

    fn estimated_bytes(&self) -> usize {
        let tag = |tag: &Vec<String>| estimated_tag(tag.iter().map(String::len));
        estimated(self.content.len(), self.tags.iter().map(tag).sum())
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        self.borrow_in(&bumpalo::Bump::new()).write_json(out);
    }
}

fn estimated(content: usize, tags: usize) -> usize {
    375 + content * 11 / 10 + tags
}

fn estimated_tag(values: impl Iterator<Item = usize>) -> usize {
    2 + values.map(|len| len + 3).sum::<usize>()
}

/// A class of events by the estimated length of their JSON, with the thresholds of published comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SizeClass {
    /// Up to 500 bytes.
    Tiny,
    /// Up to 2,000 bytes.
    Small,
    /// Up to 10,000 bytes.
    Medium,
    /// Up to 100,000 bytes.
    Large,
    /// More than 100,000 bytes.
    Huge,
}

impl SizeClass {
    /// All classes, the smallest first.
    pub const ALL: [Self; 5] = [Self::Tiny, Self::Small, Self::Medium, Self::Large, Self::Huge];

    /// The class of an event.
    pub fn of(event: &impl EventShape) -> Self {
        match event.estimated_bytes() {
            0..=500 => Self::Tiny,
            501..=2_000 => Self::Small,
            2_001..=10_000 => Self::Medium,
            10_001..=100_000 => Self::Large,
            100_001.. => Self::Huge,
        }
    }

    /// The name in files and tables.
    pub fn name(self) -> &'static str {
        ["tiny", "small", "medium", "large", "huge"][self as usize]
    }
}

/// A class of events by their number of tags, with the thresholds of published comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TagClass {
    /// No tags.
    None,
    /// Up to 5 tags.
    Few,
    /// Up to 20 tags.
    Moderate,
    /// Up to 100 tags.
    Many,
    /// More than 100 tags.
    Massive,
}

impl TagClass {
    /// All classes, the one without tags first.
    pub const ALL: [Self; 5] = [Self::None, Self::Few, Self::Moderate, Self::Many, Self::Massive];

    /// The class of an event.
    pub fn of(event: &impl EventShape) -> Self {
        match event.tags() {
            0 => Self::None,
            1..=5 => Self::Few,
            6..=20 => Self::Moderate,
            21..=100 => Self::Many,
            101.. => Self::Massive,
        }
    }

    /// The name in files and tables.
    pub fn name(self) -> &'static str {
        ["none", "few", "moderate", "many", "massive"][self as usize]
    }
}

/// Draws events. A draw depends on the seed, the events and the request, not on earlier draws.
#[derive(Clone, Debug)]
pub struct Sampler {
    seed: u64,
    excluded: Vec<u16>,
}

impl Default for Sampler {
    /// A sampler of all kinds with [`Sampler::SEED`].
    fn default() -> Self {
        Self::new(Self::SEED)
    }
}

/// Events that share a property, and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventGroup<'e, E> {
    /// The name: `kind-1`, `tiny`.
    pub name: String,
    /// The events, in input order.
    pub events: Vec<&'e E>,
}

impl Sampler {
    /// The seed of published comparisons.
    pub const SEED: u64 = 0x4249_4e4f_5354_5201;

    /// A sampler with another seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, excluded: Vec::new() }
    }

    /// Excludes events of these kinds.
    #[must_use]
    pub fn excluding(mut self, kinds: &[u16]) -> Self {
        self.excluded.extend_from_slice(kinds);
        self
    }

    /// Up to `max` events of any kind.
    pub fn random<'e, E: EventShape>(&self, events: &'e [E], max: usize) -> Vec<&'e E> {
        self.draw("random", events, max, |_| true)
    }

    /// Up to `max` events of a kind.
    pub fn by_kind<'e, E: EventShape>(&self, events: &'e [E], kind: u16, max: usize) -> Vec<&'e E> {
        self.draw(&format!("kind-{kind}"), events, max, |event| event.kind() == kind)
    }

    /// Up to `each` events of every one of [`KINDS`] that occurs.
    pub fn by_kinds<'e, E: EventShape>(
        &self,
        events: &'e [E],
        each: usize,
    ) -> Vec<EventGroup<'e, E>> {
        let of_kind = |kind| self.by_kind(events, kind, each);
        non_empty(KINDS.iter().map(|kind| (format!("kind-{kind}"), of_kind(*kind))))
    }

    /// Up to `each` events of every class of size and of tags that occurs.
    pub fn by_categories<'e, E: EventShape>(
        &self,
        events: &'e [E],
        each: usize,
    ) -> Vec<EventGroup<'e, E>> {
        let sizes = SizeClass::ALL.into_iter().map(|class| {
            let drawn = self.draw(class.name(), events, each, |it| SizeClass::of(it) == class);
            (class.name().to_owned(), drawn)
        });
        let tags = TagClass::ALL.into_iter().map(|class| {
            let drawn = self.draw(class.name(), events, each, |it| TagClass::of(it) == class);
            (class.name().to_owned(), drawn)
        });
        non_empty(sizes.chain(tags))
    }

    /// Up to `max` of the events that `matches`, in input order.
    fn draw<'e, E: EventShape>(
        &self,
        label: &str,
        events: &'e [E],
        max: usize,
        matches: impl Fn(&E) -> bool,
    ) -> Vec<&'e E> {
        let is_candidate = |event: &&E| !self.excluded.contains(&event.kind()) && matches(event);
        let mut drawn: Vec<(usize, &E)> = events.iter().filter(is_candidate).enumerate().collect();
        if drawn.len() > max {
            Seed::new(self.seed, label).stream(0).shuffle(&mut drawn);
            drawn.truncate(max);
            drawn.sort_unstable_by_key(|(at, _)| *at);
        }
        drawn.into_iter().map(|(_, event)| event).collect()
    }
}

fn non_empty<'e, E>(groups: impl Iterator<Item = (String, Vec<&'e E>)>) -> Vec<EventGroup<'e, E>> {
    let group = |(name, events)| EventGroup { name, events };
    groups.map(group).filter(|group| !group.events.is_empty()).collect()
}

/// The kinds that tables distinguish: profiles, notes, follow lists, messages, reactions, relay lists,
/// articles.
pub const KINDS: [u16; 7] = [0, 1, 3, 4, 7, 10002, 30023];

/// The events as JSON, one per line.
pub fn json_lines<'e, E: EventShape + 'e>(events: impl IntoIterator<Item = &'e E>) -> String {
    let mut out = Vec::new();
    write_lines(events, &mut out);
    text(out)
}

/// The events as JSON lines, every group after a line of `#` and its name.
pub fn grouped_lines<E: EventShape>(groups: &[EventGroup<'_, E>]) -> String {
    let mut out = Vec::new();
    for group in groups {
        out.extend_from_slice(format!("#{}\n", group.name).as_bytes());
        write_lines(group.events.iter().copied(), &mut out);
    }
    text(out)
}

fn write_lines<'e, E: EventShape + 'e>(events: impl IntoIterator<Item = &'e E>, out: &mut Vec<u8>) {
    for event in events {
        event.write_json(out);
        out.push(b'\n');
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

#[cfg(test)]
mod tests {
    use bumpalo::Bump;

    use super::*;

    fn event(kind: u16, content: usize, tags: usize) -> OwnedEvent {
        OwnedEvent {
            id: [1; 32],
            pubkey: [2; 32],
            created_at: 3,
            kind,
            tags: vec![vec!["t".to_owned(), "abc".to_owned()]; tags],
            content: "x".repeat(content),
            sig: [4; 64],
        }
    }

    #[test]
    fn classes_change_at_the_published_thresholds() {
        let size = |content| SizeClass::of(&event(1, content, 0));
        let at = |bytes: usize| (bytes - 375) * 10 / 11;
        for (bytes, [below, above]) in [
            (500, [SizeClass::Tiny, SizeClass::Small]),
            (2_000, [SizeClass::Small, SizeClass::Medium]),
            (10_000, [SizeClass::Medium, SizeClass::Large]),
            (100_000, [SizeClass::Large, SizeClass::Huge]),
        ] {
            assert_eq!([size(at(bytes)), size(at(bytes) + 2)], [below, above], "{bytes}");
        }
        let tags =
            [0, 1, 5, 6, 20, 21, 100, 101].map(|tags| TagClass::of(&event(1, 0, tags)).name());
        let names = ["none", "few", "few", "moderate", "moderate", "many", "many", "massive"];
        assert_eq!(tags, names);
    }

    #[test]
    fn an_event_is_estimated_the_same_whether_owned_or_borrowed() {
        let (owned, arena) = (event(1, 77, 3), Bump::new());
        assert_eq!(owned.estimated_bytes(), 375 + 84 + 3 * (2 + 4 + 6));
        assert_eq!(owned.borrow_in(&arena).estimated_bytes(), owned.estimated_bytes());
    }

    #[test]
    fn a_draw_depends_on_the_seed_and_not_on_earlier_draws() {
        let events: Vec<_> = (0..100).map(|content| event(1, content, 0)).collect();
        let sampler = Sampler::default();
        let first = sampler.random(&events, 10);
        assert_eq!(first.len(), 10);
        sampler.by_kind(&events, 1, 3);
        assert_eq!(sampler.random(&events, 10), first);
        assert_ne!(Sampler::new(7).random(&events, 10), first);
        assert!(first.is_sorted_by_key(|event| event.content.len()));
        assert_eq!(sampler.random(&events, 1000).len(), 100);
    }

    #[test]
    fn excluded_kinds_are_never_drawn() {
        let events: Vec<_> = (0..50).map(|at| event([1, 443][at % 2], 0, 0)).collect();
        let sampler = Sampler::default().excluding(&[443]);
        assert!(sampler.random(&events, 50).iter().all(|event| event.kind == 1));
        assert!(sampler.by_kind(&events, 443, 5).is_empty());
    }

    #[test]
    fn grouped_lines_name_each_group_and_leave_out_empty_ones() {
        let events = [event(1, 5, 0), event(3, 5, 2), event(99, 5, 0)];
        let groups = Sampler::default().by_kinds(&events, 100);
        let names: Vec<_> = groups.iter().map(|group| &group.name[..]).collect();
        assert_eq!(names, ["kind-1", "kind-3"]);
        let file = grouped_lines(&groups);
        let lines: Vec<_> = file.lines().collect();
        assert_eq!((lines[0], lines[2], lines.len()), ("#kind-1", "#kind-3", 4));
        assert_eq!(lines[1], json_lines([&events[0]]).trim_end());
        let groups = Sampler::default().by_categories(&events, 100);
        let names: Vec<_> = groups.iter().map(|group| &group.name[..]).collect();
        assert_eq!(names, ["tiny", "none", "few"]);
    }
}
