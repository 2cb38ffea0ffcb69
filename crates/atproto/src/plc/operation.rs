//! What an operation says.

use std::collections::BTreeMap;

use codec::Cid;
use codec::cid::Codec;
use kernels::{base32, sha256};
use serde::{Deserialize, Serialize};

use super::OperationFault;
use super::json::Fields;
use crate::did_document::{self, HOST_TYPE};
use crate::syntax::{DidBuf, Handle};

/// A signed operation. Whether the signature is one of those who may make it is not known.
///
/// ```
/// use wireproof_atproto::plc::{AccountData, Operation, UnsignedOperation, Update};
/// let genesis = UnsignedOperation::Update(Update { data: AccountData::default(), prev: None });
/// let operation = genesis.with_signature([7; 64]);
/// assert_eq!(Operation::parse(operation.to_json().as_bytes()), Ok(operation.clone()));
/// assert_eq!(operation.did().unwrap(), "did:plc:bt72miaxj46jwvdczm5tg7gl");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    unsigned: UnsignedOperation,
    sig: [u8; 64],
}

/// All of an operation but its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsignedOperation {
    /// `plc_operation`: what shall be true from now on.
    Update(Update),
    /// `plc_tombstone`: the account is gone.
    Tombstone {
        /// The operation that this one follows.
        prev: Cid,
    },
    /// `create`: how accounts began in the first months.
    Create(LegacyCreate),
}

/// An operation of the type `plc_operation`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// What shall be true.
    pub data: AccountData,
    /// The operation that this one follows; `None` for the first.
    pub prev: Option<Cid>,
}

/// What is true of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountData {
    /// Those who may sign the next operation, as did:keys, the mightiest first. Without any, this is
    /// how it stays.
    pub rotation_keys: Vec<String>,
    /// The account's keys for other purposes, as did:keys.
    pub verification_methods: BTreeMap<String, String>,
    /// The account's names, as URIs.
    pub also_known_as: Vec<String>,
    /// The account's services.
    pub services: BTreeMap<String, Service>,
}

/// A service of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is.
    pub endpoint: String,
}

/// An operation of the type `create`, which is always a first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyCreate {
    /// The key of the repository, and the weaker rotation key.
    pub signing_key: String,
    /// The mightier rotation key.
    pub recovery_key: String,
    /// The handle, with or without `at://`.
    pub handle: String,
    /// The host, with or without `https://`.
    pub service: String,
}

impl Operation {
    /// Reads an operation from its JSON.
    ///
    /// # Errors
    /// If it is none, has a field that its type does not have, or a signature that is not 64 bytes in
    /// strict base64url.
    pub fn parse(json: &[u8]) -> Result<Self, OperationFault> {
        serde_json::from_slice::<Fields>(json)?.try_into()
    }

    /// Everything but the signature.
    pub fn unsigned(&self) -> &UnsignedOperation {
        &self.unsigned
    }

    /// The signature: r and s, if it is one.
    pub fn sig(&self) -> &[u8; 64] {
        &self.sig
    }

    /// The operation that this one follows; `None` for a first one.
    pub fn prev(&self) -> Option<Cid> {
        self.unsigned.prev()
    }

    /// The canonical DAG-CBOR, signature and all.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.unsigned.encode(Some(&self.sig))
    }

    /// The CID of [`to_bytes`](Self::to_bytes).
    pub fn cid(&self) -> Cid {
        Cid::of(Codec::DagCbor, &self.to_bytes())
    }

    /// The DID that begins with this operation: 24 symbols of the base32 of its hash. `None` if it
    /// follows another.
    pub fn did(&self) -> Option<DidBuf> {
        if self.prev().is_some() {
            return None;
        }
        let mut text = String::from("did:plc:");
        base32::encode_into(&sha256::digest(&self.to_bytes())[..15], &mut text);
        Some(text.parse().expect("24 symbols of base32 behind the method"))
    }

    /// The JSON, on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&Fields::from(self)).expect("text, lists and maps of text have JSON")
    }
}

impl UnsignedOperation {
    /// The operation that this one follows; `None` for a first one.
    pub fn prev(&self) -> Option<Cid> {
        match self {
            Self::Update(update) => update.prev,
            Self::Tombstone { prev } => Some(*prev),
            Self::Create(_) => None,
        }
    }

    /// The bytes to sign: the canonical DAG-CBOR.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode(None)
    }

    /// The operation with this signature, which should be over the SHA-256 of
    /// [`to_bytes`](Self::to_bytes).
    pub fn with_signature(self, sig: [u8; 64]) -> Operation {
        Operation { unsigned: self, sig }
    }

    /// What is true after it; `None` behind a tombstone.
    pub fn to_data(&self) -> Option<AccountData> {
        match self {
            Self::Update(update) => Some(update.data.clone()),
            Self::Tombstone { .. } => None,
            Self::Create(create) => Some(create.to_data()),
        }
    }
}

impl LegacyCreate {
    fn to_data(&self) -> AccountData {
        let host = Service {
            kind: HOST_TYPE.to_owned(),
            endpoint: with_scheme(&self.service, &["https://", "http://"]),
        };
        AccountData {
            rotation_keys: vec![self.recovery_key.clone(), self.signing_key.clone()],
            verification_methods: BTreeMap::from([(KEY_ID.to_owned(), self.signing_key.clone())]),
            also_known_as: vec![with_scheme(&self.handle, &["at://"])],
            services: BTreeMap::from([(HOST_ID.to_owned(), host)]),
        }
    }
}

/// The text as it is if it starts with one of `schemes`, and else with the first of them before it.
fn with_scheme(text: &str, schemes: &[&str]) -> String {
    match schemes.iter().any(|scheme| text.starts_with(scheme)) {
        true => text.to_owned(),
        false => format!("{}{text}", schemes[0]),
    }
}

impl AccountData {
    /// The handle that the account claims: the first name that is one.
    pub fn handle(&self) -> Option<Handle<'_>> {
        did_document::first_handle(self.also_known_as.iter())
    }

    /// The key that signs the account's repository, as a did:key.
    pub fn signing_key(&self) -> Option<&str> {
        self.verification_methods.get(KEY_ID).map(String::as_str)
    }

    /// Where the account is hosted: `https://`, a name and perhaps a port.
    pub fn host(&self) -> Option<&str> {
        let service = self.services.get(HOST_ID).filter(|service| service.kind == HOST_TYPE)?;
        did_document::is_host(&service.endpoint).then_some(&service.endpoint)
    }
}

const KEY_ID: &str = "atproto";
const HOST_ID: &str = "atproto_pds";
