//! Proofs that a checkpoint has the history of an account, or none of it.

use atproto::syntax::{Did, DidBuf};
use data_encoding::HEXLOWER;
use kernels::sha256::Digest;
use serde::{Deserialize, Serialize};

use super::{Checkpoint, CheckpointRejection, InclusionProof, digest, entry, hash_of_history};
use crate::Verified;
use crate::plc::History;

/// A proof of an account. It is not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The account.
    pub did: DidBuf,
    /// The statement.
    pub subject: ProofSubject,
}

/// The statement of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofSubject {
    /// The checkpoint has the account.
    Present(InclusionProof),
    /// It does not: these are its neighbours, next to each other, or the first or last account alone. Without accounts there is
    /// none.
    Absent {
        /// The last account before it.
        before: Option<Neighbour>,
        /// The first account after it.
        after: Option<Neighbour>,
    },
}

/// An account next to an absent one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The account.
    pub did: DidBuf,
    /// The hash of its history.
    pub history: Digest,
    /// Its place.
    pub inclusion: InclusionProof,
}

/// Verifies a proof against a checkpoint: that it has exactly the verified `history`, or without one, no history of `did`.
///
/// # Errors
/// The first broken rule.
pub fn verify_proof(
    proof: &Proof,
    checkpoint: &Verified<Checkpoint>,
    did: Did<'_>,
    history: Option<&Verified<History>>,
) -> Result<(), CheckpointRejection> {
    if proof.did.as_did() != did {
        return Err(CheckpointRejection::Did);
    }
    match (&proof.subject, history) {
        (ProofSubject::Present(inclusion), Some(history)) if history.did() == did => {
            check_entry(checkpoint, did, &hash_of_history(history), inclusion)
        }
        (ProofSubject::Present(_), Some(_)) => Err(CheckpointRejection::Did),
        (ProofSubject::Absent { before, after }, None) => {
            check_absent(checkpoint, did, before.as_ref(), after.as_ref())
        }
        // The checkpoint has an account without a history, or a history of no account.
        _ => Err(CheckpointRejection::Root),
    }
}

fn check_entry(
    checkpoint: &Checkpoint,
    did: Did<'_>,
    history: &Digest,
    inclusion: &InclusionProof,
) -> Result<(), CheckpointRejection> {
    let root = inclusion.root(&entry(did, history), checkpoint.accounts());
    match root.ok_or(CheckpointRejection::Position)? {
        root if root == checkpoint.content().root => Ok(()),
        _ => Err(CheckpointRejection::Root),
    }
}

fn check_absent(
    checkpoint: &Checkpoint,
    did: Did<'_>,
    before: Option<&Neighbour>,
    after: Option<&Neighbour>,
) -> Result<(), CheckpointRejection> {
    // The place that the account would have.
    let place = before.map_or(Some(0), |before| before.inclusion.index.checked_add(1));
    let is_next = match after {
        Some(after) => place == Some(after.inclusion.index),
        None => place == Some(checkpoint.accounts()),
    };
    let is_around = before.is_none_or(|before| before.did.as_str() < did.as_str())
        && after.is_none_or(|after| did.as_str() < after.did.as_str());
    if !is_next || !is_around {
        return Err(CheckpointRejection::Neighbours);
    }
    for Neighbour { did, history, inclusion } in before.into_iter().chain(after) {
        check_entry(checkpoint, did.as_did(), history, inclusion)?;
    }
    let is_empty_root =
        checkpoint.accounts() > 0 || checkpoint.content().root == kernels::sha256::digest(&[]);
    if is_empty_root { Ok(()) } else { Err(CheckpointRejection::Root) }
}

/// The JSON of a proof.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(rename = "type")]
    kind: String,
    did: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    present: Option<PathFields>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    absent: Option<AbsentFields>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathFields {
    index: u64,
    path: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AbsentFields {
    before: Option<NeighbourFields>,
    after: Option<NeighbourFields>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NeighbourFields {
    did: String,
    history: String,
    index: u64,
    path: Vec<String>,
}

impl Proof {
    /// Reads a proof from its JSON.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn parse(json: &[u8]) -> Result<Self, CheckpointRejection> {
        if json.len() > MAX_BYTES {
            return Err(CheckpointRejection::Length(MAX_BYTES));
        }
        let fields: Fields = serde_json::from_slice(json)
            .map_err(|error| CheckpointRejection::json("a proof", &error))?;
        if fields.kind != KIND {
            return Err(CheckpointRejection::Field("type"));
        }
        let did = parse_did(&fields.did)?;
        let subject = match (fields.present, fields.absent) {
            (Some(PathFields { index, path }), None) => {
                ProofSubject::Present(inclusion(index, &path)?)
            }
            (None, Some(AbsentFields { before, after })) => ProofSubject::Absent {
                before: before.map(neighbour).transpose()?,
                after: after.map(neighbour).transpose()?,
            },
            _ => return Err(CheckpointRejection::Field("present")),
        };
        Ok(Self { did, subject })
    }

    /// The JSON, on one line.
    pub fn to_json(&self) -> String {
        let (present, absent) = match &self.subject {
            ProofSubject::Present(InclusionProof { index, path }) => {
                (Some(PathFields { index: *index, path: texts(path) }), None)
            }
            ProofSubject::Absent { before, after } => {
                let [before, after] = [before, after].map(|of| of.as_ref().map(neighbour_fields));
                (None, Some(AbsentFields { before, after }))
            }
        };
        let fields = Fields { kind: KIND.to_owned(), did: self.did.to_string(), present, absent };
        serde_json::to_string(&fields).expect("text, numbers and lists have JSON")
    }
}

fn neighbour(fields: NeighbourFields) -> Result<Neighbour, CheckpointRejection> {
    Ok(Neighbour {
        did: parse_did(&fields.did)?,
        history: digest(&fields.history).ok_or(CheckpointRejection::Field("history"))?,
        inclusion: inclusion(fields.index, &fields.path)?,
    })
}

fn neighbour_fields(of: &Neighbour) -> NeighbourFields {
    let Neighbour { did, history, inclusion: InclusionProof { index, path } } = of;
    NeighbourFields {
        did: did.to_string(),
        history: HEXLOWER.encode(history),
        index: *index,
        path: texts(path),
    }
}

fn inclusion(index: u64, path: &[String]) -> Result<InclusionProof, CheckpointRejection> {
    let path: Option<Vec<Digest>> = path.iter().map(|text| digest(text)).collect();
    let path = path.ok_or(CheckpointRejection::Field("path"))?;
    if path.len() > MAX_PATH {
        return Err(CheckpointRejection::Field("path"));
    }
    Ok(InclusionProof { index, path })
}

fn texts(path: &[Digest]) -> Vec<String> {
    path.iter().map(|digest| HEXLOWER.encode(digest)).collect()
}

fn parse_did(text: &str) -> Result<DidBuf, CheckpointRejection> {
    text.parse().map_err(|_| CheckpointRejection::Field("did"))
}

const KIND: &str = "wireproof.plc.proof.1";

/// Maximum length of a proof in bytes: two paths.
const MAX_BYTES: usize = 16 << 10;

/// Maximum length of a path: the height of a tree of 2⁶⁴ entries.
const MAX_PATH: usize = 64;
