//! What a log proves.

use atproto::plc::{AccountData, Operation};
use atproto::syntax::{Did, DidBuf};
use codec::Cid;
use crypto::PublicKey;

/// All operations of an account, and what is true of it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    pub(super) did: DidBuf,
    // The first is never undone; so the last that is not undone always exists.
    pub(super) operations: Vec<AcceptedOperation>,
    /// What the last operation that holds says.
    pub(super) data: Option<AccountData>,
}

/// An operation that was rightly made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedOperation {
    /// The operation.
    pub operation: Operation,
    /// Its CID.
    pub cid: Cid,
    /// Which of the rotation keys that were in force signed it, the first being 0.
    pub signer: usize,
    /// When the directory took it, in microseconds since 1970; not known from a plain log.
    pub created_at_micros: Option<i64>,
    /// Whether a later operation undid it.
    pub nullified: bool,
}

impl History {
    /// The account.
    pub fn did(&self) -> Did<'_> {
        self.did.as_did()
    }

    /// The operations, those that were undone among them, in the order of the log.
    pub fn operations(&self) -> &[AcceptedOperation] {
        &self.operations
    }

    /// What is true of the account now; `None` if its last operation is a tombstone.
    pub fn data(&self) -> Option<&AccountData> {
        self.data.as_ref()
    }

    /// Whether the account's last operation is a tombstone.
    pub fn is_tombstoned(&self) -> bool {
        self.data.is_none()
    }

    /// The key that signs the account's repository now, if there is one and it is a key that the AT
    /// Protocol knows.
    pub fn signing_key(&self) -> Option<PublicKey> {
        PublicKey::from_did_key(self.data()?.signing_key()?).ok()
    }
}
