//! `wireproof nostr strfry-plugin`: a write-policy plugin of strfry, which judges events before they are written.
//!
//! | line on standard input | line on standard output |
//! |---|---|
//! | `{"type":"new","event":{…},…}`, the event is valid and matches the filter | `{"id":"…","action":"accept"}` |
//! | the same with another event | `{"id":"…","action":"reject","msg":"invalid: …"}` |
//! | a request of another type | none |
//! | anything else | `reject` with the id in it; none without an id |
//!
//! The protocol is `docs/plugins.md` of strfry. strfry sends the next request after the answer to the one before, and gives up a
//! plugin whose answer has another id, is later than its timeout, or is longer than 8 KiB.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};

use bumpalo::Bump;
use net::remote_text::{MAX_NAME_CHARS, sanitize};
use nostr::{Filter, IdSerialization, Limits};
use nostr_follower::EventRefusal;
use nostr_formats::Format;
use nostr_formats::container::MAX_EVENT_BYTES;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::StrfryPluginArgs;
use crate::failure::Failure;
use crate::log::{self, Level};
use crate::output::{Output, write_json_line};
use crate::standard_streams;

pub(super) fn run(args: &StrfryPluginArgs, output: Output) -> Result<(), Failure> {
    let policy = Policy::new(args.filter.to_filter(), args.ids);
    let input = standard_streams::stdin()?.lock();
    // If standard error is closed, the answers remain.
    let warn = |text: &str| drop(log::print(Level::Warning, text));
    serve(policy, input, output.bytes(), warn, MAX_EVENT_BYTES)
}

/// Answers requests of up to `max_bytes` until the input ends. An answer is flushed before the next request is read.
fn serve(
    mut policy: Policy,
    mut input: impl BufRead,
    mut out: impl Write,
    warn: impl Fn(&str),
    max_bytes: usize,
) -> Result<(), Failure> {
    let mut line = Vec::new();
    let mut number: u64 = 0;
    while let Some(length) = read_line(&mut input, &mut line, max_bytes)? {
        number += 1;
        let verdict = match length {
            Length::Whole if line.trim_ascii().is_empty() => continue,
            Length::Whole => policy.judge(&line),
            Length::TooLong(id) => {
                let why = format!("longer than {max_bytes} bytes");
                Verdict { answer: id.map(|id| Answer::unreadable(id, &why)), warning: Some(why) }
            }
        };
        if let Some(warning) = verdict.warning {
            let end = if verdict.answer.is_some() { "rejected" } else { "not answered" };
            warn(&format!("standard input: line {number}: {warning}: {end}"));
        }
        if let Some(answer) = verdict.answer {
            write_json_line(&mut out, &answer)?;
            out.flush()?;
        }
    }
    Ok(())
}

/// The events to accept.
struct Policy {
    filter: Filter,
    ids: IdSerialization,
    /// Memory that is reused from event to event.
    arena: Bump,
    scratch: Vec<u8>,
}

/// The consequence of a line.
#[derive(Debug, Default)]
struct Verdict {
    answer: Option<Answer>,
    /// The fault of the line, for the operator.
    warning: Option<String>,
}

/// A line of output.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Answer {
    id: String,
    action: Action,
    /// The message to the client: a word of NIP-01, the reason, and its code.
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Action {
    Accept,
    Reject,
}

/// A line of input. Further keys say when and from where strfry received the event.
#[derive(Deserialize)]
struct Request<'l> {
    #[serde(rename = "type", borrow)]
    of_type: Cow<'l, str>,
    #[serde(borrow)]
    event: Option<&'l RawValue>,
}

impl Policy {
    fn new(filter: Filter, ids: IdSerialization) -> Self {
        Self { filter, ids, arena: Bump::new(), scratch: Vec::new() }
    }

    fn judge(&mut self, line: &[u8]) -> Verdict {
        let request: Request<'_> = match serde_json::from_slice(line) {
            Ok(request) => request,
            // Its text may quote the line.
            Err(error) => {
                return malformed(line, format!("no request, at byte {}", error.column()));
            }
        };
        match (&*request.of_type, request.event) {
            ("new", Some(event)) => self.judge_event(event.get()),
            ("new", None) => malformed(line, "a request without an event".to_owned()),
            // strfry before 0.9.5 repeats stored events when it starts a plugin, and wants no answer.
            ("lookback", _) => Verdict::default(),
            (other, _) => {
                let other = sanitize(other, MAX_NAME_CHARS);
                Verdict { answer: None, warning: Some(format!("unknown type `{other}`")) }
            }
        }
    }

    /// The answer about an event. It has the id as it was received, by which strfry knows it.
    fn judge_event(&mut self, json: &str) -> Verdict {
        let refusal = self.refusal(json.as_bytes());
        let Some(id) = stated_id(json) else {
            return Verdict { answer: None, warning: Some("an event without an id".to_owned()) };
        };
        let answer = match refusal {
            None => Answer { id, action: Action::Accept, msg: None },
            Some(refusal) => Answer::rejected(id, refusal),
        };
        Verdict { answer: Some(answer), warning: None }
    }

    /// Why an event is refused, by the rules of `nostr verify`. Events that the filter excludes are not verified.
    fn refusal(&mut self, json: &[u8]) -> Option<EventRefusal> {
        self.arena.reset();
        match Format::Json.decode(json, &self.arena, &Limits::default()) {
            Err(error) => Some(EventRefusal::Unreadable(error)),
            Ok(event) if !self.filter.matches(&event) => Some(EventRefusal::Unmatched),
            Ok(event) => {
                event.verify_in(self.ids, &mut self.scratch).err().map(EventRefusal::Invalid)
            }
        }
    }
}

impl Answer {
    fn rejected(id: String, refusal: EventRefusal) -> Self {
        let word = match refusal {
            EventRefusal::Unmatched => "blocked",
            EventRefusal::Unreadable(_) | EventRefusal::Invalid(_) => "invalid",
        };
        let msg = Some(format!("{word}: {refusal} ({})", refusal.code()));
        Self { id, action: Action::Reject, msg }
    }

    /// The answer about an event that cannot be decoded, because its line is `why`.
    fn unreadable(id: String, why: &str) -> Self {
        let msg = Some(format!("invalid: {why} (event/unreadable)"));
        Self { id, action: Action::Reject, msg }
    }
}

/// A line that is not a request: the event with the id in it is rejected.
fn malformed(line: &[u8], why: String) -> Verdict {
    let answer = find_id(line).map(|id| Answer::unreadable(id, &why));
    Verdict { answer, warning: Some(why) }
}

/// The text of an event's only id, if an answer has room for it.
fn stated_id(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Stated<'e> {
        #[serde(borrow)]
        id: Cow<'e, str>,
    }
    let Stated { id } = serde_json::from_str(json).ok()?;
    (id.len() <= MAX_ID_BYTES).then(|| id.into_owned())
}

/// The first id in text that is no JSON, or a part of it: a key `id` with 64 hexadecimal digits, without spaces.
fn find_id(text: &[u8]) -> Option<String> {
    let id_at = |at: usize| {
        let digits = text.get(at + ID_KEY.len()..at + ID_FIELD_BYTES)?.strip_suffix(b"\"")?;
        // After a backslash the key is a part of another text.
        let is_key = at == 0 || text[at - 1] != b'\\';
        let is_id = is_key && digits.iter().all(u8::is_ascii_hexdigit);
        is_id.then(|| digits.iter().copied().map(char::from).collect())
    };
    let starts = text.windows(ID_KEY.len()).enumerate();
    starts.filter(|(_, window)| *window == ID_KEY).find_map(|(at, _)| id_at(at))
}

/// How much of a line was read.
enum Length {
    Whole,
    /// The rest of a line over the limit was skipped. It may have an id.
    TooLong(Option<String>),
}

/// Reads the next line; `None` at the end. `max_bytes` bounds the memory, whatever the length of the line.
fn read_line(
    input: &mut impl BufRead,
    line: &mut Vec<u8>,
    max_bytes: usize,
) -> io::Result<Option<Length>> {
    line.clear();
    let mut read = read_part(input, line, max_bytes + 1)?;
    if line.len() <= max_bytes || line.ends_with(b"\n") {
        return Ok((read > 0).then_some(Length::Whole));
    }
    let mut id = find_id(line);
    while read > 0 && !line.ends_with(b"\n") {
        // An id, and the byte before it, may be in two parts.
        line.drain(..line.len().saturating_sub(ID_FIELD_BYTES));
        read = read_part(input, line, SKIPPED_BYTES)?;
        id = id.or_else(|| find_id(line));
    }
    Ok(Some(Length::TooLong(id)))
}

/// Appends up to `max` bytes of a line; the number of them, 0 at the end of the input.
fn read_part(input: &mut impl BufRead, line: &mut Vec<u8>, max: usize) -> io::Result<usize> {
    io::Read::take(input, max as u64).read_until(b'\n', line)
}

/// The start of the field with the id, as strfry writes it, and the length of the whole field.
const ID_KEY: &[u8] = b"\"id\":\"";
const ID_FIELD_BYTES: usize = ID_KEY.len() + 64 + 1;

/// Maximum length of an id that is repeated in an answer, in bytes.
const MAX_ID_BYTES: usize = 256;

/// Bytes of a line over the limit that are skipped at once.
const SKIPPED_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use nostr::example;
    use serde_json::{Value, json};

    use super::*;

    /// The answers to lines, and the warnings.
    fn served(lines: &[u8], filter: Filter, max_bytes: usize) -> (Vec<Value>, Vec<String>) {
        let (mut out, warnings) = (Vec::new(), RefCell::new(Vec::new()));
        let policy = Policy::new(filter, IdSerialization::Either);
        let warn = |text: &str| warnings.borrow_mut().push(text.to_owned());
        serve(policy, lines, &mut out, warn, max_bytes).unwrap();
        assert!(out.is_empty() || out.ends_with(b"\n"));
        let answers = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let answers = answers.map(|line| serde_json::from_slice(line).unwrap()).collect();
        (answers, warnings.into_inner())
    }

    fn answers(lines: &str) -> (Vec<Value>, Vec<String>) {
        served(lines.as_bytes(), Filter::default(), MAX_EVENT_BYTES)
    }

    fn request(event: &str) -> String {
        format!(
            r#"{{"event":{event},"receivedAt":1,"sourceInfo":"::1","sourceType":"IP6","type":"new"}}"#
        )
    }

    fn id() -> Value {
        serde_json::from_str::<Value>(example::JSON).unwrap()["id"].take()
    }

    fn rejected(id: impl Into<Value>, msg: &str) -> Value {
        json!({ "id": id.into(), "action": "reject", "msg": msg })
    }

    #[test]
    fn each_request_has_one_answer_with_its_id_and_the_last_line_needs_no_end() {
        let accepted = json!({ "id": id(), "action": "accept" });
        let lines = [request(example::JSON), String::new(), request(example::JSON)].join("\n");
        assert_eq!(answers(&lines), (vec![accepted.clone(), accepted], Vec::new()));
        assert_eq!(answers(""), (Vec::new(), Vec::new()));
    }

    #[test]
    fn refusals_have_a_word_of_nip_01_and_a_code() {
        let forged = example::JSON.replace("good morning", "good evening");
        let signature = example::JSON.replace("\"sig\":\"5", "\"sig\":\"6");
        let unreadable = example::JSON.replace("\"kind\":1", "\"kind\":1.0");
        for (event, msg) in [
            (forged, "invalid: the id is not the hash of the event (event/id)"),
            (signature, "invalid: "),
            (unreadable, "invalid: at byte "),
        ] {
            let (answers, warnings) = answers(&request(&event));
            assert_eq!((&answers[0]["id"], &answers[0]["action"]), (&id(), &"reject".into()));
            assert!(answers[0]["msg"].as_str().unwrap().starts_with(msg), "{answers:?}");
            assert!(warnings.is_empty(), "{warnings:?}");
        }
        let filter = Filter { kinds: vec![7], ..Filter::default() };
        let (answers, _) = served(request(example::JSON).as_bytes(), filter, MAX_EVENT_BYTES);
        let blocked = "blocked: the event does not match the filter (event/unmatched)";
        assert_eq!(answers, [rejected(id(), blocked)]);
    }

    #[test]
    fn other_types_and_events_without_an_id_have_no_answer() {
        for (line, warning) in [
            (r#"{"type":"lookback","event":{}}"#, None),
            (r#"{"type":"\u001b[2J","event":{}}"#, Some(r"unknown type `\u{1b}[2J`")),
            (&request("{}"), Some("an event without an id")),
            (&request(r#"{"id":7}"#), Some("an event without an id")),
            (&request("[]"), Some("an event without an id")),
            (&request(&json!({ "id": "x".repeat(257) }).to_string()), Some("without an id")),
            ("null", Some("no request, at byte 4")),
            (&"[".repeat(100_000), Some("no request, at byte 1")),
            (r#"{"type":"new"}"#, Some("a request without an event")),
        ] {
            let (answers, warnings) = answers(line);
            assert!(answers.is_empty(), "{answers:?}");
            assert_eq!(warnings.len(), usize::from(warning.is_some()), "{line:.50} {warnings:?}");
            for printed in warnings {
                assert!(printed.contains(warning.unwrap()), "{printed}");
                assert!(printed.ends_with(": not answered"), "{printed}");
            }
        }
        let (answers, _) = answers(&request(r#"{"id":"\u007f","kind":1}"#));
        assert_eq!(answers[0]["id"], "\u{7f}", "strfry compares the text");
    }

    #[test]
    fn a_line_that_is_no_request_is_rejected_by_the_id_in_it() {
        let whole = request(example::JSON);
        let digits = id();
        for end in 0..whole.len() {
            let (answers, warnings) = answers(&whole[..end]);
            assert_eq!(warnings.len(), usize::from(end > 0), "{end}");
            let has_id = whole[..end].contains(&format!("{digits}"));
            assert_eq!(answers.len(), usize::from(has_id), "{end}");
            let answered = answers.iter().all(|it| it["id"] == digits && it["action"] == "reject");
            assert!(answered, "{answers:?}");
        }
        let hex = "0a".repeat(32);
        let quoted = format!(r#"{{"content":"\"id":"{hex}""#);
        assert_eq!(answers(&quoted).0, [Value::Null; 0]);
        let text = [b"\xff{\"id\":\"", hex.as_bytes(), b"\"\n"].concat();
        let (answers, _) = served(&text, Filter::default(), MAX_EVENT_BYTES);
        assert_eq!(answers, [rejected(hex, "invalid: no request, at byte 1 (event/unreadable)")]);
    }

    #[test]
    fn a_line_over_the_limit_is_skipped_and_its_id_found_at_any_place() {
        let hex = "0b".repeat(32);
        let next = request(example::JSON);
        let field = format!(r#"{{"id":"{hex}","x":""#);
        let max = next.len();
        for before in (0..200).chain(max - 90..max + 90).chain([70_000, 200_000]) {
            let long = format!("{}{field}{}", " ".repeat(before), "y".repeat(2 * max));
            let (answers, warnings) =
                served(format!("{long}\n{next}\n").as_bytes(), Filter::default(), max);
            let why = format!("longer than {max} bytes");
            let expected = rejected(hex.as_str(), &format!("invalid: {why} (event/unreadable)"));
            assert_eq!(answers, [expected, json!({ "id": id(), "action": "accept" })], "{before}");
            assert_eq!(warnings, [format!("standard input: line 1: {why}: rejected")]);
        }
        let (answers, warnings) = served("z".repeat(3 * max).as_bytes(), Filter::default(), max);
        assert!(answers.is_empty() && warnings[0].ends_with("bytes: not answered"), "{warnings:?}");
    }
}
