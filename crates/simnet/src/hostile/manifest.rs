//! What stands beside the files of the set, so that a verifier can be held against it.

use kernels::sha256;
use serde::{Deserialize, Serialize};

use super::CaseSet;
use super::case::{Case, Expect, InputKind, Layer};
use crate::hex::hex;

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
    /// What it is called.
    pub name: String,
    /// Its file, from the folder of the manifest.
    pub file: String,
    /// What the file is.
    pub kind: InputKind,
    /// What a verifier must do.
    pub expect: Expect,
    /// The stable name of the rule that is broken.
    pub code: Option<String>,
    /// The layer that must refuse it.
    pub layer: Layer,
    /// Where in the specification the rule stands.
    pub section: String,
    /// The rule.
    pub rule: String,
    /// What the verifier is told.
    #[serde(flatten)]
    pub given: CaseContext,
    /// The length of the file, in bytes.
    pub file_bytes: u64,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// What a verifier is told beside the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseContext {
    /// The account.
    pub did: String,
    /// The key that signs for it, as a `did:key`.
    pub signing_key: String,
    /// What time it is, where that matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

impl Manifest {
    /// Describes `set`.
    pub fn new(set: &CaseSet) -> Self {
        Self { seed: set.spec().seed, cases: set.cases().iter().map(CaseEntry::new).collect() }
    }
}

impl CaseEntry {
    fn new(case: &Case) -> Self {
        Self {
            name: case.name.clone(),
            file: case.file_name(),
            kind: case.kind,
            expect: case.expect,
            code: case.code.map(str::to_owned),
            layer: case.layer,
            section: case.rule.section.to_owned(),
            rule: case.rule.sentence.to_owned(),
            given: CaseContext::new(case),
            file_bytes: case.bytes.len() as u64,
            sha256: hex(&sha256::digest(&case.bytes)),
        }
    }
}

impl CaseContext {
    /// What is told of `case`.
    pub fn new(case: &Case) -> Self {
        let Case { did, signing_key, now, .. } = case.clone();
        Self { did, signing_key, now }
    }
}
