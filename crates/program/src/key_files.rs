//! Keys of accounts in files: DID documents, did:plc logs, and lists of keys.

use std::path::Path;

use atproto::did_document::{self, DidDocument};
use atproto::syntax::DidBuf;
use crypto::PublicKey;
use verify::identity::{self, AccountKeys};
use verify::plc;

use crate::failure::Failure;
use crate::files;

/// The account of a DID document in a file, and its key.
///
/// # Errors
/// If it cannot be read, is not valid, or has no key.
pub fn document_key(file: &Path) -> Result<(DidBuf, PublicKey), Failure> {
    let options = did_document::Options::default();
    let document = files::read_document(file, options.max_bytes)?;
    let document =
        DidDocument::parse(&document, &options).map_err(|error| Failure::refused(file, error))?;
    match identity::signing_key(&document).map_err(|error| Failure::refused(file, error))? {
        Some(key) => Ok((document.did().to_buf(), key)),
        None => Err(Failure::refused(file, "the DID document has no signing key")),
    }
}

/// The account of a did:plc log in a file, which is verified, and its key.
///
/// # Errors
/// If it cannot be read, is not valid, or ends without a key.
pub fn log_key(file: &Path) -> Result<(DidBuf, PublicKey), Failure> {
    let options = plc::Options::default();
    let log = files::read_document(file, options.limits.log_bytes)?;
    let history = plc::verify(&log, &options)
        .map_err(|error| Failure::refused(file, format_args!("({}) {error}", error.code())))?;
    match history.signing_key() {
        Some(key) => Ok((history.did().to_buf(), key)),
        None if history.is_tombstoned() => {
            Err(Failure::refused(file, "the identity is tombstoned"))
        }
        None => Err(Failure::refused(file, "the log has no signing key")),
    }
}

/// Reads a file of keys by account.
///
/// # Errors
/// If it cannot be read, or is not valid.
pub fn account_keys(file: &Path) -> Result<AccountKeys, Failure> {
    AccountKeys::from_json(&files::read_document(file, usize::MAX)?)
        .map_err(|error| Failure::refused(file, error))
}
