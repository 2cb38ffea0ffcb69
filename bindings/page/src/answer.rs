//! One question and its answer: the whole interface between the page and this module.

use atproto::syntax::RepoPath;
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
    /// A message of `subscribeRepos`.
    Frame,
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
        Form::Frame => {
            let key: Option<CompressedKey> = key.map(|key| *key.as_compressed());
            of(Ok(frame::view(input, key, question.now_micros)))
        }
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
        let key = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme";
        let question = format!(r#"{{"form":"record","key":"{key}","path":"odd"}}"#);
        assert_eq!(code(&question), "argument");
        assert_eq!(code(&question.replace("odd", "app.test.note/a")), "car/truncated");
    }
}
