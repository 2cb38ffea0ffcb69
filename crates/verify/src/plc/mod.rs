//! Logs of `did:plc`: do these operations make this account, and what is true of it now?
//!
//! The first operation makes the DID, which is its hash. Each later one follows an earlier one and is
//! signed by one of the rotation keys that the earlier one names. Whoever follows an operation that has
//! a successor already undoes that successor and all behind it. That takes a mightier key than the
//! successor's, one that stands before it in the list, and it takes no longer than 72 hours.
//!
//! An audit log is held to all that it says: CIDs, times that only grow, and which operations were
//! undone. A plain log has neither times nor undone operations, so each follows the one before.
//!
//! Source: the specification of did:plc, and the cases that it publishes.
//!
//! ```
//! use atproto::plc::{AccountData, UnsignedOperation, Update};
//! use crypto::{Curve, SecretKey};
//! use wireproof_verify::plc::{Options, verify};
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
//! # Ok::<(), crypto::KeyError>(())
//! ```

mod chain;
mod history;
mod rejection;
#[cfg(test)]
mod tests;

use atproto::plc::{AuditEntry, Limits, Log, Operation};
use atproto::syntax::DidBuf;

pub use history::{AcceptedOperation, History};
pub use rejection::{PlcFault, PlcRejection};

use crate::Verified;
use chain::{Chain, Stated};
use rejection::reject;

/// What to expect of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whose log it must be; any account's by default.
    pub did: Option<DidBuf>,
    /// How much there may be.
    pub limits: Limits,
}

/// Judges a log in either form: [`atproto::plc::Log`].
///
/// # Errors
/// The first rule that is broken, and by which entry.
pub fn verify(json: &[u8], options: &Options) -> Result<Verified<History>, PlcRejection> {
    match Log::parse(json, &options.limits)? {
        Log::Audit(entries) => verify_audit_log(entries, options),
        Log::Plain(operations) => verify_plain_log(operations, options),
    }
}

/// Judges an audit log.
///
/// # Errors
/// The first rule that is broken, and by which entry.
pub fn verify_audit_log(
    entries: Vec<AuditEntry>,
    options: &Options,
) -> Result<Verified<History>, PlcRejection> {
    let mut chain = Chain::default();
    let mut claims = Vec::with_capacity(entries.len());
    for entry in entries {
        claims.push(entry.nullified);
        let stated = Stated { did: entry.did, cid: entry.cid, created_at: entry.created_at };
        chain.append(entry.operation, Some(&stated), options)?;
    }
    chain.check_nullified(&claims)?;
    Ok(Verified::vouch(chain.into_history()?))
}

/// Judges a log of operations that hold, without what a directory says of them.
///
/// # Errors
/// The first rule that is broken, and by which operation.
pub fn verify_plain_log(
    operations: Vec<Operation>,
    options: &Options,
) -> Result<Verified<History>, PlcRejection> {
    let mut chain = Chain::default();
    for operation in operations {
        chain.append(operation, None, options)?;
    }
    Ok(Verified::vouch(chain.into_history()?))
}
