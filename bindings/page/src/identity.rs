//! The identity of an account: from its DID log, which proves it, or from a DID document, which states it.

use atproto::did_document::{self, DidDocument, DidDocumentError};
use atproto::plc::{AccountData, Operation, UnsignedOperation};
use atproto::syntax::DidBuf;
use crypto::PublicKey;
use serde::Serialize;
use serde_json::value::RawValue;
use verify::plc::{self, AcceptedOperation};

use crate::nostr::{offset_at, offset_of};
use crate::{Refusal, Result, offset_in};

/// An account as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// The DID.
    pub did: String,
    /// The handle that the account claims.
    pub handle: Option<String>,
    /// The key that signs its repository, as did:key.
    pub key: Option<String>,
    /// Its server.
    pub host: Option<String>,
    /// Whether the account was deleted.
    pub deleted: bool,
    /// The operations of its log, from the first.
    pub operations: Vec<Step>,
}

/// An operation of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The type of the operation.
    pub kind: &'static str,
    /// The CID.
    pub cid: String,
    /// Index of the signing key among the rotation keys of the operation before.
    pub signer: usize,
    /// Microseconds since 1970 when the directory accepted it.
    pub created_at_micros: Option<i64>,
    /// Whether a later operation nullified it.
    pub nullified: bool,
    /// The handle after it.
    pub handle: Option<String>,
    /// The signing key after it.
    pub key: Option<String>,
    /// The server after it.
    pub host: Option<String>,
    /// Offset and length of its entry.
    pub at: Option<(usize, usize)>,
}

/// Verifies a DID log, of `did` if one is given.
///
/// # Errors
/// The first broken rule, at the entry that breaks it.
pub fn log(input: &[u8], did: Option<&str>) -> Result<Identity> {
    let mut options = plc::Options::default();
    if let Some(did) = did {
        let parsed: Result<DidBuf, _> = did.parse();
        options.did = Some(parsed.map_err(|error| Refusal::new("plc/did", error))?);
    }
    let entries: Vec<&RawValue> = serde_json::from_slice(input)
        .map_err(|error| Refusal::new("plc/json", &error).at(offset_of(input, &error)))?;
    let place = |index: usize| {
        let entry = entries.get(index)?.get().as_bytes();
        Some((offset_in(input, entry), entry.len()))
    };
    let history = plc::verify(input, &options).map_err(|rejection| {
        let (offset, length) = place(rejection.index).unwrap_or((0, input.len()));
        let (offset, length, what) = field_of(rejection.code())
            .and_then(|field| {
                let inside = crate::find(&input[offset..offset + length], field.as_bytes())?;
                Some((offset + inside, field.len(), "the field"))
            })
            .unwrap_or((offset, length, "the entry of the log"));
        let refusal = Refusal::new(rejection.code(), rejection.fault).at(offset);
        Refusal { index: Some(rejection.index), length, place: Some(what), ..refusal }
    })?;
    let data = history.data();
    Ok(Identity {
        did: history.did().to_string(),
        handle: data.and_then(AccountData::handle).map(|handle| handle.to_string()),
        key: history.signing_key().map(|key| key.to_did_key()),
        host: data.and_then(AccountData::host).map(str::to_owned),
        deleted: history.is_tombstoned(),
        operations: history
            .operations()
            .iter()
            .enumerate()
            .map(|(at, step)| step_of(step, place(at)))
            .collect(),
    })
}

fn step_of(step: &AcceptedOperation, at: Option<(usize, usize)>) -> Step {
    let data = step.operation.unsigned().to_data();
    let data = data.as_ref();
    Step {
        kind: kind(&step.operation),
        cid: step.cid.to_string(),
        signer: step.signer,
        created_at_micros: step.created_at_micros,
        nullified: step.nullified,
        handle: data.and_then(AccountData::handle).map(|handle| handle.to_string()),
        key: data.and_then(AccountData::signing_key).map(str::to_owned),
        host: data.and_then(AccountData::host).map(str::to_owned),
        at,
    }
}

fn kind(operation: &Operation) -> &'static str {
    match operation.unsigned() {
        UnsignedOperation::Update(update) if update.prev.is_none() => "genesis",
        UnsignedOperation::Update(_) => "update",
        UnsignedOperation::Tombstone { .. } => "tombstone",
        UnsignedOperation::Create(_) => "create",
    }
}

/// The field of an entry that a code is about.
fn field_of(code: &str) -> Option<&'static str> {
    match code {
        "plc/cid" => Some("\"cid\""),
        "plc/prev" | "plc/prev-nullified" | "plc/genesis" => Some("\"prev\""),
        "plc/created-at" | "plc/window" => Some("\"createdAt\""),
        "plc/nullified" => Some("\"nullified\""),
        "plc/rotation-key" => Some("\"rotationKeys\""),
        "signature/wrong"
        | "signature/high-s"
        | "signature/range"
        | "plc/signature-encoding"
        | "plc/signature-length" => Some("\"sig\""),
        _ => None,
    }
}

/// Reads a DID document, of `did` if one is given.
///
/// # Errors
/// If it is not one.
pub fn document(input: &[u8], did: Option<&str>) -> Result<Identity> {
    let document =
        DidDocument::parse(input, &did_document::Options::default()).map_err(|error| {
            let refusal = Refusal::new(DOCUMENT, error);
            match error {
                DidDocumentError::Json { line, column } => {
                    refusal.at(offset_at(input, line, column))
                }
                _ => refusal.or_find(input, b"\"id\"", "the field"),
            }
        })?;
    if did.is_some_and(|did| document.did() != did) {
        let refusal = Refusal::new(DOCUMENT, DidDocumentError::OtherDid);
        return Err(refusal.or_find(input, b"\"id\"", "the field").into());
    }
    let key: Option<PublicKey> = verify::identity::signing_key(&document).map_err(|error| {
        Refusal::new(DOCUMENT, error).or_find(input, b"\"verificationMethod\"", "the field")
    })?;
    Ok(Identity {
        did: document.did().to_string(),
        handle: document.handle().map(|handle| handle.to_string()),
        key: key.map(|key| key.to_did_key()),
        host: document.host().map(str::to_owned),
        ..Identity::default()
    })
}

/// The code of a document that breaks a rule.
const DOCUMENT: &str = "identity/document";
