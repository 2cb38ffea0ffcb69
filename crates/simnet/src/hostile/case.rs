//! Cases and their manifest: bytes, the rule they break, and the result a verifier must give.

use serde::{Deserialize, Serialize};

use super::parts::archive::Archive;
use crate::account::Account;
use crate::corpus::digest_hex;
use crate::time::{START_MICROS, datetime};

/// An input and the result that a verifier must give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name: the layer and a few words, such as `tree/prefix-500`.
    pub name: String,
    /// The kind of the input.
    pub kind: InputKind,
    /// The rule of the specification that the case is about.
    pub rule: Rule,
    /// The required result.
    pub expect: Expect,
    /// The stable code of the broken rule, by the input or by its invalid record; `None` for a valid case.
    pub code: Option<&'static str>,
    /// The layer that must reject it.
    pub layer: Layer,
    /// The DID of the account.
    pub did: String,
    /// The signing key of the account, as a `did:key`.
    pub signing_key: String,
    /// The time of verification, where it matters.
    pub now: Option<String>,
    /// The collections that a part proves; of other kinds none.
    pub collections: Vec<String>,
    /// The input.
    pub bytes: Vec<u8>,
}

/// The kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    /// A CAR archive of a whole repository.
    Repo,
    /// A file of frames; the last one is the case, the frames before it are valid.
    Frames,
    /// A CAR archive of the part of a repository that proves all records of some collections.
    Part,
}

/// The result that a verifier must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    /// Accept the input.
    Accept,
    /// Accept the input without its one invalid record, which is reported. A verifier that is strict about records
    /// rejects the input.
    InvalidRecord,
    /// Reject the input.
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
    /// The claims of an event, and the events before it.
    Event,
}

/// A rule of the public specification, paraphrased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The page and section of the specification.
    pub section: &'static str,
    /// The rule.
    pub sentence: &'static str,
}

/// A case without its rule and result.
pub(super) struct CaseBuilder<'a> {
    pub(super) account: &'a Account,
    pub(super) kind: InputKind,
    pub(super) name: &'a str,
    pub(super) collections: Vec<String>,
    pub(super) bytes: Vec<u8>,
}

impl<'a> CaseBuilder<'a> {
    pub(super) fn repo(account: &'a Account, name: &'a str, archive: &Archive) -> Self {
        Self::car(account, name, archive.to_bytes())
    }

    pub(super) fn car(account: &'a Account, name: &'a str, bytes: Vec<u8>) -> Self {
        Self { account, kind: InputKind::Repo, name, collections: Vec::new(), bytes }
    }

    pub(super) fn part(
        account: &'a Account,
        name: &'a str,
        collection: &str,
        archive: &Archive,
    ) -> Self {
        let (collections, bytes) = (vec![collection.to_owned()], archive.to_bytes());
        Self { account, kind: InputKind::Part, name, collections, bytes }
    }

    pub(super) fn frames(account: &'a Account, name: &'a str, frames: &[Vec<u8>]) -> Self {
        let bytes = atproto::corpus::write(frames.iter().map(Vec::as_slice));
        Self { account, kind: InputKind::Frames, name, collections: Vec::new(), bytes }
    }

    /// A case to be rejected: the input breaks `rule`, whose stable code is `code`.
    pub(super) fn rejected(self, code: &'static str, rule: Rule) -> Case {
        let layer = Layer::of(code);
        self.case(layer, rule, Expect::Refuse, Some(code))
    }

    /// A case to be accepted without its invalid record: the record breaks `rule`, whose stable code is `code`.
    pub(super) fn with_invalid_record(self, code: &'static str, rule: Rule) -> Case {
        self.case(Layer::Record, rule, Expect::InvalidRecord, Some(code))
    }

    /// A case to be accepted: `rule` allows the input.
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
            collections: self.collections,
            bytes: self.bytes,
        }
    }
}

impl Case {
    /// The path of its file within a folder of cases.
    pub fn file_name(&self) -> String {
        let ending = match self.kind {
            InputKind::Repo | InputKind::Part => "car",
            InputKind::Frames => "bin",
        };
        format!("{}.{ending}", self.name)
    }
}

impl Layer {
    /// All layers.
    pub const ALL: [Self; 7] = [
        Self::Frame,
        Self::Car,
        Self::Commit,
        Self::Signature,
        Self::Tree,
        Self::Record,
        Self::Event,
    ];

    /// The name in case names and codes.
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

/// The description of a set of cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The seed.
    pub seed: u64,
    /// The cases, in the order of the set.
    pub cases: Vec<CaseEntry>,
}

/// The description of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseEntry {
    /// The name.
    pub name: String,
    /// The path of the file, relative to the manifest.
    pub file: String,
    /// The kind of the file.
    pub kind: InputKind,
    /// The required result.
    pub expect: Expect,
    /// The stable code of the broken rule.
    pub code: Option<String>,
    /// The layer that must reject it, or report its record.
    pub layer: Layer,
    /// The section of the specification.
    pub section: String,
    /// The rule.
    pub rule: String,
    /// The other inputs of the verifier.
    #[serde(flatten)]
    pub context: CaseContext,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// The SHA-256 of the file in hexadecimal.
    pub sha256: String,
}

/// The inputs of a verifier in addition to the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseContext {
    /// The DID of the account.
    pub did: String,
    /// The signing key of the account, as a `did:key`.
    pub signing_key: String,
    /// The time of verification, where it matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// The collections that a part proves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<String>,
}

impl CaseEntry {
    pub(super) fn new(case: &Case) -> Self {
        Self {
            name: case.name.clone(),
            file: case.file_name(),
            kind: case.kind,
            expect: case.expect,
            code: case.code.map(str::to_owned),
            layer: case.layer,
            section: case.rule.section.to_owned(),
            rule: case.rule.sentence.to_owned(),
            context: CaseContext::new(case),
            file_bytes: case.bytes.len() as u64,
            sha256: digest_hex(&case.bytes),
        }
    }
}

impl CaseContext {
    /// The inputs for `case`.
    pub fn new(case: &Case) -> Self {
        let Case { did, signing_key, now, collections, .. } = case.clone();
        Self { did, signing_key, now, collections }
    }
}

/// The time of verification of all frames: an hour after the last commit before the cases.
pub(super) const NOW_MICROS: u64 = START_MICROS + 3_600_000_000;
