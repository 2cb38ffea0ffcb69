//! Logs: all operations of one DID, in the order in which a directory took them.
//!
//! | form | from | entries |
//! |---|---|---|
//! | audit log | `/log/audit` | operations with their CIDs, their times, and whether later ones undid them |
//! | plain log | `/log` | operations that hold, bare |

use std::fmt;

use codec::Cid;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use super::json::Fields;
use super::limits::at_most;
use super::{Limits, LogError, Operation, OperationFault};
use crate::syntax::{DatetimeBuf, DidBuf};

/// A log in one of its two forms. Nothing that it says is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Log {
    /// With what the directory says of each operation.
    Audit(Vec<AuditEntry>),
    /// The operations that hold, bare.
    Plain(Vec<Operation>),
}

/// An operation, and what the directory says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Whose operation it is.
    pub did: DidBuf,
    /// The operation.
    pub operation: Operation,
    /// Its CID.
    pub cid: Cid,
    /// Whether a later operation undid it.
    pub nullified: bool,
    /// When the directory took it.
    pub created_at: DatetimeBuf,
}

impl Log {
    /// Reads a log in either form: the first entry tells which.
    ///
    /// # Errors
    /// If an entry is not of that form, or a limit is broken; the error says which entry.
    pub fn parse(json: &[u8], limits: &Limits) -> Result<Self, LogError> {
        at_most(limits.log_bytes, json.len(), "log_bytes").map_err(|fault| at(0, fault))?;
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
        // One entry is asked for: what comes behind it is an error that tells nothing here.
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
                OperationFault::Limit("operations")
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

/// Reads a list of at most `max` items into `out`, which has those before an error.
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
