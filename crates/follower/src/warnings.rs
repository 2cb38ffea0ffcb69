//! Warnings of a run, at most one line per minute and kind, with the number of suppressed ones.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The warnings so far. Their kinds are codes of the program, so their number is bounded.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<BTreeMap<&'static str, Kind>>);

#[derive(Debug)]
struct Kind {
    /// When the last line was printed.
    printed: Instant,
    /// The first warning since then; the others are only counted.
    unprinted: Option<String>,
    count: u64,
}

impl Warnings {
    /// Records a warning, and returns its line if it is the first of its kind in a minute.
    pub(super) fn record(
        &self,
        kind: &'static str,
        text: impl FnOnce() -> String,
        now: Instant,
    ) -> Option<String> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = kinds.get_mut(kind) else {
            kinds.insert(kind, Kind { printed: now, unprinted: None, count: 0 });
            return Some(shorten(text()));
        };
        known.unprinted.get_or_insert_with(|| shorten(text()));
        known.count += 1;
        known.line_if_due(now, INTERVAL)
    }

    /// The lines of the kinds whose minute is over.
    pub(super) fn due(&self, now: Instant) -> Vec<String> {
        self.lines(now, INTERVAL)
    }

    /// The lines of all warnings that are not printed yet.
    pub(super) fn rest(&self) -> Vec<String> {
        self.lines(Instant::now(), Duration::ZERO)
    }

    fn lines(&self, now: Instant, interval: Duration) -> Vec<String> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.values_mut().filter_map(|kind| kind.line_if_due(now, interval)).collect()
    }
}

impl Kind {
    fn line_if_due(&mut self, now: Instant, interval: Duration) -> Option<String> {
        if now.saturating_duration_since(self.printed) < interval {
            return None;
        }
        let text = self.unprinted.take()?;
        let more = std::mem::take(&mut self.count) - 1;
        self.printed = now;
        Some(match more {
            0 => text,
            more => format!("{text} … and {more} more of this kind in the last minute"),
        })
    }
}

/// A warning quotes untrusted text, which can be long.
pub(super) fn shorten(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

const INTERVAL: Duration = Duration::from_secs(60);
const MAX_CHARS: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_printed_at_once_and_then_once_a_minute_with_the_number_of_the_others() {
        let (warnings, start) = (Warnings::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let record =
            |kind, second| warnings.record(kind, || format!("{kind} at {second}"), at(second));
        assert_eq!(record("a", 0).unwrap(), "a at 0");
        assert_eq!(record("b", 1).unwrap(), "b at 1", "another kind");
        assert_eq!((record("a", 1), record("a", 30), record("a", 59)), (None, None, None));
        assert_eq!(warnings.due(at(59)), Vec::<String>::new());
        let line = "a at 1 … and 2 more of this kind in the last minute";
        assert_eq!(warnings.due(at(60)), [line]);
        assert_eq!(warnings.due(at(200)), Vec::<String>::new());
        assert_eq!(record("a", 200).unwrap(), "a at 200");
        assert_eq!(record("a", 201), None);
        assert_eq!(warnings.rest(), ["a at 201"]);
    }

    #[test]
    fn a_warning_has_a_maximum_length() {
        let long = Warnings::default().record("a", || "é".repeat(1_000_000), Instant::now());
        assert_eq!(long.unwrap().chars().count(), MAX_CHARS + 1);
    }
}
