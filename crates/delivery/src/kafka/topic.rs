//! The settings of a topic that decide whether it takes the records of events.

use std::time::{Duration, SystemTime};

use jiff::{Timestamp, Unit};
use krafka::admin::ConfigEntry;
use net::DurationText;

use crate::config_fault::ConfigFault;

/// The settings of a topic, as its broker describes them. Settings that a broker does not tell have no effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TopicSettings {
    max_message_bytes: Option<u64>,
    min_insync_replicas: Option<u64>,
    /// How much earlier and later than the broker's clock the time of a record may be, in milliseconds.
    before_max_ms: Option<u64>,
    after_max_ms: Option<u64>,
}

impl TopicSettings {
    /// The names of the settings.
    pub(super) fn names() -> Vec<String> {
        [MAX_BYTES, MIN_INSYNC, BEFORE, AFTER, DIFFERENCE].map(str::to_owned).into()
    }

    pub(super) fn of(entries: &[ConfigEntry]) -> Self {
        let value = |name: &str| {
            let entry = entries.iter().find(|entry| entry.name == name)?;
            entry.value.as_deref()?.parse().ok()
        };
        Self {
            max_message_bytes: value(MAX_BYTES),
            min_insync_replicas: value(MIN_INSYNC),
            // Before version 3.6 both are one.
            before_max_ms: value(BEFORE).or_else(|| value(DIFFERENCE)),
            after_max_ms: value(AFTER).or_else(|| value(DIFFERENCE)),
        }
    }

    /// Why a topic takes no record of an event.
    pub(super) fn fault(&self, topic: &str) -> Option<ConfigFault> {
        let bytes = self.max_message_bytes.filter(|bytes| *bytes < MIN_RECORD_BYTES)?;
        Some(ConfigFault::RecordSize(topic.to_owned(), bytes))
    }

    /// Why a broker may not store a record of a topic with this number of replicas. Newer brokers count no more replicas than there
    /// are, so this is of use after a failure alone.
    pub(super) fn replica_fault(&self, topic: &str, replicas: usize) -> Option<ConfigFault> {
        let demanded = self.min_insync_replicas.filter(|min| *min > replicas as u64)?;
        Some(ConfigFault::Replicas(topic.to_owned(), demanded, replicas))
    }

    /// The size that a record exceeds.
    pub(super) fn size_limit(&self) -> String {
        self.max_message_bytes.map_or_else(String::new, |bytes| {
            format!(": the topic has {MAX_BYTES}={bytes}; raise it for larger events")
        })
    }

    /// The broker refuses the time of a record that was made now.
    pub(super) fn clock_fault(&self, topic: &str, now: SystemTime) -> ConfigFault {
        let limit = |of: Option<u64>| of.filter(|ms| *ms < MAX_TIME_MS).map(Duration::from_millis);
        let (before, after) = (limit(self.before_max_ms), limit(self.after_max_ms));
        let ahead =
            after.map(|by| format!("more than {} ahead of the broker's clock", DurationText(by)));
        let behind = before.map(|by| format!("more than {} behind it", DurationText(by)));
        let setting = |name: &str, of: Option<u64>| of.map(|ms| format!("{name}={ms}"));
        let settings = [
            setting(AFTER, self.after_max_ms.filter(|_| after.is_some())),
            setting(BEFORE, self.before_max_ms.filter(|_| before.is_some())),
        ];
        let join = |parts: [Option<String>; 2], separator: &str, none: &str| match parts {
            [None, None] => none.to_owned(),
            parts => parts.into_iter().flatten().collect::<Vec<_>>().join(separator),
        };
        ConfigFault::Clock {
            topic: topic.to_owned(),
            now: date_text(now),
            offset: join([ahead, behind], " or ", "too far from the broker's clock"),
            settings: join(settings, " and ", &format!("{AFTER} and {BEFORE}")),
        }
    }
}

/// A time to the second, as in RFC 3339.
fn date_text(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).and_then(|time| time.round(Unit::Second));
    time.map_or_else(|_| "a time that no clock has".to_owned(), |time| time.to_string())
}

const MAX_BYTES: &str = "max.message.bytes";
const MIN_INSYNC: &str = "min.insync.replicas";
const BEFORE: &str = "message.timestamp.before.max.ms";
const AFTER: &str = "message.timestamp.after.max.ms";
const DIFFERENCE: &str = "message.timestamp.difference.max.ms";

/// Size in bytes that a batch with the record of a small event has, with its headers.
const MIN_RECORD_BYTES: u64 = 512;

/// A limit from this on counts as no limit: a hundred years.
const MAX_TIME_MS: u64 = 3_155_760_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_named_with_the_limit_that_it_has_passed() {
        let settings = |before, after| TopicSettings {
            before_max_ms: before,
            after_max_ms: after,
            ..TopicSettings::default()
        };
        let text = |of: TopicSettings| of.clock_fault("events", SystemTime::UNIX_EPOCH).text();
        let by_default = text(settings(Some(i64::MAX as u64), Some(3_600_000)));
        for part in [
            "more than 1 h ahead",
            "message.timestamp.after.max.ms=3600000",
            "(kafka/clock)",
            "1970",
        ] {
            assert!(by_default.contains(part), "{part} in {by_default}");
        }
        assert!(!by_default.contains("before.max"), "{by_default}");
        let both = text(settings(Some(60_000), Some(60_000)));
        assert!(both.contains("ahead") && both.contains("behind"), "{both}");
        assert!(text(TopicSettings::default()).contains("too far"));
    }

    #[test]
    fn a_topic_for_smaller_records_than_those_of_events_is_named() {
        let of =
            |bytes| TopicSettings { max_message_bytes: Some(bytes), ..TopicSettings::default() };
        assert_eq!(of(100).fault("events").map(|fault| fault.code()), Some("kafka/record-size"));
        assert_eq!(of(900).fault("events"), None);
        assert!(of(900).size_limit().contains("max.message.bytes=900"));
    }

    #[test]
    fn a_topic_that_demands_more_replicas_than_it_has_is_named() {
        let settings = TopicSettings { min_insync_replicas: Some(2), ..TopicSettings::default() };
        assert_eq!(settings.replica_fault("events", 2), None);
        let text = settings.replica_fault("events", 1).unwrap().text();
        assert!(text.contains("min.insync.replicas=2 and 1 replicas"), "{text}");
        assert!(text.ends_with("(kafka/replicas)"), "{text}");
    }
}
