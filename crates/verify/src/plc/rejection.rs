//! Why a log is refused.

use atproto::plc::{LogError, OperationFault};
use crypto::SignatureFault;

use crate::commit::signature_code;

/// Why a log is refused, and at which entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {index} of the log: {fault}")]
pub struct PlcRejection {
    /// How many entries come before it.
    pub index: usize,
    /// The rule.
    pub fault: PlcFault,
}

/// A rule of `did:plc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlcFault {
    /// The entry is not well formed, or beyond a limit.
    #[error("{0}")]
    Form(OperationFault),
    /// A log has at least one operation.
    #[error("there is no operation")]
    Empty,
    /// The first operation follows another.
    #[error("the first operation follows another")]
    Genesis,
    /// The first operation makes another DID, or the entry says that it is another's.
    #[error("the first operation makes another DID")]
    Did,
    /// The operation has another CID than the entry says.
    #[error("the operation has another CID")]
    Cid,
    /// A rotation key is not a did:key of a curve that may sign.
    #[error("rotation key {0} is no key")]
    RotationKey(usize),
    /// The operation follows none of those before it, or not the last one of a plain log.
    #[error("it follows none of the operations that it could follow")]
    Prev,
    /// The operation follows one that was undone.
    #[error("it follows an operation that was undone")]
    PrevNullified,
    /// The operation follows a tombstone.
    #[error("it follows a tombstone")]
    Tombstoned,
    /// There is no key that could have signed.
    #[error("no rotation key is left that could have signed it")]
    NoKey,
    /// None of the keys that could have signed has.
    #[error("none of the rotation keys signed it: {0}")]
    Signature(SignatureFault),
    /// The operation undoes others, but its key is not mightier than theirs.
    #[error("it undoes an operation whose key is as mighty as its own, or mightier")]
    Priority,
    /// The operation undoes others, but came more than 72 hours after the first of them.
    #[error("it undoes an operation that is older than 72 hours")]
    Window,
    /// The operation did not come after the one before it.
    #[error("it is not later than the entry before")]
    CreatedAt,
    /// The entry says that the operation was undone, and it was not, or the other way round.
    #[error("whether it was undone is not what the entry says")]
    Nullified,
}

impl PlcRejection {
    /// A name of the rule that stays the same.
    pub fn code(&self) -> &'static str {
        match self.fault {
            PlcFault::Form(fault) => form_code(fault),
            PlcFault::Empty => "plc/empty",
            PlcFault::Genesis => "plc/genesis",
            PlcFault::Did => "plc/did",
            PlcFault::Cid => "plc/cid",
            PlcFault::RotationKey(_) => "plc/rotation-key",
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
        OperationFault::Json { .. } => "plc/json",
        OperationFault::Type => "plc/type",
        OperationFault::SignatureEncoding => "plc/signature-encoding",
        OperationFault::SignatureLength(_) => "plc/signature-length",
        OperationFault::Limit(_) => "plc/limit",
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
