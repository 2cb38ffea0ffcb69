//! Verifies logs of `did:plc`, and derives the account's current data from them.
//!
//! The first operation determines the DID, which is its hash. Every later one names an earlier one as its
//! predecessor and is signed by one of the rotation keys that the predecessor lists. An operation whose
//! predecessor has a successor already nullifies that successor and all that follow it. That requires
//! a key of higher priority than the successor's, one that precedes it in the list, within 72 hours.
//!
//! All statements of an audit log are checked: CIDs, strictly increasing times, and which operations
//! were nullified. A plain log has neither times nor nullified operations, so every operation follows the
//! one before.
//!
//! A [`GrowingHistory`] verifies the operations of an account one after the other, as the export of a directory brings them.
//!
//! Source: the specification of did:plc, and its published test cases.
//!
//! ```
//! use wireproof::atproto::plc::{AccountData, UnsignedOperation, Update};
//! use wireproof::crypto::{Curve, SecretKey};
//! use wireproof::verify::plc::{Options, verify};
//!
//! let key = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
//! let data = AccountData { rotation_keys: vec![key.public_key().to_did_key()], ..AccountData::default() };
//! let genesis = UnsignedOperation::Update(Update { data, prev: None });
//! let sig = key.sign(&genesis.to_bytes());
//! let log = format!("[{}]", genesis.with_signature(sig).to_json());
//!
//! let history = verify(log.as_bytes(), &Options::default()).unwrap();
//! assert_eq!(history.did(), "did:plc:u3jn27rnoz7eb2po74tfande");
//! assert_eq!(history.data().unwrap().rotation_keys.len(), 1);
//! # Ok::<(), wireproof::crypto::KeyError>(())
//! ```

mod chain;
mod growing;
mod rejection;
#[cfg(test)]
mod tests;

use atproto::plc::{AccountData, AuditEntry, Limits, Log, Operation};
use atproto::syntax::{Did, DidBuf};
use crypto::PublicKey;

pub use chain::AcceptedOperation;
pub use growing::GrowingHistory;
pub use rejection::{PlcFault, PlcRejection};

use crate::Verified;
use chain::{OperationChain, StatedFields};

/// Limits of a log, and its expected account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The account of the log. Default: any.
    pub did: Option<DidBuf>,
    /// Limits of the operations.
    pub limits: Limits,
}

/// Verifies a log in either form of [`atproto::plc::Log`], as JSON.
///
/// # Errors
/// The first broken rule, and the index of its entry.
pub fn verify(json: &[u8], options: &Options) -> Result<Verified<History>, PlcRejection> {
    match Log::parse(json, &options.limits)? {
        Log::Audit(entries) => verify_audit_log(entries, options),
        Log::Plain(operations) => verify_plain_log(operations, options),
    }
}

/// Verifies an audit log.
///
/// # Errors
/// The first broken rule, and the index of its entry.
pub fn verify_audit_log(
    entries: Vec<AuditEntry>,
    options: &Options,
) -> Result<Verified<History>, PlcRejection> {
    let mut chain = OperationChain::new(&options.limits, options.did.as_ref());
    let mut claims = Vec::with_capacity(entries.len());
    for entry in entries {
        claims.push(entry.nullified);
        let stated = StatedFields { did: entry.did, cid: entry.cid, created_at: entry.created_at };
        chain.append(entry.operation, Some(&stated))?;
    }
    chain.check_nullified(&claims)?;
    History::of(chain)
}

/// Verifies a log of operations of which none was nullified, without a directory's statements.
///
/// # Errors
/// The first broken rule, and the index of its operation.
pub fn verify_plain_log(
    operations: Vec<Operation>,
    options: &Options,
) -> Result<Verified<History>, PlcRejection> {
    let mut chain = OperationChain::new(&options.limits, options.did.as_ref());
    for operation in operations {
        chain.append(operation, None)?;
    }
    History::of(chain)
}

/// All operations of an account, and its current data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    did: DidBuf,
    operations: Vec<AcceptedOperation>,
    data: Option<AccountData>,
}

impl History {
    fn of(chain: OperationChain<'_>) -> Result<Verified<Self>, PlcRejection> {
        let (did, operations, data) = chain.into_parts()?;
        Ok(Verified::vouch(Self { did, operations, data }))
    }

    /// The account.
    pub fn did(&self) -> Did<'_> {
        self.did.as_did()
    }

    /// The operations in the order of the log, nullified ones included.
    pub fn operations(&self) -> &[AcceptedOperation] {
        &self.operations
    }

    /// The account's current data; `None` after a tombstone.
    pub fn data(&self) -> Option<&AccountData> {
        self.data.as_ref()
    }

    /// Whether the account's last operation is a tombstone.
    pub fn is_tombstoned(&self) -> bool {
        self.data.is_none()
    }

    /// The key that signs the account's repository now, if there is one of a curve of the AT Protocol.
    pub fn signing_key(&self) -> Option<PublicKey> {
        PublicKey::from_did_key(self.data()?.signing_key()?).ok()
    }
}
