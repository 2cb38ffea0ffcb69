//! The reasons for rejecting a log.

use atproto::plc::{LogError, OperationFault};
use crypto::{KeyError, SignatureFault};

use crate::commit::signature_code;

/// Why a log is rejected, and at which entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{fault}", place(*index, fault))]
pub struct PlcRejection {
    /// Index of the entry, from 0.
    pub index: usize,
    /// The broken rule.
    pub fault: PlcFault,
}

/// A broken rule of `did:plc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlcFault {
    /// The entry is malformed, or exceeds a limit.
    #[error("{0}")]
    Form(OperationFault),
    /// The log has no operation.
    #[error("the log has no operation")]
    Empty,
    /// The first operation names a predecessor.
    #[error("the first operation must not have `prev`")]
    Genesis,
    /// The first operation determines another DID than the entry or the caller.
    #[error("the first operation determines another DID than stated or requested")]
    Did,
    /// A later entry states another DID than the first operation determines.
    #[error("the entry is of another DID than the first operation")]
    EntryDid,
    /// The operation has another CID than the entry states.
    #[error("the operation has another CID than stated")]
    Cid,
    /// A rotation key is not a did:key of a curve that may sign.
    #[error("rotation key {index}: {error}")]
    RotationKey {
        /// Index among the rotation keys.
        index: usize,
        /// Why it is not a key that may sign.
        error: KeyError,
    },
    /// The predecessor is not an earlier operation, or in a plain log not the last one.
    #[error("`prev` is not an operation that it can follow")]
    Prev,
    /// The predecessor was nullified.
    #[error("`prev` is a nullified operation")]
    PrevNullified,
    /// The predecessor is a tombstone.
    #[error("`prev` is a tombstone")]
    Tombstoned,
    /// The predecessor lists no rotation key.
    #[error("no rotation key is left that may sign it")]
    NoKey,
    /// The signature is not one of the rotation keys that may sign.
    #[error("not signed by a rotation key: {0}")]
    Signature(SignatureFault),
    /// The operation nullifies others without a key of higher priority.
    #[error("it nullifies an operation whose key has the same or a higher priority")]
    Priority,
    /// The operation nullifies others more than 72 hours after the first of them.
    #[error("it nullifies an operation that is older than 72 hours")]
    Window,
    /// The time is not later than the previous entry's.
    #[error("`createdAt` is not later than that of the entry before")]
    CreatedAt,
    /// The entry states `nullified` wrongly.
    #[error("`nullified` is not what the later operations determine")]
    Nullified,
}

/// The place of a fault, unless it is the log as a whole.
fn place(index: usize, fault: &PlcFault) -> String {
    match fault {
        PlcFault::Empty | PlcFault::Form(OperationFault::NotAList) => String::new(),
        _ => format!("entry {index} of the log: "),
    }
}

impl PlcRejection {
    /// The stable code of the broken rule.
    pub fn code(&self) -> &'static str {
        match self.fault {
            PlcFault::Form(fault) => form_code(fault),
            PlcFault::Empty => "plc/empty",
            PlcFault::Genesis => "plc/genesis",
            PlcFault::Did | PlcFault::EntryDid => "plc/did",
            PlcFault::Cid => "plc/cid",
            PlcFault::RotationKey { .. } => "plc/rotation-key",
            PlcFault::Prev => "plc/prev",
            PlcFault::PrevNullified => "plc/prev-nullified",
            PlcFault::Tombstoned => "plc/tombstoned",
            PlcFault::NoKey => "signature/no-key",
            PlcFault::Signature(fault) => signature_code(fault),
            PlcFault::Priority => "plc/priority",
            PlcFault::Window => "plc/window",
            PlcFault::CreatedAt => "plc/created-at",
            PlcFault::Nullified => "plc/nullified",
        }
    }
}

fn form_code(fault: OperationFault) -> &'static str {
    match fault {
        OperationFault::NotAList
        | OperationFault::UnknownField { .. }
        | OperationFault::Json { .. } => "plc/json",
        OperationFault::Type => "plc/type",
        OperationFault::SignatureEncoding => "plc/signature-encoding",
        OperationFault::SignatureLength(_) => "plc/signature-length",
        OperationFault::Limit { .. } => "plc/limit",
        _ => "plc/field",
    }
}

impl From<LogError> for PlcRejection {
    fn from(error: LogError) -> Self {
        Self { index: error.index, fault: PlcFault::Form(error.fault) }
    }
}

#[cold]
#[inline(never)]
pub(super) fn reject<T>(index: usize, fault: PlcFault) -> Result<T, PlcRejection> {
    Err(PlcRejection { index, fault })
}
