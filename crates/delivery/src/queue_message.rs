//! Messages of queues: the lines of an event, each with the id by which a consumer recognises a repetition.

use bytes::Bytes;

use crate::event::Event;
use crate::line_form::LineForm;

/// A message of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueMessage {
    /// The id of the line: that of the event, or of the operation.
    pub(crate) id: String,
    /// The line, without a line feed.
    pub(crate) line: Bytes,
}

/// The messages of an event, in their order.
pub(crate) fn messages(form: LineForm, event: &Event) -> Vec<QueueMessage> {
    let whole = || vec![QueueMessage { id: event.id().to_owned(), line: event.payload_bytes() }];
    if form == LineForm::Events {
        return whole();
    }
    let mut lines = Vec::new();
    let paths = form.append(event.payload(), &mut lines);
    if paths.is_empty() {
        return whole();
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
    paths.iter().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventId, NewEvent};

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
        let whole = messages(LineForm::Events, &event);
        assert_eq!((whole.len(), &*whole[0].id), (1, "did:web:a.test/3k"));
        assert_eq!(whole[0].line, event.payload());
        let operations = messages(LineForm::Operations, &event);
        assert_eq!(operations.len(), 2);
        for message in operations {
            let line: serde_json::Value = serde_json::from_slice(&message.line).unwrap();
            assert_eq!(line["id"], *message.id);
        }
        let other = stored(r#"{"kind":"identity"}"#);
        assert_eq!(messages(LineForm::Operations, &other), messages(LineForm::Events, &other));
    }
}
