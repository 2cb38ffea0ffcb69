//! Operations of `did:plc` and logs of them, as a directory publishes them.
//!
//! | item | content |
//! |---|---|
//! | [`Operation`] | the fields of an operation, its signed bytes and its CID |
//! | [`AccountData`] | the data of an account after an operation |
//! | [`Log`] | the operations of one DID, with the times stated by the directory |
//! | [`ExportLine`] | a line of the export of a directory: an operation of any DID, and its number |
//! | [`Limits`] | limits for operations and logs |
//!
//! Operations are sent as JSON; they are signed and hashed as DAG-CBOR, all of whose fields are known: an
//! unknown or repeated field is rejected. Signatures and the order of operations are not checked here.
//!
//! Source: the specification of did:plc, version 0.1.

mod export;
mod json;
mod log;
mod operation;
#[cfg(test)]
mod tests;

pub use export::{ExportLine, StatedOperation};
pub use log::{AuditEntry, Limits, Log};
pub use operation::{AccountData, LegacyCreate, Operation, Service, UnsignedOperation, Update};

/// A malformed entry of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {index} of the log: {fault}")]
pub struct LogError {
    /// Index of the entry.
    pub index: usize,
    /// The broken rule.
    pub fault: OperationFault,
}

/// A broken rule of an operation, or of an entry of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationFault {
    /// A log that is not a list.
    #[error("a log is a JSON list of operations or of audit entries")]
    NotAList,
    /// A field that no operation has.
    #[error("a field that no operation has, before line {line}, column {column}")]
    UnknownField {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// Not JSON; or a field is repeated, or not of its kind.
    #[error("not the JSON of an operation, at line {line}, column {column}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// An unknown `type`.
    #[error("unknown type of operation")]
    Type,
    /// A required field of this type of operation is missing.
    #[error("the field {0:?} is missing")]
    Missing(&'static str),
    /// A field that this type of operation does not have.
    #[error("the field {0:?} does not belong to this type of operation")]
    Unexpected(&'static str),
    /// A field has a value that is not allowed.
    #[error("the field {0:?} has a value that is not allowed")]
    Field(&'static str),
    /// The signature is not base64url without padding in its only form.
    #[error("the signature is not base64url without padding, line breaks and stray bits")]
    SignatureEncoding,
    /// The signature is not 64 bytes long.
    #[error("a signature must be 64 bytes long, not {0}")]
    SignatureLength(usize),
    /// A limit is exceeded.
    #[error("the limit `{name}` of {limit} is exceeded: {found}")]
    Limit {
        /// The name in [`Limits`].
        name: &'static str,
        /// The limit.
        limit: usize,
        /// The length or number that exceeds it; of operations the first number that does.
        found: usize,
    },
}

impl From<serde_json::Error> for OperationFault {
    #[cold]
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        // `serde_json` has no other way to tell.
        if error.is_data() && error.to_string().starts_with("unknown field") {
            Self::UnknownField { line, column }
        } else {
            Self::Json { line, column }
        }
    }
}
