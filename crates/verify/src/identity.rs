//! Which key does a DID document give its account?

use atproto::did_document::{DidDocument, SigningKey};
use crypto::{KeyError, PublicKey};

/// The key that signs the account's repository. `None` if the document has none, and is then of no
/// account.
///
/// # Errors
/// If the text that the document has for it is no key.
///
/// ```
/// use atproto::did_document::{DidDocument, Options};
/// use wireproof_verify::identity;
///
/// let document = r##"{
///     "id": "did:web:example.com",
///     "verificationMethod": [{
///         "id": "did:web:example.com#atproto",
///         "type": "Multikey",
///         "controller": "did:web:example.com",
///         "publicKeyMultibase": "zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme"
///     }]
/// }"##;
/// let document = DidDocument::parse(document.as_bytes(), &Options::default())?;
/// let key = identity::signing_key(&document)?.ok_or("an account of nobody")?;
/// assert!(key.to_did_key().ends_with("zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
