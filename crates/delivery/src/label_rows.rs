//! The content of the table of labels: how lines of `wireproof labels follow` change it, in any database.
//!
//! `label_state` has the last label of every source, subject and value, with negations and expired labels: without them an older
//! label that comes later would be in force again. The view `label` has those in force now.

use std::collections::HashMap;

use atproto::syntax::Datetime;
use events::{LabelLine, LineError, Text};

use crate::event::Event;
use crate::tables::{ParsedBatch, parse_batch};

/// A row of `label_state`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabelRow<'e> {
    pub(crate) line: LabelLine<'e>,
    /// The time of creation in microseconds since 1970.
    pub(crate) created: i64,
    /// The time from which it no longer applies in microseconds since 1970.
    pub(crate) expires: Option<i64>,
    pub(crate) seq: i64,
}

impl LabelRow<'_> {
    /// The text of a field.
    pub(crate) fn text<'r>(field: &'r Option<Text<'_>>) -> &'r str {
        field.as_deref().unwrap_or_default()
    }

    fn order(&self) -> (i64, i64) {
        (self.created, self.seq)
    }
}

/// Reads lines; lines of anything but verified labels change nothing.
pub(crate) fn parse_labels(events: &[Event]) -> ParsedBatch<Option<LabelRow<'_>>> {
    parse_batch(events, |event| row_of(event.payload()))
}

fn row_of(payload: &[u8]) -> Result<Option<LabelRow<'_>>, LineError> {
    let line = LabelLine::parse(payload)?;
    if !line.is_verified_label() {
        return Ok(None);
    }
    let missing = |key| LineError::missing(key, payload);
    let micros = |key, text: &Text<'_>| match Datetime::parse(text) {
        Ok(time) => Ok(time.unix_micros()),
        Err(_) => Err(missing(key)),
    };
    let required = [("src", &line.src), ("uri", &line.uri), ("val", &line.val)];
    if let Some((key, _)) = required.iter().find(|(_, field)| field.is_none()) {
        return Err(missing(key));
    }
    let created = micros("cts", line.cts.as_ref().ok_or_else(|| missing("cts"))?)?;
    let expires = line.exp.as_ref().map(|exp| micros("exp", exp)).transpose()?;
    let seq = i64::try_from(line.seq.unwrap_or(0)).unwrap_or(i64::MAX);
    Ok(Some(LabelRow { line, created, expires, seq }))
}

/// The last row of every source, subject and value, in the order in which these first come.
pub(crate) fn last_rows<'b, 'e>(rows: &'b [Option<LabelRow<'e>>]) -> Vec<&'b LabelRow<'e>> {
    let (mut places, mut last) = (HashMap::new(), Vec::<&LabelRow<'_>>::new());
    for row in rows.iter().flatten() {
        let LabelLine { src, uri, val, .. } = &row.line;
        match places.entry((src, uri, val)) {
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(last.len());
                last.push(row);
            }
            std::collections::hash_map::Entry::Occupied(place) => {
                let known = &mut last[*place.get()];
                if row.order() >= known.order() {
                    *known = row;
                }
            }
        }
    }
    last
}
