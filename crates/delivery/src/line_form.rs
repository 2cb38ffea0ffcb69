//! The form in which events are sent: a line an event, or a flat line per operation.

use events::{Body, Line, LineError};

use crate::event::Event;
use crate::sink::SendFailure;

/// The unit of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineForm {
    /// An event, with all its operations.
    #[default]
    Events,
    /// An operation of a commit or a repository, with the keys of its event. Events without operations stay as they are.
    Operations,
}

impl LineForm {
    /// Appends the lines of a payload, a line of `wireproof follow`, all with a line feed. Returns the paths of its
    /// operations if all of them have lines: the id of that line is the event's, a slash and the path.
    ///
    /// # Errors
    /// If the payload is no such line, and operations are asked for: nothing is appended.
    pub fn append(self, payload: &[u8], lines: &mut Vec<u8>) -> Result<Vec<String>, LineError> {
        let payload = payload.strip_suffix(b"\n").unwrap_or(payload);
        let paths = match self {
            Self::Events => Vec::new(),
            Self::Operations => append_operations(&Line::parse(payload)?, lines),
        };
        if paths.is_empty() {
            lines.extend_from_slice(payload);
            lines.push(b'\n');
        }
        Ok(paths)
    }
}

/// The lines of a batch, up to the first event that is malformed, and why that is refused.
pub(crate) fn lines_of(form: LineForm, events: &[Event]) -> (Vec<u8>, Option<SendFailure>) {
    let mut lines = Vec::with_capacity(events.iter().map(|event| event.payload().len() + 1).sum());
    for (index, event) in events.iter().enumerate() {
        if let Err(error) = form.append(event.payload(), &mut lines) {
            let accepted = events[..index].iter().map(Event::position).collect();
            let failure = SendFailure::malformed(event.id(), &error);
            return (lines, Some(SendFailure { accepted, ..failure }));
        }
    }
    (lines, None)
}

/// Appends the lines of the operations of a line, and returns their paths.
fn append_operations(line: &Line<'_>, lines: &mut Vec<u8>) -> Vec<String> {
    let append = |line: Line<'_>| {
        line.append(lines);
        match &line.body {
            Body::Operation(operation) => operation.op.path(),
            _ => String::new(),
        }
    };
    line.operations().map(append).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(payload: &str) -> (Vec<String>, String) {
        let mut lines = Vec::new();
        let paths = LineForm::Operations.append(payload.as_bytes(), &mut lines).unwrap();
        (paths, String::from_utf8(lines).unwrap())
    }

    const COMMIT: &str = concat!(
        r#"{"v":1,"id":"did:web:a.test/3k","live":true,"host":"http://h","seq":7,"kind":"commit","did":"did:web:a.test","#,
        r#""time":"t","rev":"3k","commit":"bafy","verdict":"verified","code":"verified","ops":["#,
        r#"{"action":"create","collection":"a.b.c","rkey":"1","cid":"bafx","record":{"t":"\u202e","n":1.0}},"#,
        r#"{"action":"delete","collection":"a.b.c","rkey":"2"}]}"#
    );

    #[test]
    fn each_operation_has_a_line_with_the_keys_of_its_event_and_its_values_as_they_are() {
        let (paths, lines) = flat(COMMIT);
        assert_eq!(paths, ["a.b.c/1", "a.b.c/2"]);
        let header = |path: &str| {
            format!(
                r#"{{"v":1,"id":"did:web:a.test/3k/{path}","live":true,"host":"http://h","seq":7,"kind":"operation","did":"did:web:a.test","time":"t","rev":"3k","commit":"bafy","verdict":"verified","code":"verified","#
            )
        };
        let first = r#""index":0,"last":false,"action":"create","collection":"a.b.c","rkey":"1","cid":"bafx","record":{"t":"\u202e","n":1.0}}"#;
        let second = r#""index":1,"last":true,"action":"delete","collection":"a.b.c","rkey":"2"}"#;
        let expected = format!("{}{first}\n{}{second}\n", header("a.b.c/1"), header("a.b.c/2"));
        assert_eq!(lines, expected);
    }

    #[test]
    fn only_the_last_operation_of_the_last_piece_of_a_repository_is_the_last() {
        for (last, expected) in [("false", [false, false]), ("true", [false, true])] {
            let of_repository = format!(
                r#""kind":"resync","records":2,"invalid_records":0,"bytes":9,"piece":3,"whole":true,"last":{last}"#
            );
            let piece = COMMIT.replace(r#""kind":"commit""#, &of_repository);
            let (_, lines) = flat(&piece);
            let found: Vec<bool> =
                lines.lines().map(|line| line.contains(r#""last":true"#)).collect();
            assert_eq!(found, expected);
            assert!(
                lines.lines().all(|line| line.contains(r#""piece":3,"whole":true"#)),
                "{lines}"
            );
        }
    }

    #[test]
    fn each_operation_says_what_was_not_proved() {
        let less = r#""code":"verified/unproved","verified_against":"signature""#;
        let (_, lines) = flat(&COMMIT.replace(r#""code":"verified""#, less));
        assert!(lines.lines().all(|line| line.contains(less)), "{lines}");
    }

    #[test]
    fn what_has_no_operations_stays_as_it_is() {
        let (start, _) = COMMIT.split_once(r#","ops""#).unwrap();
        let unasked = start.replace(r#""verified""#, r#""refused""#);
        for payload in [format!("{unasked}}}"), format!(r#"{start},"ops":[]}}"#)] {
            assert_eq!(flat(&payload), (Vec::new(), format!("{payload}\n")));
        }
        let mut lines = b"before".to_vec();
        let error = LineForm::Operations.append(b"no line", &mut lines).unwrap_err();
        assert_eq!((error.offset, &*lines), (2, &b"before"[..]));
        let mut lines = Vec::new();
        assert!(LineForm::Events.append(COMMIT.as_bytes(), &mut lines).unwrap().is_empty());
        assert_eq!(lines, format!("{COMMIT}\n").as_bytes());
    }
}
