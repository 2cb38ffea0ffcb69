//! The reasons for rejecting a checkpoint or a proof.

use crypto::SignatureFault;

use crate::commit::signature_code;

/// Why a checkpoint or a proof is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointRejection {
    /// Not the JSON of a checkpoint or a proof; or a field is missing, unknown, repeated, or not of its kind.
    #[error("not the JSON of {what}, at line {line}, column {column}")]
    Json {
        /// The expected document.
        what: &'static str,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A field has a value that is not allowed.
    #[error("the field {0:?} has a value that is not allowed")]
    Field(&'static str),
    /// The document is longer than the limit in bytes.
    #[error("longer than {0} bytes")]
    Length(usize),
    /// The checkpoint is signed by another key than the expected one.
    #[error("the checkpoint is of the key {0}, which is not the expected one")]
    Key(String),
    /// The signature is not the key's.
    #[error("the signature of the checkpoint: {0}")]
    Signature(SignatureFault),
    /// The checkpoint is dated after the time of its verification.
    #[error("the checkpoint is dated in the future")]
    Future,
    /// The checkpoint is older than the limit.
    #[error("the checkpoint is older than allowed")]
    Old,
    /// The proof is of another account.
    #[error("the proof is of another account")]
    Did,
    /// The place of a proof does not exist in a tree of the stated size, or its path has another length.
    #[error("the proof has a place or a length that the tree does not have")]
    Position,
    /// The path of a proof leads to another root.
    #[error("the history is not the one of the checkpoint: the path leads to another root")]
    Root,
    /// The neighbours in a proof of absence are not next to each other, or not around the account.
    #[error("the proof does not show that the account is absent")]
    Neighbours,
}

impl CheckpointRejection {
    /// The stable code of the broken rule.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Json { .. } => "checkpoint/json",
            Self::Field(_) => "checkpoint/field",
            Self::Length(_) => "checkpoint/length",
            Self::Key(_) => "checkpoint/key",
            Self::Signature(fault) => signature_code(*fault),
            Self::Future => "checkpoint/future",
            Self::Old => "checkpoint/old",
            Self::Did => "checkpoint/did",
            Self::Position => "checkpoint/position",
            Self::Root => "checkpoint/root",
            Self::Neighbours => "checkpoint/neighbours",
        }
    }

    #[cold]
    pub(super) fn json(what: &'static str, error: &serde_json::Error) -> Self {
        Self::Json { what, line: error.line(), column: error.column() }
    }
}
