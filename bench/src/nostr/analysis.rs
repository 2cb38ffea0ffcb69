//! Of which kinds are these events, how long, how tagged?

use std::collections::BTreeMap;

use serde::Serialize;
use simnet::nostr_sampling::{SizeClass, TagClass};
use wireproof::kernels::hex;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{Event, Value};

/// Looks at one event after the other.
#[derive(Default)]
pub struct Analyzer {
    json: Vec<u8>,
    json_bytes: Vec<u64>,
    content_bytes: Vec<u64>,
    tags: Vec<u64>,
    kinds: BTreeMap<u16, Vec<u64>>,
    size_classes: BTreeMap<SizeClass, u64>,
    tag_classes: BTreeMap<TagClass, u64>,
    names: BTreeMap<String, u64>,
    values: u64,
    ids: u64,
}

/// What is in events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Events.
    pub events: u64,
    /// Bytes of all as JSON without spaces.
    pub json_total: u64,
    /// Bytes of one of them.
    pub json_bytes: Quantiles,
    /// Bytes of a content.
    pub content_bytes: Quantiles,
    /// Tags of an event.
    pub tags: Quantiles,
    /// The kinds, the most frequent first.
    pub kinds: Vec<KindSummary>,
    /// The classes of size, by the published thresholds on estimated JSON.
    pub size_classes: Vec<ClassCount>,
    /// The classes by tags.
    pub tag_classes: Vec<ClassCount>,
    /// The names of tags, the most frequent first.
    pub tag_names: Vec<TagNameCount>,
    /// Values of tags, their names among them.
    pub values: u64,
    /// Those of them that are 64 digits of lower-case hexadecimal.
    pub values_of_64_digits: u64,
    /// Of 100 bytes of JSON, how many are digits of ids, keys and signatures.
    pub percent_hexadecimal: f64,
}

/// How large is what is in the middle, and at the end?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// Half are less.
    pub p50: u64,
    /// 90 of 100 are less.
    pub p90: u64,
    /// 99 of 100 are less.
    pub p99: u64,
    /// The largest.
    pub max: u64,
    /// The mean, rounded down.
    pub mean: u64,
}

/// The events of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KindSummary {
    /// The kind.
    pub kind: u16,
    /// How many there are.
    pub events: u64,
    /// Bytes of one as JSON.
    pub json_bytes: Quantiles,
}

/// How many events are in a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    /// The class.
    pub name: &'static str,
    /// How many there are.
    pub events: u64,
}

/// How many tags have a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TagNameCount {
    /// The name.
    pub name: String,
    /// How many there are.
    pub tags: u64,
}

impl Analyzer {
    /// Looks at an event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.json.clear();
        Format::Json.encode(event, &mut self.json).expect("JSON holds every event");
        let len = self.json.len() as u64;
        self.json_bytes.push(len);
        self.content_bytes.push(event.content.len() as u64);
        self.tags.push(event.tags.len() as u64);
        self.kinds.entry(event.kind).or_default().push(len);
        *self.size_classes.entry(SizeClass::of(event)).or_default() += 1;
        *self.tag_classes.entry(TagClass::of(event)).or_default() += 1;
        for tag in event.tags {
            self.values += tag.len() as u64;
            self.ids += tag.iter().filter(|value| is_id(value)).count() as u64;
            if let Some(name) = tag.first() {
                self.name(name);
            }
        }
    }

    fn name(&mut self, name: &Value<'_>) {
        let name = name.to_text();
        // Somebody may send as many names as there are tags.
        let is_counted = self.names.len() < MOST_NAMES || self.names.contains_key(&*name);
        let name = if is_counted { &*name } else { OTHER_NAMES };
        match self.names.get_mut(name) {
            Some(tags) => *tags += 1,
            None => drop(self.names.insert(name.to_owned(), 1)),
        }
    }

    /// What was seen.
    pub fn finish(mut self) -> Analysis {
        let events = self.json_bytes.len() as u64;
        let json_total: u64 = self.json_bytes.iter().sum();
        let digits = 256 * events + 64 * self.ids;
        let kind = |(kind, mut lens): (u16, Vec<u64>)| KindSummary {
            kind,
            events: lens.len() as u64,
            json_bytes: Quantiles::of(&mut lens),
        };
        let mut kinds: Vec<_> = self.kinds.into_iter().map(kind).collect();
        kinds.sort_by_key(|line| std::cmp::Reverse(line.events));
        let mut tag_names: Vec<_> =
            self.names.into_iter().map(|(name, tags)| TagNameCount { name, tags }).collect();
        tag_names.sort_by_key(|name| std::cmp::Reverse(name.tags));
        let sizes = SizeClass::ALL.map(|it| class(it.name(), self.size_classes.get(&it)));
        let tags = TagClass::ALL.map(|it| class(it.name(), self.tag_classes.get(&it)));
        Analysis {
            events,
            json_total,
            json_bytes: Quantiles::of(&mut self.json_bytes),
            content_bytes: Quantiles::of(&mut self.content_bytes),
            tags: Quantiles::of(&mut self.tags),
            kinds,
            size_classes: sizes.into(),
            tag_classes: tags.into(),
            tag_names,
            values: self.values,
            values_of_64_digits: self.ids,
            percent_hexadecimal: digits as f64 * 100.0 / json_total.max(1) as f64,
        }
    }
}

fn class(name: &'static str, events: Option<&u64>) -> ClassCount {
    ClassCount { name, events: events.copied().unwrap_or(0) }
}

fn is_id(value: &Value<'_>) -> bool {
    match value {
        Value::Text(text) => text.len() == 64 && hex::is_lower(text.as_bytes()),
        Value::Hex(bytes) => bytes.len() == 32,
    }
}

impl Quantiles {
    /// Those of `values`, which are sorted for it; zeros if there are none.
    fn of(values: &mut [u64]) -> Self {
        values.sort_unstable();
        let Some(max) = values.last().copied() else { return Self::default() };
        let at = |percent: usize| values[values.len() * percent / 100];
        let mean = values.iter().sum::<u64>() / values.len() as u64;
        Self { p50: at(50), p90: at(90), p99: at(99), max, mean }
    }
}

/// Names that are counted one by one, at most.
const MOST_NAMES: usize = 10_000;
const OTHER_NAMES: &str = "(other names)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_analysis_counts_what_is_there() {
        let (id, name) = (Value::Hex(&[7; 32]), Value::Text("p"));
        let event = |kind, content| Event {
            id: [1; 32],
            pubkey: [2; 32],
            created_at: 3,
            kind,
            tags: &[],
            content,
            sig: [4; 64],
        };
        let mut analyst = Analyzer::default();
        analyst.add(&event(1, "good morning"));
        analyst.add(&event(1, ""));
        analyst.add(&Event { tags: &[&[name, id], &[name, id]], ..event(3, "") });
        let found = analyst.finish();
        assert_eq!((found.events, found.content_bytes.max, found.tags.max), (3, 12, 2));
        assert_eq!(
            found.kinds.iter().map(|it| (it.kind, it.events)).collect::<Vec<_>>(),
            [(1, 2), (3, 1)]
        );
        assert_eq!((found.values, found.values_of_64_digits), (4, 2));
        assert_eq!(found.tag_names, [TagNameCount { name: "p".to_owned(), tags: 2 }]);
        assert_eq!(found.size_classes[0], ClassCount { name: "tiny", events: 2 });
        assert_eq!(found.tag_classes[1], ClassCount { name: "few", events: 1 });
        assert_eq!(Analyzer::default().finish().json_bytes, Quantiles::default());
    }
}
