//! Which key does a DID document give its account?

use atproto::did_document::{DidDocument, SigningKey};
use crypto::{KeyError, PublicKey};

/// The key that signs the account's repository. `None` if the document has none, and is then of no
/// account.
///
/// # Errors
/// If the text that the document has for it is no key.
pub fn signing_key(document: &DidDocument) -> Result<Option<PublicKey>, KeyError> {
    document.signing_key().map(to_public_key).transpose()
}

/// The key that a verification method spells.
///
/// # Errors
/// If its type is not known, or the text is no key of that type.
pub fn to_public_key(key: &SigningKey) -> Result<PublicKey, KeyError> {
    PublicKey::from_verification_method(&key.kind, &key.multibase)
}
