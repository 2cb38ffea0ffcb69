//! The fields of operations, and their canonical DAG-CBOR: shorter keys first, and `prev` as text.

use std::collections::BTreeMap;

use codec::Cid;
use codec::cbor::Encoder;
use codec::cid::Codec;
use data_encoding::BASE64URL_NOPAD;
use kernels::{base32, sha256};
use serde::{Deserialize, Serialize};

use crate::did_document::{self, HOST_TYPE};
use crate::syntax::{DidBuf, Handle};

/// A signed operation. The signature is not verified.
///
/// ```
/// use wireproof::atproto::plc::{AccountData, Operation, UnsignedOperation, Update};
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

/// An operation without its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsignedOperation {
    /// `plc_operation`: replaces the data of the account.
    Update(Update),
    /// `plc_tombstone`: deletes the account.
    Tombstone {
        /// The operation that this one follows.
        prev: Cid,
    },
    /// `create`: the first operation of accounts created in the first months of the directory.
    Create(LegacyCreate),
}

/// An operation of the type `plc_operation`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The new data.
    pub data: AccountData,
    /// The operation that this one follows; `None` for the first.
    pub prev: Option<Cid>,
}

/// The data of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountData {
    /// The keys that may sign the next operation, as did:keys, in descending authority. Without any, the data
    /// is final.
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
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The endpoint, a URI.
    pub endpoint: String,
}

/// An operation of the type `create`, which is always the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyCreate {
    /// The key of the repository, and the rotation key of lower authority.
    pub signing_key: String,
    /// The rotation key of higher authority.
    pub recovery_key: String,
    /// The handle, with or without `at://`.
    pub handle: String,
    /// The host, with or without `https://`.
    pub service: String,
}

impl Operation {
    /// Everything but the signature.
    pub fn unsigned(&self) -> &UnsignedOperation {
        &self.unsigned
    }

    /// The signature: r and s.
    pub fn sig(&self) -> &[u8; 64] {
        &self.sig
    }

    /// The operation that this one follows; `None` for a first one.
    pub fn prev(&self) -> Option<Cid> {
        self.unsigned.prev()
    }

    /// The canonical DAG-CBOR, signature included.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.unsigned.encode(Some(&self.sig))
    }

    /// The CID of [`to_bytes`](Self::to_bytes).
    pub fn cid(&self) -> Cid {
        Cid::of(Codec::DagCbor, &self.to_bytes())
    }

    /// The DID that this operation creates: 24 characters of the base32 of its hash. `None` if it follows
    /// another operation.
    pub fn did(&self) -> Option<DidBuf> {
        if self.prev().is_some() {
            return None;
        }
        let mut text = String::from("did:plc:");
        base32::encode_into(&sha256::digest(&self.to_bytes())[..15], &mut text);
        Some(text.parse().expect("24 base32 characters after the method"))
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

    /// The operation with this signature of the SHA-256 of [`to_bytes`](Self::to_bytes).
    pub fn with_signature(self, sig: [u8; 64]) -> Operation {
        Operation { unsigned: self, sig }
    }

    /// The data after the operation; `None` after a tombstone.
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

/// The text, prefixed with the first of `schemes` unless it starts with one of them.
fn with_scheme(text: &str, schemes: &[&str]) -> String {
    if schemes.iter().any(|scheme| text.starts_with(scheme)) {
        text.to_owned()
    } else {
        format!("{}{text}", schemes[0])
    }
}

impl AccountData {
    /// The handle that the account claims: the first valid one among its names.
    pub fn handle(&self) -> Option<Handle<'_>> {
        did_document::first_handle(self.also_known_as.iter())
    }

    /// The key that signs the account's repository, as a did:key.
    pub fn signing_key(&self) -> Option<&str> {
        self.verification_methods.get(KEY_ID).map(String::as_str)
    }

    /// The key that signs the account's labels, as a did:key.
    pub fn label_key(&self) -> Option<&str> {
        self.verification_methods.get(LABEL_KEY_ID).map(String::as_str)
    }

    /// The host of the account: `https://`, a name and an optional port.
    pub fn host(&self) -> Option<&str> {
        let service = self.services.get(HOST_ID).filter(|service| service.kind == HOST_TYPE)?;
        did_document::host_of(&service.endpoint)
    }
}

impl UnsignedOperation {
    fn encode(&self, sig: Option<&[u8; 64]>) -> Vec<u8> {
        let mut out = Encoder::new();
        let fields = match self {
            Self::Update(_) => 6,
            Self::Tombstone { .. } => 2,
            Self::Create(_) => 6,
        };
        out.map(fields + usize::from(sig.is_some()));
        if let Some(sig) = sig {
            out.text("sig").text(&BASE64URL_NOPAD.encode(sig));
        }
        encode_prev(&mut out, self.prev());
        match self {
            Self::Update(Update { data, .. }) => encode_update(&mut out, data),
            Self::Tombstone { .. } => {
                out.text("type").text("plc_tombstone");
            }
            Self::Create(fields) => encode_create(&mut out, fields),
        }
        out.into_bytes()
    }
}

fn encode_prev(out: &mut Encoder, prev: Option<Cid>) {
    out.text("prev");
    match prev {
        Some(cid) => out.text(&cid.to_string()),
        None => out.null(),
    };
}

fn encode_update(out: &mut Encoder, data: &AccountData) {
    out.text("type").text("plc_operation").text("services");
    encode_map(out, &data.services, encode_service);
    out.text("alsoKnownAs");
    encode_list(out, &data.also_known_as);
    out.text("rotationKeys");
    encode_list(out, &data.rotation_keys);
    out.text("verificationMethods");
    encode_map(out, &data.verification_methods, |out, key| {
        out.text(key);
    });
}

fn encode_create(out: &mut Encoder, create: &LegacyCreate) {
    out.text("type").text("create").text("handle").text(&create.handle);
    out.text("service").text(&create.service).text("signingKey").text(&create.signing_key);
    out.text("recoveryKey").text(&create.recovery_key);
}

fn encode_service(out: &mut Encoder, service: &Service) {
    out.map(2).text("type").text(&service.kind).text("endpoint").text(&service.endpoint);
}

fn encode_list(out: &mut Encoder, texts: &[String]) {
    out.array(texts.len());
    for text in texts {
        out.text(text);
    }
}

fn encode_map<V>(out: &mut Encoder, map: &BTreeMap<String, V>, write: impl Fn(&mut Encoder, &V)) {
    let mut entries: Vec<(&String, &V)> = map.iter().collect();
    entries.sort_by_key(|(key, _)| (key.len(), *key));
    out.map(entries.len());
    for (key, value) in entries {
        out.text(key);
        write(out, value);
    }
}

const KEY_ID: &str = "atproto";

/// The id of the key of labels.
const LABEL_KEY_ID: &str = "atproto_label";
const HOST_ID: &str = "atproto_pds";
