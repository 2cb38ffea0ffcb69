//! `wireproof nostr sample`: draws events at random, in one pass and in bounded memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};

use kernels::sha256;
use nostr::Event;
use nostr_formats::Format;
use simnet::nostr_sampling::{SizeClass, TagClass};

use super::failure::FileFailure;
use super::{SampleArgs, Strata};
use crate::controls::escape_controls;
use crate::failure::Failure;
use crate::log::{self, Level};
use crate::output::Output;

pub(super) fn run(args: &SampleArgs, output: Output) -> Result<(), Failure> {
    let mut sample = Sample::new(args.seed, args.count as usize);
    let filter = args.filter.to_filter();
    args.events.open()?.each_group(|group| {
        let events = group.into_events()?;
        let mut matching = events.iter().filter(|event| args.takes(event) && filter.matches(event));
        let added = matching.try_for_each(|event| sample.add(event, args.stratum(event)));
        added.map_err(FileFailure::from)
    })?;
    log::print(Level::Info, &format!("{} of {} events", sample.len, sample.events))?;
    let mut out = BufWriter::new(output.bytes());
    sample.into_lines().iter().try_for_each(|line| out.write_all(line))?;
    Ok(out.flush()?)
}

impl SampleArgs {
    /// Whether an event has one of the sizes and numbers of tags.
    fn takes(&self, event: &Event<'_>) -> bool {
        (self.size.is_empty() || self.size.contains(&SizeClass::of(event)))
            && (self.tag_count.is_empty() || self.tag_count.contains(&TagClass::of(event)))
    }

    /// The part of the sample that the event belongs to.
    fn stratum(&self, event: &Event<'_>) -> u16 {
        match self.stratify {
            None => 0,
            Some(Strata::Kind) => event.kind,
            Some(Strata::Size) => SizeClass::of(event) as u16,
            Some(Strata::Tags) => TagClass::of(event) as u16,
        }
    }
}

/// A random sample: the events of every stratum whose ids have the smallest hashes under the seed.
///
/// Beyond the maximum the largest stratum loses the event with the largest hash. So the strata have equal parts, except strata
/// with fewer events, and which events are in the sample depends on the seed and the events, not on their order.
struct Sample {
    seed: u64,
    /// Maximum number of events.
    max: usize,
    strata: BTreeMap<u16, BTreeMap<Hash, Kept>>,
    /// The strata's numbers of events and largest hashes; the last one loses the next event.
    by_len: BTreeSet<(usize, Hash, u16)>,
    /// Events in the sample, and their size in bytes.
    len: usize,
    bytes: usize,
    /// Events that were drawn from.
    events: u64,
}

type Hash = [u8; 32];

/// An event in the sample.
struct Kept {
    /// Its place among the events that were drawn from.
    position: u64,
    line: Vec<u8>,
}

impl Sample {
    fn new(seed: u64, max: usize) -> Self {
        let (strata, by_len) = (BTreeMap::new(), BTreeSet::new());
        Self { seed, max, strata, by_len, len: 0, bytes: 0, events: 0 }
    }

    /// Draws from one more event. An id that is in the sample is not added again.
    fn add(&mut self, event: &Event<'_>, stratum: u16) -> Result<(), Failure> {
        let (position, hash) = (self.events, self.hash(&event.id));
        self.events += 1;
        if self.is_beyond(stratum, hash) || self.has(stratum, hash) {
            return Ok(());
        }
        let mut line = Vec::new();
        Format::Json.encode(event, &mut line).expect("JSON holds every event");
        escape_controls(&mut line, 0);
        line.push(b'\n');
        (self.len, self.bytes) = (self.len + 1, self.bytes + line.len());
        self.change(stratum, |events| events.insert(hash, Kept { position, line }));
        if self.len > self.max {
            self.remove_last();
        }
        match self.bytes {
            0..=MAX_BYTES => Ok(()),
            _ => Err(Failure::Refused(TOO_LARGE.to_owned())),
        }
    }

    fn hash(&self, id: &[u8; 32]) -> Hash {
        let mut message = [0; 40];
        message[..8].copy_from_slice(&self.seed.to_le_bytes());
        message[8..].copy_from_slice(id);
        sha256::digest(&message)
    }

    fn has(&self, stratum: u16, hash: Hash) -> bool {
        self.strata.get(&stratum).is_some_and(|events| events.contains_key(&hash))
    }

    /// Whether an event would be the next that is lost.
    fn is_beyond(&self, stratum: u16, hash: Hash) -> bool {
        let Some((last_len, last_hash, _)) = self.by_len.last().filter(|_| self.len == self.max)
        else {
            return false;
        };
        let own = self.strata.get(&stratum);
        let own_last = own.and_then(|events| events.last_key_value());
        let own_len = own.map_or(0, BTreeMap::len);
        own_last.is_none_or(|(largest, _)| *largest < hash)
            && (own_len + 1, hash) > (*last_len, *last_hash)
    }

    fn remove_last(&mut self) {
        let Some((_, _, stratum)) = self.by_len.last().copied() else { return };
        if let Some((_, lost)) = self.change(stratum, BTreeMap::pop_last) {
            (self.len, self.bytes) = (self.len - 1, self.bytes - lost.line.len());
        }
    }

    /// Changes a stratum, and its place among the others.
    fn change<T>(
        &mut self,
        stratum: u16,
        change: impl FnOnce(&mut BTreeMap<Hash, Kept>) -> T,
    ) -> T {
        let events = self.strata.entry(stratum).or_default();
        if let Some((largest, _)) = events.last_key_value() {
            self.by_len.remove(&(events.len(), *largest, stratum));
        }
        let result = change(events);
        if let Some((largest, _)) = events.last_key_value() {
            self.by_len.insert((events.len(), *largest, stratum));
        }
        result
    }

    /// The events as JSON, in the order in which they were read.
    fn into_lines(self) -> Vec<Vec<u8>> {
        let mut kept: Vec<Kept> =
            self.strata.into_values().flat_map(BTreeMap::into_values).collect();
        kept.sort_unstable_by_key(|kept| kept.position);
        kept.into_iter().map(|kept| kept.line).collect()
    }
}

/// Maximum size of a sample in bytes.
const MAX_BYTES: usize = 1 << 30;
const TOO_LARGE: &str = "the sample has more than 1 GiB: lower --count";

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions in a sample of events with these numbers as ids; the second number is the stratum.
    fn sampled(seed: u64, max: usize, events: &[(u64, u16)]) -> Vec<u64> {
        let mut sample = Sample::new(seed, max);
        for (number, stratum) in events {
            let mut id = [0; 32];
            id[..8].copy_from_slice(&number.to_le_bytes());
            let event = Event {
                id,
                pubkey: [1; 32],
                created_at: *number as i64,
                kind: 1,
                tags: &[],
                content: "",
                sig: [2; 64],
            };
            sample.add(&event, *stratum).unwrap();
            assert!(sample.len <= max);
        }
        let number = |line: Vec<u8>| {
            let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
            line["created_at"].as_u64().unwrap()
        };
        sample.into_lines().into_iter().map(number).collect()
    }

    #[test]
    fn every_event_is_drawn_about_as_often_as_every_other() {
        let events: Vec<(u64, u16)> = (0..20).map(|number| (number, 0)).collect();
        let mut counts = [0; 20];
        for seed in 0..2_000 {
            let drawn = sampled(seed, 5, &events);
            assert_eq!(drawn.len(), 5);
            drawn.into_iter().for_each(|number| counts[number as usize] += 1);
        }
        // 500 is expected, with a standard deviation of 19.
        assert!(counts.iter().all(|count| (400..600).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_sample_depends_on_seed_and_events_and_not_on_order_or_repetition() {
        let mut events: Vec<(u64, u16)> =
            (0..500).map(|number| (number, number as u16 % 7)).collect();
        let sorted = |seed, events: &[(u64, u16)]| {
            let mut drawn = sampled(seed, 40, events);
            drawn.sort_unstable();
            drawn
        };
        let first = sorted(3, &events);
        assert_ne!(sorted(4, &events), first);
        assert_eq!(sorted(3, &[&events[..], &events[100..300]].concat()), first);
        events.reverse();
        assert_eq!(sorted(3, &events), first);
    }

    #[test]
    fn strata_have_equal_parts_and_what_one_lacks_goes_to_the_others() {
        let stratum = |number: u64| match number {
            0..3 => 0,
            3..30 => 1,
            30..40 => 2,
            _ => 3,
        };
        for is_reversed in [false, true] {
            let mut events: Vec<(u64, u16)> =
                (0..1_000).map(|number| (number, stratum(number))).collect();
            if is_reversed {
                events.reverse();
            }
            let drawn = sampled(1, 43, &events);
            let counts = [0, 1, 2, 3]
                .map(|of| drawn.iter().filter(|number| stratum(**number) == of).count());
            assert_eq!((counts[0], counts[2], counts[1] + counts[3]), (3, 10, 30), "{counts:?}");
            assert_eq!((counts[1], counts[3]), (15, 15));
        }
    }

    #[test]
    fn more_strata_than_events_take_one_event_each() {
        let events: Vec<(u64, u16)> =
            (0..5_000).map(|number| (number, number as u16 / 2)).collect();
        let drawn = sampled(1, 100, &events);
        let strata: BTreeSet<u64> = drawn.iter().map(|number| number / 2).collect();
        assert_eq!((drawn.len(), strata.len()), (100, 100));
    }
}
