//! Logs of all operations of one DID, in the order in which a directory accepted them, and the limits for
//! reading them.
//!
//! | form | from | entries |
//! |---|---|---|
//! | audit log | `/log/audit` | operations with their CIDs, their times, and whether later ones nullified them |
//! | plain log | `/log` | operations in effect, alone |

use std::fmt;

use codec::Cid;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use super::json::Fields;
use super::{AccountData, LogError, Operation, OperationFault};
use crate::syntax::{DatetimeBuf, DidBuf};

/// A log in one of its two forms. Its content is not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Log {
    /// With the statements of the directory on every operation.
    Audit(Vec<AuditEntry>),
    /// The operations in effect, alone.
    Plain(Vec<Operation>),
}

/// An operation, and the statements of the directory on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The DID.
    pub did: DidBuf,
    /// The operation.
    pub operation: Operation,
    /// Its CID.
    pub cid: Cid,
    /// Whether a later operation nullified it.
    pub nullified: bool,
    /// When the directory accepted it.
    pub created_at: DatetimeBuf,
}

impl Log {
    /// Reads a log in either form, recognized by its first entry.
    ///
    /// # Errors
    /// If an entry is not of that form, or a limit is exceeded; the error has the index of the entry.
    pub fn parse(json: &[u8], limits: &Limits) -> Result<Self, LogError> {
        at_most(limits.log_bytes, json.len(), "log_bytes").map_err(|fault| at(0, fault))?;
        if json.trim_ascii_start().first() != Some(&b'[') {
            return Err(at(0, OperationFault::NotAList));
        }
        if is_audit_log(json) {
            Ok(Self::Audit(entries::<AuditFields, _>(json, limits)?))
        } else {
            Ok(Self::Plain(entries::<Fields, _>(json, limits)?))
        }
    }
}

/// Whether the first entry has a field that an operation does not have.
fn is_audit_log(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct First {
        operation: Option<IgnoredAny>,
    }
    let first = || {
        let mut found = Vec::<First>::new();
        // One entry is read: an error after it is irrelevant here.
        let _ = read_list(json, &mut found, 1);
        found.pop()?.operation
    };
    first().is_some()
}

fn entries<'de, F, T>(json: &'de [u8], limits: &Limits) -> Result<Vec<T>, LogError>
where
    F: Deserialize<'de>,
    T: TryFrom<F, Error = OperationFault>,
{
    let mut fields = Vec::<F>::new();
    if let Err(error) = read_list(json, &mut fields, limits.operations) {
        let fault = match fields.len() {
            len if len == limits.operations && error.is_data() => {
                OperationFault::Limit { name: "operations", limit: len, found: len + 1 }
            }
            _ => error.into(),
        };
        return Err(at(fields.len(), fault));
    }
    let entry = |(index, fields): (usize, F)| fields.try_into().map_err(|fault| at(index, fault));
    fields.into_iter().enumerate().map(entry).collect()
}

#[cold]
fn at(index: usize, fault: OperationFault) -> LogError {
    LogError { index, fault }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditFields {
    did: String,
    operation: Fields,
    cid: String,
    nullified: bool,
    created_at: String,
}

impl TryFrom<AuditFields> for AuditEntry {
    type Error = OperationFault;

    fn try_from(fields: AuditFields) -> Result<Self, OperationFault> {
        Ok(Self {
            did: fields.did.parse().map_err(|_| OperationFault::Field("did"))?,
            operation: fields.operation.try_into()?,
            cid: fields.cid.parse().map_err(|_| OperationFault::Field("cid"))?,
            nullified: fields.nullified,
            created_at: fields
                .created_at
                .parse()
                .map_err(|_| OperationFault::Field("createdAt"))?,
        })
    }
}

/// Reads a list of at most `max` items into `out`, which keeps the items before an error.
fn read_list<'de, T: Deserialize<'de>>(
    json: &'de [u8],
    out: &mut Vec<T>,
    max: usize,
) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    List { out, max }.deserialize(&mut deserializer)?;
    deserializer.end()
}

struct List<'o, T> {
    out: &'o mut Vec<T>,
    max: usize,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for List<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while self.out.len() < self.max {
            match items.next_element()? {
                Some(item) => self.out.push(item),
                None => return Ok(()),
            }
        }
        match items.next_element::<IgnoredAny>()? {
            Some(_) => Err(A::Error::custom("too many items")),
            None => Ok(()),
        }
    }
}

/// Limits for operations and logs. The error names the exceeded limit.
///
/// The specification allows 7,500 bytes an operation and 5 rotation keys, none repeated; but the directory
/// accepts 10, and valid logs exist with a repeated key and without any. The defaults follow the directory, and
/// for bytes the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum length of the JSON of a log in bytes. Default: 8 MiB.
    pub log_bytes: usize,
    /// Maximum number of operations in a log. Default: 10,000.
    pub operations: usize,
    /// Maximum length of the DAG-CBOR of a signed operation in bytes. Default: 7,500.
    pub operation_bytes: usize,
    /// Maximum number of rotation keys. Default: 10.
    pub rotation_keys: usize,
    /// Maximum number of verification methods. Default: 10.
    pub verification_methods: usize,
    /// Maximum length of the name of a verification method in bytes. Default: 32.
    pub verification_method_id_bytes: usize,
    /// Maximum length of the key of a verification method in bytes. Default: 256.
    pub verification_method_key_bytes: usize,
    /// Maximum number of names of the account. Default: 10.
    pub also_known_as: usize,
    /// Maximum length of a name of the account in bytes. Default: 258.
    pub also_known_as_bytes: usize,
    /// Maximum number of services. Default: 10.
    pub services: usize,
    /// Maximum length of the name of a service in bytes. Default: 32.
    pub service_id_bytes: usize,
    /// Maximum length of the type of a service in bytes. Default: 256.
    pub service_type_bytes: usize,
    /// Maximum length of the endpoint of a service in bytes. Default: 512.
    pub service_endpoint_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            log_bytes: 8 << 20,
            operations: 10_000,
            operation_bytes: 7500,
            rotation_keys: 10,
            verification_methods: 10,
            verification_method_id_bytes: 32,
            verification_method_key_bytes: 256,
            also_known_as: 10,
            also_known_as_bytes: 258,
            services: 10,
            service_id_bytes: 32,
            service_type_bytes: 256,
            service_endpoint_bytes: 512,
        }
    }
}

impl Limits {
    /// Checks one operation.
    ///
    /// # Errors
    /// If a limit is exceeded: [`OperationFault::Limit`].
    pub fn check(&self, operation: &Operation) -> Result<(), OperationFault> {
        at_most(self.operation_bytes, operation.to_bytes().len(), "operation_bytes")?;
        match operation.unsigned().to_data() {
            Some(data) => self.check_data(&data),
            None => Ok(()),
        }
    }

    fn check_data(&self, data: &AccountData) -> Result<(), OperationFault> {
        at_most(self.rotation_keys, data.rotation_keys.len(), "rotation_keys")?;
        at_most(self.also_known_as, data.also_known_as.len(), "also_known_as")?;
        for name in &data.also_known_as {
            at_most(self.also_known_as_bytes, name.len(), "also_known_as_bytes")?;
        }
        let methods = &data.verification_methods;
        at_most(self.verification_methods, methods.len(), "verification_methods")?;
        for (id, key) in methods {
            at_most(self.verification_method_id_bytes, id.len(), "verification_method_id_bytes")?;
            at_most(
                self.verification_method_key_bytes,
                key.len(),
                "verification_method_key_bytes",
            )?;
        }
        at_most(self.services, data.services.len(), "services")?;
        for (id, service) in &data.services {
            at_most(self.service_id_bytes, id.len(), "service_id_bytes")?;
            at_most(self.service_type_bytes, service.kind.len(), "service_type_bytes")?;
            let endpoint = service.endpoint.len();
            at_most(self.service_endpoint_bytes, endpoint, "service_endpoint_bytes")?;
        }
        Ok(())
    }
}

fn at_most(limit: usize, count: usize, name: &'static str) -> Result<(), OperationFault> {
    if count > limit {
        return Err(OperationFault::Limit { name, limit, found: count });
    }
    Ok(())
}
