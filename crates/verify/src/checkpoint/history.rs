//! The entry of an account in the tree of a checkpoint: its DID and the hash of its history.
//!
//! ```text
//! history = SHA-256(0x02 || for every operation: its CID in binary, and 1 if it is nullified or 0)
//! entry   = DID || 0x00 || history
//! ```

use atproto::syntax::Did;
use codec::Cid;
use kernels::sha256::{self, Digest};

use crate::plc::History;

/// The hash of the operations of an account, in the order in which a directory accepted them.
pub fn history_hash(operations: impl IntoIterator<Item = (Cid, bool)>) -> Digest {
    let mut bytes = vec![2];
    for (cid, nullified) in operations {
        bytes.extend_from_slice(cid.as_bytes());
        bytes.push(u8::from(nullified));
    }
    sha256::digest(&bytes)
}

/// The hash of a verified history.
pub fn hash_of_history(history: &History) -> Digest {
    let operations = history.operations().iter();
    history_hash(operations.map(|accepted| (accepted.cid, accepted.nullified)))
}

/// The entry of an account.
pub fn entry(did: Did<'_>, history: &Digest) -> Vec<u8> {
    let mut entry = did.as_str().as_bytes().to_vec();
    entry.push(0);
    entry.extend_from_slice(history);
    entry
}
