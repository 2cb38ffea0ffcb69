//! Statistics of events: kinds, sizes, tags.

use std::collections::BTreeMap;

use kernels::hex;
use nostr::{Event, Value};
use nostr_formats::Format;
use serde::Serialize;
use simnet::nostr_sampling::{SizeClass, TagClass};

/// Collects statistics, one event after the other.
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

/// Statistics of events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Number of events.
    pub events: u64,
    /// Bytes of all events as JSON without spaces.
    pub json_total: u64,
    /// Bytes of an event as JSON.
    pub json_bytes: Quantiles,
    /// Bytes of an event's content.
    pub content_bytes: Quantiles,
    /// Tags per event.
    pub tags: Quantiles,
    /// The kinds, most frequent first.
    pub kinds: Vec<KindSummary>,
    /// The size classes, by the published thresholds on estimated JSON.
    pub size_classes: Vec<ClassCount>,
    /// The tag classes.
    pub tag_classes: Vec<ClassCount>,
    /// The names of tags, most frequent first.
    pub tag_names: Vec<TagNameCount>,
    /// Values of tags, including the names.
    pub values: u64,
    /// Values that are 64 digits of lower-case hexadecimal.
    pub values_of_64_digits: u64,
    /// Percentage of the JSON bytes that are digits of ids, keys and signatures.
    pub percent_hexadecimal: f64,
}

/// Percentiles, maximum and mean of a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The maximum.
    pub max: u64,
    /// The mean, rounded down.
    pub mean: u64,
}

/// The events of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KindSummary {
    /// The kind.
    pub kind: u16,
    /// Number of events.
    pub events: u64,
    /// Bytes of an event as JSON.
    pub json_bytes: Quantiles,
}

/// The number of events in a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    /// The name of the class.
    pub name: &'static str,
    /// Number of events.
    pub events: u64,
}

/// The number of tags with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TagNameCount {
    /// The name.
    pub name: String,
    /// Number of tags.
    pub tags: u64,
}

impl Analyzer {
    /// Adds an event.
    pub fn add(&mut self, event: &Event<'_>) {
        self.json.clear();
        Format::Json.encode(event, &mut self.json).expect("JSON can represent every event");
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
        // The input may have as many names as tags.
        let is_counted = self.names.len() < MAX_NAMES || self.names.contains_key(&*name);
        let name = if is_counted { &*name } else { OTHER_NAMES };
        match self.names.get_mut(name) {
            Some(tags) => *tags += 1,
            None => drop(self.names.insert(name.to_owned(), 1)),
        }
    }

    /// The statistics.
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
    /// The percentiles of `values`, which are sorted in place; zeros if there are none.
    fn of(values: &mut [u64]) -> Self {
        values.sort_unstable();
        let Some(max) = values.last().copied() else { return Self::default() };
        let at = |percent: usize| values[values.len() * percent / 100];
        let mean = values.iter().sum::<u64>() / values.len() as u64;
        Self { p50: at(50), p90: at(90), p99: at(99), max, mean }
    }
}

/// Maximum number of names counted separately.
const MAX_NAMES: usize = 10_000;
const OTHER_NAMES: &str = "(other names)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_analysis_counts_kinds_classes_tags_and_values() {
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
        let mut analyzer = Analyzer::default();
        analyzer.add(&event(1, "good morning"));
        analyzer.add(&event(1, ""));
        analyzer.add(&Event { tags: &[&[name, id], &[name, id]], ..event(3, "") });
        let found = analyzer.finish();
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
