//! What stands beside the archive, so that it can be checked and verified.

use kernels::sha256;
use serde::{Deserialize, Serialize};

use super::corpus::{Corpus, RepositoryCounts};
use crate::account::Account;
use crate::hex::hex;

/// The description of an archive of one repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The seed.
    pub seed: u64,
    /// Whose repository it is.
    pub did: String,
    /// The key that signed it, as a `did:key`.
    pub signing_key: String,
    /// The same key as the account's DID document states it.
    #[serde(rename = "didDoc")]
    pub did_document: DidDocument,
    /// The root of the archive: the newest commit.
    pub commit: String,
    /// The root of the tree.
    pub data: String,
    /// The newest revision.
    pub rev: String,
    /// The length of the file, in bytes.
    pub file_bytes: u64,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// What a verifier must find.
    pub counts: RepositoryCounts,
}

impl Manifest {
    /// Describes `file`, the bytes that [`Corpus::to_file`] gave for `corpus`.
    pub fn new(corpus: &Corpus, file: &[u8]) -> Self {
        let repository = corpus.repository();
        let account = repository.account();
        Self {
            seed: corpus.spec().seed,
            did: account.did().to_owned(),
            signing_key: account.key().did_key(),
            did_document: DidDocument::of(account),
            commit: repository.head().cid.to_string(),
            data: repository.tree().root().to_string(),
            rev: repository.rev().to_string(),
            file_bytes: file.len() as u64,
            sha256: hex(&sha256::digest(file)),
            counts: corpus.counts(),
        }
    }
}

/// As much of a DID document as tells who signs for an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DidDocument {
    /// The DID.
    pub id: String,
    /// The keys.
    #[serde(rename = "verificationMethod")]
    pub verification_method: Vec<VerificationMethod>,
}

/// A key in a DID document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationMethod {
    /// The DID and a fragment; that of the key which signs commits is `#atproto`.
    pub id: String,
    /// How the key is written.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whose key it is.
    pub controller: String,
    /// The key.
    #[serde(rename = "publicKeyMultibase")]
    pub public_key_multibase: String,
}

impl DidDocument {
    /// The document of `account`, with its key for commits and nothing else.
    pub fn of(account: &Account) -> Self {
        let did = account.did().to_owned();
        let did_key = account.key().did_key();
        let multibase = did_key.strip_prefix("did:key:").expect("how a did:key starts");
        let method = VerificationMethod {
            id: format!("{did}#atproto"),
            kind: "Multikey".to_owned(),
            controller: did.clone(),
            public_key_multibase: multibase.to_owned(),
        };
        Self { id: did, verification_method: vec![method] }
    }
}
