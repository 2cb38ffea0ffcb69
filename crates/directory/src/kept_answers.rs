//! Answers on accounts, kept as they are sent until the mirror has a new operation of the account.
//!
//! An answer is kept only if no operation was seen while it was made, so that none is older than the last look for new
//! operations. The bytes are bounded; the answers that were not asked for longest are dropped first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use hyper::header::HeaderValue;
use kernels::sha256;

use crate::answer::Answer;
use crate::route::View;

/// An answer as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct SentAnswer {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
    /// The tag of the body.
    pub(crate) tag: HeaderValue,
}

impl SentAnswer {
    /// An answer with a tag of these bytes, which decide about its body.
    pub(crate) fn with_identity(answer: Answer, identity: &[u8]) -> Self {
        let Answer { status, content_type, body } = answer;
        Self { status, content_type, body: body.into(), tag: entity_tag(identity) }
    }
}

impl From<Answer> for SentAnswer {
    fn from(answer: Answer) -> Self {
        let tag = entity_tag(answer.body.as_bytes());
        let Answer { status, content_type, body } = answer;
        Self { status, content_type, body: body.into(), tag }
    }
}

/// A tag: half of the SHA-256.
fn entity_tag(identity: &[u8]) -> HeaderValue {
    let hash = sha256::digest(identity);
    let text = format!("\"{}\"", BASE64URL_NOPAD.encode(&hash[..16]));
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("\"\""))
}

/// The kept answers of a server.
#[derive(Debug)]
pub(crate) struct KeptAnswers {
    kept: Mutex<Kept>,
    /// Maximum number of bytes.
    max_bytes: usize,
}

/// The number of changes before an answer is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changes(u64);

#[derive(Debug, Default)]
struct Kept {
    changes: u64,
    /// Answers that were asked for lately.
    young: Generation,
    /// Answers from before.
    old: Generation,
}

#[derive(Debug, Default)]
struct Generation {
    accounts: HashMap<Box<str>, Views>,
    bytes: usize,
}

/// The answers on an account, by view.
type Views = [Option<SentAnswer>; View::COUNT];

impl KeptAnswers {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { kept: Mutex::default(), max_bytes }
    }

    /// The kept answer, or the number of changes with which a new one is [kept](Self::keep).
    pub(crate) fn get(&self, did: &str, view: View) -> Result<SentAnswer, Changes> {
        let mut kept = self.lock();
        if let Some(answer) = kept.young.get(did, view) {
            return Ok(answer.clone());
        }
        match kept.old.take(did, view) {
            Some(answer) => {
                self.insert(&mut kept, did, view, answer.clone());
                Ok(answer)
            }
            None => Err(Changes(kept.changes)),
        }
    }

    /// Keeps a successful answer that was made since this number of changes.
    pub(crate) fn keep(&self, since: Changes, did: &str, view: View, answer: &SentAnswer) {
        if answer.status != 200 || answer.body.len() > MAX_BODY_BYTES {
            return;
        }
        let mut kept = self.lock();
        if Changes(kept.changes) == since {
            self.insert(&mut kept, did, view, answer.clone());
        }
    }

    /// Forgets the answers on accounts with new operations, which can be read.
    pub(crate) fn forget<'d>(&self, dids: impl Iterator<Item = &'d str>) {
        let mut kept = self.lock();
        kept.changes += 1;
        for did in dids {
            kept.young.remove(did);
            kept.old.remove(did);
        }
    }

    /// Forgets all answers.
    pub(crate) fn clear(&self) {
        let mut kept = self.lock();
        *kept = Kept { changes: kept.changes + 1, ..Kept::default() };
    }

    fn insert(&self, kept: &mut Kept, did: &str, view: View, answer: SentAnswer) {
        if kept.young.bytes + answer.body.len() + OVERHEAD > self.max_bytes / 2 {
            kept.old = std::mem::take(&mut kept.young);
        }
        kept.young.insert(did, view, answer);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generation {
    fn get(&self, did: &str, view: View) -> Option<&SentAnswer> {
        self.accounts.get(did)?[view as usize].as_ref()
    }

    fn take(&mut self, did: &str, view: View) -> Option<SentAnswer> {
        let answer = self.accounts.get_mut(did)?[view as usize].take()?;
        self.bytes -= answer.body.len() + OVERHEAD;
        Some(answer)
    }

    fn insert(&mut self, did: &str, view: View, answer: SentAnswer) {
        self.take(did, view);
        self.bytes += answer.body.len() + OVERHEAD;
        match self.accounts.get_mut(did) {
            Some(views) => views[view as usize] = Some(answer),
            None => {
                let mut views = Views::default();
                views[view as usize] = Some(answer);
                self.accounts.insert(did.into(), views);
            }
        }
    }

    fn remove(&mut self, did: &str) {
        for answer in self.accounts.remove(did).into_iter().flatten().flatten() {
            self.bytes -= answer.body.len() + OVERHEAD;
        }
    }
}

/// Maximum bytes of the place, tag and name of an answer.
const OVERHEAD: usize = 1024;

/// Size of the largest body that is kept.
const MAX_BODY_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> SentAnswer {
        Answer::json(200, body.to_owned()).into()
    }

    fn kept(answers: &KeptAnswers, did: &str, view: View) -> Option<Bytes> {
        answers.get(did, view).ok().map(|answer| answer.body)
    }

    fn since(answers: &KeptAnswers) -> Changes {
        answers.get("nobody", View::Data).unwrap_err()
    }

    #[test]
    fn an_answer_is_kept_until_its_account_has_an_operation() {
        let answers = KeptAnswers::new(1 << 20);
        for did in ["a", "b"] {
            answers.keep(since(&answers), did, View::Log, &answer(did));
            answers.keep(since(&answers), did, View::Last, &answer("last"));
        }
        assert_eq!(kept(&answers, "a", View::Log).as_deref(), Some(&b"a"[..]));
        assert_eq!(kept(&answers, "a", View::Audit), None);
        answers.forget(["a", "c"].into_iter());
        assert_eq!(kept(&answers, "a", View::Log), None);
        assert_eq!(kept(&answers, "a", View::Last), None);
        assert_eq!(kept(&answers, "b", View::Log).as_deref(), Some(&b"b"[..]));
        let before = since(&answers);
        answers.clear();
        answers.keep(before, "b", View::Log, &answer("b"));
        assert_eq!(kept(&answers, "b", View::Log), None);
    }

    #[test]
    fn an_answer_that_was_made_while_operations_came_is_not_kept_and_neither_is_a_failure() {
        let answers = KeptAnswers::new(1 << 20);
        let before = since(&answers);
        answers.forget(["b"].into_iter());
        answers.keep(before, "a", View::Log, &answer("old"));
        assert_eq!(kept(&answers, "a", View::Log), None);
        answers.keep(since(&answers), "a", View::Log, &Answer::failed().into());
        answers.keep(since(&answers), "a", View::Log, &answer(&"x".repeat(MAX_BODY_BYTES + 1)));
        assert_eq!(kept(&answers, "a", View::Log), None);
    }

    #[test]
    fn the_bytes_are_bounded_and_answers_that_are_asked_for_stay() {
        let answers = KeptAnswers::new(100_000);
        for number in 0..1_000 {
            let did = number.to_string();
            answers.keep(since(&answers), &did, View::Data, &answer(&"x".repeat(1_000)));
            assert!(kept(&answers, "0", View::Data).is_some(), "{number}");
            let state = answers.lock();
            for generation in [&state.young, &state.old] {
                let count = generation.accounts.values().flatten().flatten().count();
                assert_eq!(generation.bytes, count * (1_000 + OVERHEAD));
                assert!(generation.bytes <= 50_000);
            }
        }
        assert!(
            kept(&answers, "999", View::Data).is_some()
                && kept(&answers, "1", View::Data).is_none()
        );
    }
}
