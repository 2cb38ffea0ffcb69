//! Nostr events in a text: their places and their verdicts.

use nostr::{Arena, DecodeError, Event, EventFault, Limits, json, verify_many};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Refusal, Result, offset_in};

/// An event in the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Offset in the input.
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
    /// The id, if the event can be read.
    pub id: Option<String>,
    /// The kind.
    pub kind: Option<u16>,
    /// The broken rule.
    pub refusal: Option<Refusal>,
}

/// Verifies every event of `input`: one a line, or the elements of an array.
///
/// # Errors
/// If an array is not valid JSON.
pub fn view(input: &[u8]) -> Result<Vec<Row>> {
    let texts = split(input)?;
    let (arena, limits) = (Arena::new(), Limits::default());
    let decoded: Vec<Result<Event<'_>, DecodeError>> =
        texts.iter().map(|text| json::decode(text, &arena, &limits)).collect();
    let events: Vec<Event<'_>> = decoded.iter().flatten().copied().collect();
    let mut verdicts = verify_many(&events).into_iter();
    let rows = texts.iter().zip(&decoded).map(|(text, event)| {
        let offset = offset_in(input, text);
        let place = Row { offset, length: text.len(), ..Row::default() };
        match event {
            Err(error) => {
                let refusal = Refusal::new("event/unreadable", error.reason);
                Row { refusal: Some(refusal.at(offset + error.offset)), ..place }
            }
            Ok(event) => {
                let id = Some(kernels::hex::encode(&event.id));
                let fault = verdicts.next().and_then(Result::err);
                let refusal = fault.map(|fault| invalid(text, event, fault).shifted(offset));
                Row { id, kind: Some(event.kind), refusal, ..place }
            }
        }
    });
    Ok(rows.collect())
}

fn invalid(text: &[u8], event: &Event<'_>, fault: EventFault) -> Refusal {
    let hex = |bytes: &[u8]| kernels::hex::encode(bytes).into_bytes();
    match fault {
        EventFault::Signature(_) => {
            Refusal::new("signature/wrong", fault).or_find(text, &hex(&event.sig), "the signature")
        }
        EventFault::Id => Refusal::new("event/id", fault).or_find(text, &hex(&event.id), "the id"),
        _ => Refusal::new("event/id-form", fault).or_find(text, &hex(&event.id), "the id"),
    }
}

/// The texts of the events.
fn split(input: &[u8]) -> Result<Vec<&[u8]>> {
    if input.trim_ascii_start().first() != Some(&b'[') {
        let lines = input.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        return Ok(lines.filter(|line| !line.is_empty()).collect());
    }
    let elements: serde_json::Result<Vec<&RawValue>> = serde_json::from_slice(input);
    match elements {
        Ok(elements) => Ok(elements.iter().map(|element| element.get().as_bytes()).collect()),
        Err(error) => {
            let refusal = Refusal::new("event/unreadable", &error);
            Err(refusal.at(offset_of(input, &error)).into())
        }
    }
}

/// The place of an error of JSON.
pub(crate) fn offset_of(input: &[u8], error: &serde_json::Error) -> usize {
    offset_at(input, error.line(), error.column())
}

/// The place of a line and a column, both from 1.
pub(crate) fn offset_at(input: &[u8], line: usize, column: usize) -> usize {
    let lines = input.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (before + column.saturating_sub(1)).min(input.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_verified_on_a_line_of_its_own_and_in_an_array() {
        let event = nostr::example::JSON;
        for text in [format!("\n{event}\r\n\n"), format!(" [ {event} ]")] {
            let rows = view(text.as_bytes()).unwrap();
            assert_eq!(rows.len(), 1);
            assert_eq!(&text[rows[0].offset..][..rows[0].length], event);
            assert_eq!((rows[0].kind, &rows[0].refusal), (Some(1), &None));
        }
    }

    #[test]
    fn each_refusal_marks_its_bytes() {
        let event = nostr::example::JSON;
        let text = format!(
            "{event}\n{}\n{}\n{{\"id\":1}}\n",
            event.replace("good", "evil"),
            event.replace("5687c", "5687d")
        );
        let rows = view(text.as_bytes()).unwrap();
        let codes =
            rows.iter().map(|row| row.refusal.as_ref().map(|refusal| refusal.code.as_str()));
        let expected = [None, Some("event/id"), Some("signature/wrong"), Some("event/unreadable")];
        assert_eq!(codes.collect::<Vec<_>>(), expected);
        let marked = |row: usize| {
            let refusal = rows[row].refusal.as_ref().unwrap();
            &text[refusal.offset.unwrap()..][..refusal.length]
        };
        assert!(marked(1).starts_with("e20978") && marked(2).starts_with("5687d"));
        assert_eq!(marked(3), "1");
    }

    #[test]
    fn an_array_that_is_not_json_is_refused_where_it_breaks() {
        let refusal = view(b"[\n{},\n?]").unwrap_err();
        assert_eq!((refusal.code.as_str(), refusal.offset), ("event/unreadable", Some(6)));
    }
}
