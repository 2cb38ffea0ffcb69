//! The answers of the reference server, recorded with accounts of every kind: `fixtures/README.md` says how.

use serde::Deserialize;
use store::PlcMirrorReader;

use super::support::{TestMirror, parse_lines};
use crate::Answer;
use crate::lines::push_streamed;

#[derive(Deserialize)]
struct Recorded {
    answers: Vec<RecordedAnswer>,
    streams: Vec<RecordedStream>,
}

#[derive(Deserialize)]
struct RecordedAnswer {
    path: String,
    status: u16,
    #[serde(rename = "type")]
    kind: String,
    body: String,
}

#[derive(Deserialize)]
struct RecordedStream {
    cursor: u64,
    messages: Vec<String>,
}

fn recorded() -> Recorded {
    serde_json::from_str(include_str!("../../fixtures/reference.json")).unwrap()
}

/// A mirror of the operations that were recorded, in pages of `page`.
pub(super) fn mirror(page: usize) -> TestMirror {
    let recorded = recorded();
    let export = recorded.answers.iter().find(|answer| answer.path == "/export?after=0");
    let mirror = TestMirror::new();
    for lines in parse_lines(&export.unwrap().body).chunks(page) {
        mirror.apply(lines);
    }
    mirror
}

fn answer(mirror: &PlcMirrorReader, url: &str) -> Answer {
    let (path, query) = match url.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (url, None),
    };
    Answer::to(mirror, path, query).unwrap()
}

#[test]
fn every_answer_is_the_reference_servers_byte_for_byte() {
    for page in [1, 4, 1000] {
        let mirror = mirror(page);
        let (reader, mut compared) = (mirror.reader(), 0);
        for RecordedAnswer { path, status, kind, body } in recorded().answers {
            let found = answer(&reader, &path);
            let body = match path.as_str() {
                "/_health" => body.replace("0.0.0", env!("CARGO_PKG_VERSION")),
                _ => body,
            };
            assert_eq!((found.status, found.content_type), (status, kind.as_str()), "{path}");
            assert_eq!(found.body, body, "{path}");
            compared += 1;
        }
        assert!(compared > 110, "{compared}");
    }
}

#[test]
fn every_message_of_a_stream_is_the_reference_servers() {
    let mirror = mirror(1000);
    for RecordedStream { cursor, messages, .. } in recorded().streams {
        let operations = mirror.reader().operations_after(cursor, 1000).unwrap();
        let lines = operations.iter().map(|of| {
            let mut line = String::new();
            push_streamed(&of.as_row(), &mut line);
            line
        });
        assert_eq!(lines.collect::<Vec<_>>(), messages);
    }
}
