//! What is a case?

use serde::{Deserialize, Serialize};

use super::forge::archive::Archive;
use super::scene::NOW_MICROS;
use crate::account::Account;
use crate::tid::datetime;

/// Bytes that somebody may send, and what to make of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What to call it: its layer and a few words, such as `tree/prefix-500`.
    pub name: String,
    /// What the bytes are.
    pub kind: InputKind,
    /// Which sentence of the specification it is about.
    pub rule: Rule,
    /// What a verifier must do.
    pub expect: Expect,
    /// The stable name of the rule that is broken; none for what is to be accepted.
    pub code: Option<&'static str>,
    /// The layer that must refuse it.
    pub layer: Layer,
    /// The account.
    pub did: String,
    /// The key that signs for it, as a `did:key`.
    pub signing_key: String,
    /// What time it is, where that matters.
    pub now: Option<String>,
    /// The file.
    pub bytes: Vec<u8>,
}

/// What the bytes of a case are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// A CAR of a whole repository.
    Repo,
    /// A file of frames, of which the last is the case. Those before it are valid.
    Frames,
}

/// What a verifier must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    /// Take it as what the account says.
    Accept,
    /// Not that.
    Refuse,
}

/// A layer of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// One message of the event stream.
    Frame,
    /// The archive.
    Car,
    /// The commit object.
    Commit,
    /// Its signature.
    Signature,
    /// The Merkle search tree.
    Tree,
    /// A record and its path.
    Record,
    /// What an event claims, and what came before it.
    Event,
}

/// A sentence of the public specification, in our words, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The page, and the part of it.
    pub section: &'static str,
    /// The rule.
    pub sentence: &'static str,
}

/// Bytes that wait for their verdict.
pub(super) struct Exhibit<'a> {
    pub(super) account: &'a Account,
    pub(super) kind: InputKind,
    pub(super) name: &'a str,
    pub(super) bytes: Vec<u8>,
}

impl<'a> Exhibit<'a> {
    pub(super) fn repo(account: &'a Account, name: &'a str, archive: &Archive) -> Self {
        Self::car(account, name, archive.to_bytes())
    }

    pub(super) fn car(account: &'a Account, name: &'a str, bytes: Vec<u8>) -> Self {
        Self { account, kind: InputKind::Repo, name, bytes }
    }

    pub(super) fn frames(account: &'a Account, name: &'a str, frames: &[Vec<u8>]) -> Self {
        let bytes = atproto::corpus::write(frames.iter().map(Vec::as_slice));
        Self { account, kind: InputKind::Frames, name, bytes }
    }

    /// To be refused: the bytes break this rule, of this name.
    pub(super) fn refused(self, code: &'static str, rule: Rule) -> Case {
        let layer = Layer::of(code);
        self.case(layer, rule, Expect::Refuse, Some(code))
    }

    /// To be accepted: this rule allows it.
    pub(super) fn accepted(self, layer: Layer, rule: Rule) -> Case {
        self.case(layer, rule, Expect::Accept, None)
    }

    fn case(self, layer: Layer, rule: Rule, expect: Expect, code: Option<&'static str>) -> Case {
        Case {
            name: format!("{}/{}", layer.name(), self.name),
            kind: self.kind,
            rule,
            expect,
            code,
            layer,
            did: self.account.did().to_owned(),
            signing_key: self.account.key().did_key(),
            now: (self.kind == InputKind::Frames).then(|| datetime(NOW_MICROS)),
            bytes: self.bytes,
        }
    }
}

impl Case {
    /// Where its file belongs in a folder of cases.
    pub fn file_name(&self) -> String {
        let ending = match self.kind {
            InputKind::Repo => "car",
            InputKind::Frames => "bin",
        };
        format!("{}.{ending}", self.name)
    }
}

impl Layer {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Frame,
        Self::Car,
        Self::Commit,
        Self::Signature,
        Self::Tree,
        Self::Record,
        Self::Event,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frame => "frame",
            Self::Car => "car",
            Self::Commit => "commit",
            Self::Signature => "signature",
            Self::Tree => "tree",
            Self::Record => "record",
            Self::Event => "event",
        }
    }

    /// The layer that a code starts with.
    fn of(code: &str) -> Self {
        let (name, _) = code.split_once('/').expect("a code is a layer and a rule");
        Self::ALL.into_iter().find(|layer| layer.name() == name).expect("a layer")
    }
}
