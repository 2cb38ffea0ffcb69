//! One question and its answer: the whole interface between the page and this module.

use std::collections::HashMap;

use atproto::syntax::{CollectionPatternBuf, RepoPath};
use codec::json;
use crypto::{CompressedKey, PublicKey};
use serde::{Deserialize, Serialize};

use crate::{Refusal, Result, frame, identity, nostr, record, repository, to_json};

/// A question about an input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Question {
    /// The form of the input.
    pub form: Form,
    /// The expected account.
    pub did: Option<String>,
    /// The signing key, as did:key or multikey.
    pub key: Option<String>,
    /// The path of the record that a slice proves.
    pub path: Option<String>,
    /// The collections of which a slice proves all records.
    #[serde(default)]
    pub collections: Vec<String>,
    /// Offset and length of every message in the input, if it has several.
    #[serde(default)]
    pub messages: Vec<(usize, usize)>,
    /// The signing keys of the accounts of messages, in place of one key.
    #[serde(default)]
    pub keys: HashMap<String, String>,
    /// The states of accounts before the first message.
    pub states: Option<String>,
    /// Microseconds since 1970.
    #[serde(default)]
    pub now_micros: u64,
}

/// The form of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// An export of a repository.
    #[default]
    Repository,
    /// A slice of a repository that proves a record.
    Record,
    /// A slice of a repository that proves all records of collections.
    Range,
    /// Messages of `subscribeRepos`.
    Frame,
    /// The states of accounts after messages.
    States,
    /// Nostr events.
    Nostr,
    /// A DID log.
    Log,
    /// A DID document.
    Document,
    /// A block of DAG-CBOR, to be shown as JSON.
    Block,
}

/// The answer: JSON, and tables if the input is a proved repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// An object with `result` or `refusal`.
    pub json: String,
    /// As [`repository::View::nodes`].
    pub nodes: Vec<u32>,
    /// As [`repository::View::records`].
    pub records: Vec<u32>,
    /// As [`repository::View::paths`].
    pub paths: Vec<u8>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Body<T> {
    Result(T),
    Refusal(Box<Refusal>),
}

/// Answers a question in JSON; `progress` gets the number of bytes that were read.
pub fn answer(question: &str, input: &[u8], progress: impl FnMut(usize)) -> Answer {
    let question: serde_json::Result<Question> = serde_json::from_str(question);
    match question {
        Ok(question) => answer_to(&question, input, progress),
        Err(error) => of::<()>(Err(argument(error).into())),
    }
}

fn answer_to(question: &Question, input: &[u8], progress: impl FnMut(usize)) -> Answer {
    let did = question.did.as_deref();
    let key = match question.key.as_deref().map(read_key).transpose() {
        Ok(key) => key,
        Err(refusal) => return of::<()>(Err(refusal)),
    };
    match question.form {
        Form::Repository => match repository::view(input, did, key.as_ref(), progress) {
            Err(refusal) => of::<()>(Err(refusal)),
            Ok(repository::View { summary, nodes, records, paths }) => {
                Answer { nodes, records, paths, ..of(Ok(summary)) }
            }
        },
        Form::Record => of(proof(question, input, key.as_ref())),
        Form::Range => of(range(question, input, key.as_ref())),
        Form::Frame => of(messages(question, input, key.as_ref())),
        Form::States => of(frame::read_states(input)),
        Form::Nostr => of(nostr::view(input)),
        Form::Log => of(identity::log(input, did)),
        Form::Document => of(identity::document(input, did)),
        Form::Block => of(block(input)),
    }
}

fn of<T: Serialize>(outcome: Result<T>) -> Answer {
    let body = outcome.map_or_else(Body::Refusal, Body::Result);
    Answer { json: to_json(&body), ..Answer::default() }
}

fn read_key(text: &str) -> Result<PublicKey> {
    let is_did = text.starts_with("did:");
    let key = if is_did { PublicKey::from_did_key(text) } else { PublicKey::from_multikey(text) };
    key.map_err(|error| argument(format!("the signing key: {error}")).into())
}

fn proof(question: &Question, input: &[u8], key: Option<&PublicKey>) -> Result<record::Proof> {
    let key = key.ok_or_else(|| argument("the proof of a record needs the key of its account"))?;
    let path = question.path.as_deref().unwrap_or_default();
    RepoPath::parse(path).map_err(|error| argument(format!("the record path: {error}")))?;
    record::view(input, path, question.did.as_deref(), key)
}

fn range(question: &Question, input: &[u8], key: Option<&PublicKey>) -> Result<record::Range> {
    let key =
        key.ok_or_else(|| argument("the proof of a collection needs the key of its account"))?;
    let pattern = |name: &String| {
        let parsed = name.parse::<CollectionPatternBuf>();
        parsed.map_err(|error| format!("the collection {name:?}: {error}"))
    };
    let patterns = question.collections.iter().map(pattern).collect::<Result<Vec<_>, _>>();
    let patterns = patterns.map_err(argument)?;
    record::range(input, &patterns, question.did.as_deref(), key)
}

fn messages(question: &Question, input: &[u8], key: Option<&PublicKey>) -> Result<frame::Messages> {
    let whole = [(0, input.len())];
    let places = if question.messages.is_empty() { &whole[..] } else { &question.messages };
    let is_inside =
        |(at, len): &(usize, usize)| at.checked_add(*len).is_some_and(|end| end <= input.len());
    if !places.iter().all(is_inside) {
        return Err(argument("a message is not in the input").into());
    }
    let read = |(did, key): (&String, &String)| -> Result<(String, CompressedKey)> {
        Ok((did.clone(), *read_key(key)?.as_compressed()))
    };
    let keys = question.keys.iter().map(read).collect::<Result<HashMap<_, _>>>()?;
    let key = key.map(|key| *key.as_compressed());
    let key_of = |did: &str| keys.get(did).copied().or(key);
    frame::view(input, places, &key_of, question.states.as_deref(), question.now_micros)
}

/// The refusal of a question.
fn argument(rule: impl ToString) -> Refusal {
    Refusal::new("argument", rule)
}

/// The JSON of a block, as text.
fn block(input: &[u8]) -> Result<String> {
    let mut text = Vec::new();
    match json::append_item(&mut text, input) {
        Ok(()) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Err(error) => Err(Refusal::new("record/cbor", error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(question: &str) -> String {
        let answer = answer(question, b"", |_| ());
        let json: serde_json::Value = serde_json::from_str(&answer.json).unwrap();
        json["refusal"]["code"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_wrong_question_is_not_a_fault_of_the_input() {
        assert_eq!(code("?"), "argument");
        assert_eq!(code(r#"{"form":"repository","key":"did:key:zzz"}"#), "argument");
        assert_eq!(code(r#"{"form":"record","path":"a.b.c/d"}"#), "argument");
        assert_eq!(code(r#"{"form":"range","collections":["a.b.c"]}"#), "argument");
        assert_eq!(code(r#"{"form":"frame","messages":[[0,1]]}"#), "argument");
        assert_eq!(code(r#"{"form":"frame","states":"{}"}"#), "argument");
        assert_eq!(code(r#"{"form":"states"}"#), "argument");
        let key = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme";
        let question = format!(r#"{{"form":"record","key":"{key}","path":"odd"}}"#);
        assert_eq!(code(&question), "argument");
        assert_eq!(code(&question.replace("odd", "app.test.note/a")), "car/truncated");
    }
}
