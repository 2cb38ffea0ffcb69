//! Dead letters: events that a receiver refuses, set aside in files of JSON lines.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::database::now_micros;
use crate::event::{Event, EventId, NewEvent};
use crate::letter_files::{self, LetterFault, LetterFiles};

/// A file of refused events, one JSON object a line: `time` in microseconds since 1970, `consumer`, `id`, `account`,
/// `position`, `attempts`, `reason`, and the payload as `event`, or as `text` where it is not JSON. At 16 MiB the file becomes a part
/// next to it, `….ndjson.1.gz` and so on, which is compressed. Clones share it.
#[derive(Clone, Debug)]
pub struct DeadLetters(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    consumer: Box<str>,
    files: Mutex<LetterFiles>,
}

/// Why a refused event cannot be set aside: it is sent again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeadLetterError {
    /// The file cannot be written.
    #[error("dead letters {0}: {1}")]
    Io(PathBuf, String),
    /// The file and its parts have reached their limit.
    #[error(
        "dead letters {0}: with its parts the file has {1} bytes, which is the limit (dead-letters-full): send them again \
         with `wireproof delivery replay`, or move them away, and delivery continues"
    )]
    Full(PathBuf, u64),
}

impl DeadLetterError {
    /// The stable name of a condition that an operator ends; `None` for other faults.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Full(..) => Some("dead-letters-full"),
            Self::Io(..) => None,
        }
    }
}

/// Size of the file of dead letters at `path` and of its parts, in bytes; 0 if there is none.
pub fn dead_letter_bytes(path: &Path) -> u64 {
    letter_files::bytes(path).unwrap_or_default()
}

/// Reads the events of a file of dead letters or of a compressed part, with their ids, in their order. Lines without an end are
/// left out.
///
/// # Errors
/// If the file cannot be read, or a line is no dead letter: its number.
pub fn read_dead_letters(path: &Path) -> Result<Vec<NewEvent>, DeadLetterError> {
    let at = |what: String| DeadLetterError::Io(path.to_owned(), what);
    let text = read(path).map_err(|error| at(error.to_string()))?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = (1..).zip(text[..whole].split(|byte| *byte == b'\n'));
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let event = |(number, line): (usize, &[u8])| {
        event_of(line).map_err(|why| at(format!("line {number}: {why}")))
    };
    lines.map(event).collect()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let is_compressed = path.extension().is_some_and(|name| name == "gz");
    let mut bytes: Box<dyn Read> =
        if is_compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut text = Vec::new();
    bytes.by_ref().take(MAX_READ_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_READ_BYTES {
        Err(io::Error::other(format!("more than {MAX_READ_BYTES} bytes")))
    } else {
        Ok(text)
    }
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

/// The fields of a letter that are read.
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
    /// Opens the file, or creates it. It takes no letter that makes it and its parts longer than `max_bytes` together.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn open(path: &Path, consumer: &str, max_bytes: u64) -> Result<Self, DeadLetterError> {
        let at = |error: io::Error| DeadLetterError::Io(path.to_owned(), error.to_string());
        let files = Mutex::new(LetterFiles::open(path, max_bytes).map_err(at)?);
        Ok(Self(Arc::new(Inner { path: path.to_owned(), consumer: consumer.into(), files })))
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
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.append(line).map_err(|fault| match fault {
            LetterFault::Full(bytes) => DeadLetterError::Full(self.path.clone(), bytes),
            LetterFault::Io(error) => self.error(error),
        })
    }

    fn error(&self, error: impl ToString) -> DeadLetterError {
        DeadLetterError::Io(self.path.clone(), error.to_string())
    }
}

/// Maximum size of a file of dead letters that is read, in bytes.
const MAX_READ_BYTES: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

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
        let part = dir.path().join("refused.ndjson.1.gz");
        let mut compressed = GzEncoder::new(File::create(&part).unwrap(), Compression::fast());
        compressed.write_all(&std::fs::read(&path).unwrap()).unwrap();
        compressed.finish().unwrap();
        let read = read_dead_letters(&path).unwrap();
        assert_eq!(read_dead_letters(&part).unwrap(), read);
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
        assert_eq!(error.code(), Some("dead-letters-full"));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
    }
}
