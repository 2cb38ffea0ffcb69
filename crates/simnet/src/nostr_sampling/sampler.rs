//! Which of these events? Drawn, but the same every time.

use super::{EventShape, SizeClass, TagClass};
use crate::random::Seed;

/// Draws events. What it draws depends on its seed, on the events and on what is asked, not on what
/// was asked before.
#[derive(Clone, Debug)]
pub struct Sampler {
    seed: u64,
    excluded: Vec<u16>,
}

impl Default for Sampler {
    /// With [`Sampler::SEED`], of every kind.
    fn default() -> Self {
        Self::new(Self::SEED)
    }
}

/// Events that belong together, and the name of what they have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventGroup<'e, E> {
    /// The name: `kind-1`, `tiny`.
    pub name: String,
    /// The events, in the order in which they were given.
    pub events: Vec<&'e E>,
}

impl Sampler {
    /// The seed that published comparisons use.
    pub const SEED: u64 = 0x4249_4e4f_5354_5201;

    /// With another seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, excluded: Vec::new() }
    }

    /// Without events of these kinds.
    #[must_use]
    pub fn excluding(mut self, kinds: &[u16]) -> Self {
        self.excluded.extend_from_slice(kinds);
        self
    }

    /// Up to `most` events of any kind.
    pub fn random<'e, E: EventShape>(&self, events: &'e [E], most: usize) -> Vec<&'e E> {
        self.draw("random", events, most, |_| true)
    }

    /// Up to `most` events of a kind.
    pub fn by_kind<'e, E: EventShape>(
        &self,
        events: &'e [E],
        kind: u16,
        most: usize,
    ) -> Vec<&'e E> {
        self.draw(&format!("kind-{kind}"), events, most, |event| event.kind() == kind)
    }

    /// Up to `most` events of a class of size.
    pub fn by_size<'e, E: EventShape>(
        &self,
        events: &'e [E],
        class: SizeClass,
        most: usize,
    ) -> Vec<&'e E> {
        self.draw(class.name(), events, most, |event| SizeClass::of(event) == class)
    }

    /// Up to `most` events of a class of tags.
    pub fn by_tags<'e, E: EventShape>(
        &self,
        events: &'e [E],
        class: TagClass,
        most: usize,
    ) -> Vec<&'e E> {
        self.draw(class.name(), events, most, |event| TagClass::of(event) == class)
    }

    /// Up to `each` events of each of [`KINDS`] that is there.
    pub fn by_kinds<'e, E: EventShape>(
        &self,
        events: &'e [E],
        each: usize,
    ) -> Vec<EventGroup<'e, E>> {
        let of_kind = |kind| self.by_kind(events, kind, each);
        present(KINDS.iter().map(|kind| (format!("kind-{kind}"), of_kind(*kind))))
    }

    /// Up to `each` events of each class of size and of tags that is there.
    pub fn by_categories<'e, E: EventShape>(
        &self,
        events: &'e [E],
        each: usize,
    ) -> Vec<EventGroup<'e, E>> {
        let sizes = SizeClass::ALL
            .into_iter()
            .map(|class| (class.name().to_owned(), self.by_size(events, class, each)));
        let tags = TagClass::ALL
            .into_iter()
            .map(|class| (class.name().to_owned(), self.by_tags(events, class, each)));
        present(sizes.chain(tags))
    }

    /// The events of `chosen`, or as many of them as `most`, in their order.
    fn draw<'e, E: EventShape>(
        &self,
        label: &str,
        events: &'e [E],
        most: usize,
        chosen: impl Fn(&E) -> bool,
    ) -> Vec<&'e E> {
        let wanted = |event: &&E| !self.excluded.contains(&event.kind()) && chosen(event);
        let mut drawn: Vec<(usize, &E)> = events.iter().filter(wanted).enumerate().collect();
        if drawn.len() > most {
            Seed::new(self.seed, label).stream(0).shuffle(&mut drawn);
            drawn.truncate(most);
            drawn.sort_unstable_by_key(|(at, _)| *at);
        }
        drawn.into_iter().map(|(_, event)| event).collect()
    }
}

fn present<'e, E>(groups: impl Iterator<Item = (String, Vec<&'e E>)>) -> Vec<EventGroup<'e, E>> {
    let group = |(name, events)| EventGroup { name, events };
    groups.map(group).filter(|group| !group.events.is_empty()).collect()
}

/// The kinds that tables tell apart: profiles, notes, follow lists, messages, reactions, lists of
/// relays, articles.
pub const KINDS: [u16; 7] = [0, 1, 3, 4, 7, 10002, 30023];
