//! Dead letters: events that a receiver refuses, set aside in a file of JSON lines.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::crash_point;

use crate::database::now_micros;
use crate::event::{Event, EventId, NewEvent};

/// A file of refused events, one JSON object a line: `time` in microseconds since 1970, `consumer`, `id`, `account`,
/// `position`, `attempts`, `reason`, and the payload as `event`, or as `text` where it is not JSON. Clones share it.
#[derive(Clone, Debug)]
pub struct DeadLetters(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    consumer: Box<str>,
    max_bytes: u64,
    file: Mutex<File>,
}

/// Why a refused event cannot be set aside: it is sent again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeadLetterError {
    /// The file cannot be written.
    #[error("dead letters {0}: {1}")]
    Io(PathBuf, String),
    /// The file has reached its limit.
    #[error(
        "dead letters {0}: the file has {1} bytes, which is its limit: move it away and restart"
    )]
    Full(PathBuf, u64),
}

/// Reads the events of a file of dead letters, with their ids, in their order. Lines without an end are left out.
///
/// # Errors
/// If the file cannot be read, or a line is no dead letter: its number.
pub fn read_dead_letters(path: &Path) -> Result<Vec<NewEvent>, DeadLetterError> {
    let at = |what: String| DeadLetterError::Io(path.to_owned(), what);
    let text = std::fs::read(path).map_err(|error| at(error.to_string()))?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = (1..).zip(text[..whole].split(|byte| *byte == b'\n'));
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let read = |(number, line): (usize, &[u8])| {
        event_of(line).map_err(|why| at(format!("line {number}: {why}")))
    };
    lines.map(read).collect()
}

fn event_of(line: &[u8]) -> Result<NewEvent, String> {
    let letter: StoredLetter<'_> =
        serde_json::from_slice(line).map_err(|error| format!("not a dead letter: {error}"))?;
    let payload = match (letter.event, letter.text) {
        (Some(event), None) => event.get().to_owned(),
        (None, Some(text)) => text,
        _ => return Err("not a dead letter: one of event and text is required".to_owned()),
    };
    let id = EventId::stored(&letter.id);
    NewEvent::new(id, &letter.account, payload).map_err(|error| error.to_string())
}

/// What is read of a letter.
#[derive(Deserialize)]
struct StoredLetter<'a> {
    id: String,
    account: String,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    text: Option<String>,
}

#[derive(Serialize)]
struct Letter<'a> {
    time: u64,
    consumer: &'a str,
    id: &'a str,
    account: &'a str,
    position: u64,
    attempts: u32,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl DeadLetters {
    /// Opens the file, or creates it. It takes no letter that makes it longer than `max_bytes`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn open(path: &Path, consumer: &str, max_bytes: u64) -> Result<Self, DeadLetterError> {
        let at = |error: std::io::Error| DeadLetterError::Io(path.to_owned(), error.to_string());
        let mut options = OpenOptions::new();
        let mut file = options.create(true).read(true).append(true).open(path).map_err(at)?;
        end_last_line(&mut file).map_err(at)?;
        let (path, consumer, file) = (path.to_owned(), consumer.into(), Mutex::new(file));
        Ok(Self(Arc::new(Inner { path, consumer, max_bytes, file })))
    }

    /// Adds an event, and returns when it is on disk.
    pub(crate) async fn write(
        &self,
        event: &Event,
        attempts: u32,
        reason: &str,
    ) -> Result<(), DeadLetterError> {
        let line = self.line(event, attempts, reason);
        let inner = self.0.clone();
        let written = tokio::task::spawn_blocking(move || inner.write(&line)).await;
        written.unwrap_or_else(|error| Err(self.0.error(error)))
    }

    fn line(&self, event: &Event, attempts: u32, reason: &str) -> Vec<u8> {
        let json = serde_json::from_slice::<&RawValue>(event.payload()).ok();
        let text = || String::from_utf8_lossy(event.payload()).into_owned();
        let letter = Letter {
            time: now_micros(),
            consumer: &self.0.consumer,
            id: event.id(),
            account: event.account(),
            position: event.position(),
            attempts,
            reason,
            event: json,
            text: json.is_none().then(text),
        };
        let mut line = serde_json::to_vec(&letter).expect("texts and numbers have a JSON form");
        line.push(b'\n');
        line
    }
}

impl Inner {
    fn write(&self, line: &[u8]) -> Result<(), DeadLetterError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let len = file.metadata().map_err(|error| self.error(error))?.len();
        if len + line.len() as u64 > self.max_bytes {
            return Err(DeadLetterError::Full(self.path.clone(), len));
        }
        let written = file.write_all(line).and_then(|()| file.sync_data());
        crash_point("dead-letters/written");
        written.map_err(|error| {
            // Best effort: a part of a line is ended when the file is opened again.
            let _ = file.set_len(len);
            self.error(error)
        })
    }

    fn error(&self, error: impl ToString) -> DeadLetterError {
        DeadLetterError::Io(self.path.clone(), error.to_string())
    }
}

/// Ends a line that a crash cut off, so that the next one is not appended to it.
fn end_last_line(file: &mut File) -> std::io::Result<()> {
    if file.metadata()?.len() == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(payload: &'static str) -> Event {
        let id = EventId::of_commit("did:web:a.test", "3k");
        Event::stored(7, &NewEvent::new(id, "did:web:a.test", payload).unwrap())
    }

    #[tokio::test]
    async fn a_letter_has_the_event_and_the_reason_and_a_cut_line_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("refused.ndjson");
        std::fs::write(&path, "{\"cut").unwrap();
        let letters = DeadLetters::open(&path, "hook", 10_000).unwrap();
        letters.write(&event("{\"n\":1}"), 5, "status 422").await.unwrap();
        letters.write(&event("no JSON"), 5, "status 422").await.unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, "{\"cut"));
        let letter: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
        assert_eq!(
            (&letter["event"]["n"], &letter["id"]),
            (&1.into(), &"did:web:a.test/3k".into())
        );
        assert_eq!((&letter["position"], &letter["reason"]), (&7.into(), &"status 422".into()));
        let letter: serde_json::Value = serde_json::from_str(lines[2]).unwrap();
        assert_eq!(letter["text"], "no JSON");
    }

    #[tokio::test]
    async fn letters_are_read_as_the_events_that_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("refused.ndjson");
        let letters = DeadLetters::open(&path, "hook", 10_000).unwrap();
        let payloads = ["{\"b\":1.0,\"a\":\"\\u202e\"}", "no JSON"];
        for payload in payloads {
            letters.write(&event(payload), 5, "status 422").await.unwrap();
        }
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"cut").unwrap();
        let read = read_dead_letters(&path).unwrap();
        let expected = payloads.map(|payload| {
            let id = EventId::of_commit("did:web:a.test", "3k");
            NewEvent::new(id, "did:web:a.test", payload).unwrap()
        });
        assert_eq!(read, expected);
        for (text, what) in [("{}\n", "line 1"), ("\n[]\n", "line 2")] {
            std::fs::write(&path, text).unwrap();
            let error = read_dead_letters(&path).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[tokio::test]
    async fn a_full_file_takes_no_letter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("refused.ndjson");
        let letters = DeadLetters::open(&path, "hook", 250).unwrap();
        letters.write(&event("{}"), 5, "status 422").await.unwrap();
        let error = letters.write(&event("{}"), 5, "status 422").await.unwrap_err();
        assert!(matches!(error, DeadLetterError::Full(_, 1..)), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
    }
}
