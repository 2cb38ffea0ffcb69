//! Messages of queues: the lines of an event, with the ids by which a consumer recognises a repetition.

use bytes::Bytes;

use crate::event::Event;
use crate::line_form::LineForm;
use crate::sink::SendFailure;

/// A message of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueMessage {
    /// The id of the event or of the operation.
    pub(crate) id: String,
    /// The line, without a line feed.
    pub(crate) line: Bytes,
}

/// The messages of an event, in their order.
///
/// # Errors
/// If the event is no line, and operations are asked for.
pub(crate) fn messages(form: LineForm, event: &Event) -> Result<Vec<QueueMessage>, SendFailure> {
    let whole = || vec![QueueMessage { id: event.id().to_owned(), line: event.payload_bytes() }];
    if form == LineForm::Events {
        return Ok(whole());
    }
    let mut lines = Vec::new();
    let malformed = |error| SendFailure::malformed(event.id(), &error);
    let paths = form.append(event.payload(), &mut lines).map_err(malformed)?;
    if paths.is_empty() {
        return Ok(whole());
    }
    let lines = Bytes::from(lines);
    let mut start = 0;
    let message = |path: &String| {
        let rest = lines.get(start..).unwrap_or_default();
        let end = start + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let line = lines.slice(start..end);
        start = end + 1;
        QueueMessage { id: format!("{}/{path}", event.id()), line }
    };
    Ok(paths.iter().map(message).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventId, NewEvent};
    use crate::sink::FailureKind;

    fn stored(payload: &str) -> Event {
        let id = EventId::of_commit("did:web:a.test", "3k");
        Event::stored(1, &NewEvent::new(id, "did:web:a.test", payload.to_owned()).unwrap())
    }

    #[test]
    fn an_event_is_one_message_or_one_for_each_operation_with_the_id_of_its_line() {
        let op = |rkey: &str| {
            format!(r#"{{"action":"delete","collection":"a.b.c","rkey":"{rkey}","record":null}}"#)
        };
        let event = stored(&format!(
            r#"{{"v":1,"id":"did:web:a.test/3k","host":"h","kind":"commit","did":"did:web:a.test","rev":"3k","verdict":"verified","code":"verified","ops":[{},{}]}}"#,
            op("1"),
            op("2")
        ));
        let whole = messages(LineForm::Events, &event).unwrap();
        assert_eq!((whole.len(), &*whole[0].id), (1, "did:web:a.test/3k"));
        assert_eq!(whole[0].line, event.payload());
        let operations = messages(LineForm::Operations, &event).unwrap();
        assert_eq!(operations.len(), 2);
        for message in operations {
            let line: serde_json::Value = serde_json::from_slice(&message.line).unwrap();
            assert_eq!(line["id"], *message.id);
        }
        let other = stored(
            r#"{"v":1,"host":"h","kind":"identity","did":"did:web:a.test","verdict":"unchecked","code":"unchecked"}"#,
        );
        assert_eq!(messages(LineForm::Operations, &other), messages(LineForm::Events, &other));
    }

    #[test]
    fn an_event_that_is_no_line_is_refused_where_it_would_be_split_and_sent_as_it_is_elsewhere() {
        let event = stored("no line");
        let refused = messages(LineForm::Operations, &event).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Refused);
        assert_eq!(
            refused.reason,
            "did:web:a.test/3k: not JSON: expected ident, at byte 2 (line/malformed)"
        );
        assert_eq!(messages(LineForm::Events, &event).unwrap()[0].line, "no line");
    }
}
