//! Why text is no operation, or no log of them.

/// Why an entry of a log is refused, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {index} of the log: {fault}")]
pub struct LogError {
    /// How many entries come before it.
    pub index: usize,
    /// What is wrong.
    pub fault: OperationFault,
}

/// What is wrong with an operation, or with an entry of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationFault {
    /// Not JSON; or a field is unknown, repeated, or not of its kind.
    #[error("not the JSON of an operation, at line {line}, column {column}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// `type` is none that is known.
    #[error("no operation has this type")]
    Type,
    /// A field that an operation of this type has is not there.
    #[error("the field {0:?} is missing")]
    Missing(&'static str),
    /// A field is there that an operation of this type does not have.
    #[error("the field {0:?} does not belong to this type of operation")]
    Unexpected(&'static str),
    /// A field holds what it may not.
    #[error("the field {0:?} holds what it may not")]
    Field(&'static str),
    /// The signature is not base64url without padding in its only form.
    #[error("the signature is not base64url without padding, line breaks and stray bits")]
    SignatureEncoding,
    /// The signature is not 64 bytes long.
    #[error("a signature is 64 bytes long, this is {0}")]
    SignatureLength(usize),
    /// There is more than the limit of this name allows.
    #[error("beyond the limit {0:?}")]
    Limit(&'static str),
}

impl From<serde_json::Error> for OperationFault {
    #[cold]
    fn from(error: serde_json::Error) -> Self {
        Self::Json { line: error.line(), column: error.column() }
    }
}
