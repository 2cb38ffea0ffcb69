//! Operations as JSON: one struct has the fields of all types, all optional, so that every field is accounted for.
//!
//! A directory keeps operations as `jsonb` of PostgreSQL, which orders keys by their length and then by their bytes, as DAG-CBOR
//! does; its JavaScript moves keys that are numbers to the front. The same order is written here, so that the text of an
//! operation is the directory's.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use codec::Cid;
use data_encoding::BASE64URL_NOPAD;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    AccountData, LegacyCreate, Operation, OperationFault, Service, UnsignedOperation, Update,
};
use crate::syntax::Did;

/// The fields of an operation: all present ones have their kinds, and none is repeated.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Fields {
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    sig: Option<String>,
    /// The outer is `None` if the field is missing, the inner if it is null.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    prev: Option<Option<String>>,
    #[serde(
        rename = "type",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    kind: Option<String>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    handle: Option<String>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    services: Option<Entries<Service>>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    signing_key: Option<String>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    recovery_key: Option<String>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    also_known_as: Option<Vec<String>>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    rotation_keys: Option<Vec<String>>,
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    verification_methods: Option<Entries<String>>,
}

/// Reads a field that is present: null is not the same as missing.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl Operation {
    /// Reads an operation from its JSON.
    ///
    /// # Errors
    /// If it is malformed, has a field that its type does not have, or a signature that is not 64 bytes in
    /// strict base64url.
    pub fn parse(json: &[u8]) -> Result<Self, OperationFault> {
        serde_json::from_slice::<Fields>(json)?.try_into()
    }

    /// The JSON, on one line, with the text and the order of keys of a directory.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&Fields::from(self)).expect("text, lists and maps of text have JSON")
    }
}

impl AccountData {
    /// The JSON of the data of an account, as a directory answers `/data`.
    pub fn to_json(&self, did: Did<'_>) -> String {
        let data = Data {
            did: did.as_str(),
            verification_methods: Ordered(&self.verification_methods),
            rotation_keys: &self.rotation_keys,
            also_known_as: &self.also_known_as,
            services: Ordered(&self.services),
        };
        serde_json::to_string(&data).expect("text, lists and maps of text have JSON")
    }

    /// The account's keys in the order of a directory.
    pub fn ordered_verification_methods(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = in_directory_order(&self.verification_methods).into_iter();
        entries.map(|(id, key)| (id.as_str(), key.as_str()))
    }

    /// The account's services in the order of a directory.
    pub fn ordered_services(&self) -> impl Iterator<Item = (&str, &Service)> {
        in_directory_order(&self.services).into_iter().map(|(id, service)| (id.as_str(), service))
    }
}

/// The fields of the data of an account.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'d> {
    did: &'d str,
    verification_methods: Ordered<'d, String>,
    rotation_keys: &'d [String],
    also_known_as: &'d [String],
    services: Ordered<'d, Service>,
}

/// A map that is written in the order of a directory.
struct Ordered<'m, V>(&'m BTreeMap<String, V>);

impl<V: Serialize> Serialize for Ordered<'_, V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(in_directory_order(self.0))
    }
}

impl TryFrom<Fields> for Operation {
    type Error = OperationFault;

    fn try_from(mut fields: Fields) -> Result<Self, OperationFault> {
        let sig = signature(&required(fields.sig.take(), "sig")?)?;
        let prev = match required(fields.prev.take(), "prev")? {
            Some(text) => Some(text.parse().map_err(|_| OperationFault::Field("prev"))?),
            None => None,
        };
        let unsigned = match required(fields.kind.take(), "type")?.as_str() {
            "plc_operation" => UnsignedOperation::Update(fields.take_update(prev)?),
            "plc_tombstone" => {
                UnsignedOperation::Tombstone { prev: prev.ok_or(OperationFault::Field("prev"))? }
            }
            "create" if prev.is_some() => return Err(OperationFault::Field("prev")),
            "create" => UnsignedOperation::Create(fields.take_create()?),
            _ => return Err(OperationFault::Type),
        };
        fields.expect_empty()?;
        Ok(unsigned.with_signature(sig))
    }
}

impl Fields {
    fn take_update(&mut self, prev: Option<Cid>) -> Result<Update, OperationFault> {
        let data = AccountData {
            rotation_keys: required(self.rotation_keys.take(), "rotationKeys")?,
            verification_methods: required(
                self.verification_methods.take(),
                "verificationMethods",
            )?
            .0,
            also_known_as: required(self.also_known_as.take(), "alsoKnownAs")?,
            services: required(self.services.take(), "services")?.0,
        };
        Ok(Update { data, prev })
    }

    fn take_create(&mut self) -> Result<LegacyCreate, OperationFault> {
        Ok(LegacyCreate {
            signing_key: required(self.signing_key.take(), "signingKey")?,
            recovery_key: required(self.recovery_key.take(), "recoveryKey")?,
            handle: required(self.handle.take(), "handle")?,
            service: required(self.service.take(), "service")?,
        })
    }

    /// Checks that all fields were taken.
    fn expect_empty(&self) -> Result<(), OperationFault> {
        let left = [
            (self.rotation_keys.is_some(), "rotationKeys"),
            (self.verification_methods.is_some(), "verificationMethods"),
            (self.also_known_as.is_some(), "alsoKnownAs"),
            (self.services.is_some(), "services"),
            (self.signing_key.is_some(), "signingKey"),
            (self.recovery_key.is_some(), "recoveryKey"),
            (self.handle.is_some(), "handle"),
            (self.service.is_some(), "service"),
        ];
        match left.iter().find(|(is_left, _)| *is_left) {
            Some((_, name)) => Err(OperationFault::Unexpected(name)),
            None => Ok(()),
        }
    }
}

fn required<T>(field: Option<T>, name: &'static str) -> Result<T, OperationFault> {
    field.ok_or(OperationFault::Missing(name))
}

fn signature(text: &str) -> Result<[u8; 64], OperationFault> {
    let bytes =
        BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| OperationFault::SignatureEncoding)?;
    let len = bytes.len();
    bytes.try_into().map_err(|_| OperationFault::SignatureLength(len))
}

impl From<&Operation> for Fields {
    fn from(operation: &Operation) -> Self {
        let common = Self {
            prev: Some(operation.prev().map(|cid| cid.to_string())),
            sig: Some(BASE64URL_NOPAD.encode(operation.sig())),
            ..Self::default()
        };
        match operation.unsigned().clone() {
            UnsignedOperation::Update(Update { data, .. }) => Self {
                kind: Some("plc_operation".to_owned()),
                rotation_keys: Some(data.rotation_keys),
                verification_methods: Some(Entries(data.verification_methods)),
                also_known_as: Some(data.also_known_as),
                services: Some(Entries(data.services)),
                ..common
            },
            UnsignedOperation::Tombstone { .. } => {
                Self { kind: Some("plc_tombstone".to_owned()), ..common }
            }
            UnsignedOperation::Create(create) => Self {
                kind: Some("create".to_owned()),
                signing_key: Some(create.signing_key),
                recovery_key: Some(create.recovery_key),
                handle: Some(create.handle),
                service: Some(create.service),
                ..common
            },
        }
    }
}

/// A map without repeated keys.
struct Entries<V>(BTreeMap<String, V>);

impl<V: Serialize> Serialize for Entries<V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Ordered(&self.0).serialize(to)
    }
}

/// The entries of a map in the order of a directory.
fn in_directory_order<V>(map: &BTreeMap<String, V>) -> Vec<(&String, &V)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_cached_key(|(key, _)| (array_index(key).unwrap_or(u32::MAX), key.len()));
    entries
}

/// The number that JavaScript takes a key for: 0 to 2³² − 2, in its only form.
fn array_index(key: &str) -> Option<u32> {
    let is_number = key == "0" || !key.starts_with(['0', '+']);
    key.parse().ok().filter(|number| is_number && *number < u32::MAX)
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Entries<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for EntriesVisitor<V> {
    type Value = Entries<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Entries<V>, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((key, value)) = access.next_entry()? {
            if entries.insert(key, value).is_some() {
                return Err(A::Error::custom("a key is repeated"));
            }
        }
        Ok(Entries(entries))
    }
}
