//! The signing keys of accounts: from a DID document ([`signing_key`]), or from a file of many accounts
//! ([`AccountKeys`]).

use std::collections::HashMap;

use atproto::did_document::{DidDocument, DidDocumentError, Options, SigningKey};
use atproto::syntax::{Did, DidBuf, SyntaxError};
use crypto::{CompressedKey, KeyError, PublicKey};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::sync::{AccountKey, KeySource};

/// The key that signs the account's repository; `None` if the document names none.
///
/// # Errors
/// If the document's text for the key is malformed.
///
/// ```
/// use wireproof::atproto::did_document::{DidDocument, Options};
/// use wireproof::verify::identity;
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
/// let key = identity::signing_key(&document)?.ok_or("no signing key")?;
/// assert!(key.to_did_key().ends_with("zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn signing_key(document: &DidDocument) -> Result<Option<PublicKey>, KeyError> {
    document.signing_key().map(to_public_key).transpose()
}

/// The key of a verification method.
///
/// # Errors
/// If its type is unknown, or its text is not a key of that type.
pub fn to_public_key(key: &SigningKey) -> Result<PublicKey, KeyError> {
    PublicKey::from_verification_method(&key.kind, &key.multibase)
}

/// The keys of accounts by DID, read from a JSON file of one of two forms: an object of DIDs and their
/// `did:key`s, or an array of objects with `did` and `didDoc`, the DID document. In the array an
/// account whose document has no readable key is counted and left out: its events will be rejected for
/// lack of a key.
///
/// ```
/// use wireproof::atproto::syntax::Did;
/// use wireproof::verify::identity::AccountKeys;
///
/// let did = "did:plc:wq4aajammjtxdomz3e23667t";
/// let key = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme";
/// let keys = AccountKeys::from_json(format!(r#"{{"{did}": "{key}"}}"#).as_bytes())?;
/// assert!(keys.get(Did::parse(did)?).is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct AccountKeys {
    keys: HashMap<DidBuf, CompressedKey>,
    without_key: usize,
}

/// Why a file of account keys cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountKeysError {
    /// The JSON has neither of the two forms.
    #[error(
        "expected an object of DIDs and keys or an array of {{did, didDoc}}: line {line}, column {column}"
    )]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A name is not a DID.
    #[error("{name:?} is not a DID: {error}")]
    Did {
        /// The name.
        name: String,
        /// The syntax error.
        error: SyntaxError,
    },
    /// A text is not a key.
    #[error("the key of {did}: {error}")]
    Key {
        /// The account.
        did: DidBuf,
        /// Why the text is not a key.
        error: KeyError,
    },
    /// A DID document is malformed, or another account's.
    #[error("the DID document of {did}: {error}")]
    Document {
        /// The account.
        did: DidBuf,
        /// The error of the document.
        error: DidDocumentError,
    },
}

impl AccountKeys {
    /// Reads either form.
    ///
    /// # Errors
    /// If the text has neither form, or holds a malformed DID, key or document.
    pub fn from_json(json: &[u8]) -> Result<Self, AccountKeysError> {
        match json.trim_ascii_start().first() {
            Some(b'[') => Self::from_documents(parse(json)?),
            _ => Self::from_keys(parse(json)?),
        }
    }

    fn from_keys(keys: HashMap<String, String>) -> Result<Self, AccountKeysError> {
        let read = |(name, text): (String, String)| {
            let did = did(&name)?;
            match CompressedKey::from_did_key(&text) {
                Ok(key) => Ok((did, key)),
                Err(error) => Err(AccountKeysError::Key { did, error }),
            }
        };
        let keys = keys.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { keys, without_key: 0 })
    }

    fn from_documents(entries: Vec<DocumentEntry<'_>>) -> Result<Self, AccountKeysError> {
        let mut all = Self::default();
        for entry in entries {
            let did = did(&entry.did)?;
            match entry.key(did.as_did()) {
                Ok(Some(key)) => drop(all.keys.insert(did, key)),
                Ok(None) => all.without_key += 1,
                Err(error) => return Err(AccountKeysError::Document { did, error }),
            }
        }
        Ok(all)
    }

    /// The key of the account with this DID.
    pub fn get(&self, did: Did<'_>) -> Option<CompressedKey> {
        self.keys.get(did.as_str()).copied()
    }

    /// Number of accounts with a key.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no account has a key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Number of documents without a readable key.
    pub fn without_key(&self) -> usize {
        self.without_key
    }

    /// The accounts and their keys, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Did<'_>, &CompressedKey)> {
        self.keys.iter().map(|(did, key)| (did.as_did(), key))
    }
}

impl KeySource for AccountKeys {
    fn key(&self, did: &str) -> AccountKey {
        self.keys.get(did).copied().into()
    }
}

/// An element of the array.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DocumentEntry<'a> {
    did: String,
    #[serde(borrow)]
    did_doc: &'a RawValue,
}

impl DocumentEntry<'_> {
    /// The key that the document names; `None` if it is missing or malformed.
    fn key(&self, did: Did<'_>) -> Result<Option<CompressedKey>, DidDocumentError> {
        let json = self.did_doc.get().as_bytes();
        let document = DidDocument::parse_for(did, json, &Options::default())?;
        Ok(signing_key(&document).ok().flatten().map(|key| *key.as_compressed()))
    }
}

fn did(name: &str) -> Result<DidBuf, AccountKeysError> {
    name.parse().map_err(|error| AccountKeysError::Did { name: name.to_owned(), error })
}

fn parse<'j, T: Deserialize<'j>>(json: &'j [u8]) -> Result<T, AccountKeysError> {
    serde_json::from_slice(json)
        .map_err(|error| AccountKeysError::Json { line: error.line(), column: error.column() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DID: &str = "did:plc:wq4aajammjtxdomz3e23667t";
    const KEY: &str = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme";

    fn read(json: &str) -> Result<AccountKeys, AccountKeysError> {
        AccountKeys::from_json(json.as_bytes())
    }

    fn key_of(keys: &AccountKeys) -> Option<String> {
        keys.get(Did::parse(DID).unwrap()).map(|key| key.to_did_key())
    }

    #[test]
    fn an_object_maps_each_account_to_its_key() {
        let keys = read(&format!(r#"{{"{DID}": "{KEY}"}}"#)).unwrap();
        assert_eq!((key_of(&keys).as_deref(), keys.len()), (Some(KEY), 1));
        assert_eq!(KeySource::key(&keys, "did:plc:other"), AccountKey::Unknown);
        assert!(!keys.is_empty() && keys.without_key() == 0);
        let none = read("{}").unwrap();
        assert_eq!((none.is_empty(), none.len()), (true, 0));
    }

    #[test]
    fn an_array_yields_the_keys_of_documents_and_counts_those_without() {
        let multibase = KEY.strip_prefix("did:key:").unwrap();
        let json = format!(
            r##" [{{"did": "{DID}", "handle": "a.test", "didDoc": {{"id": "{DID}",
            "verificationMethod": [{{"id": "#atproto", "type": "Multikey", "controller": "{DID}",
            "publicKeyMultibase": "{multibase}"}}]}}}},
            {{"did": "did:web:b.test", "didDoc": {{"id": "did:web:b.test"}}}}]"##
        );
        let keys = read(&json).unwrap();
        assert_eq!(key_of(&keys).as_deref(), Some(KEY));
        assert_eq!((keys.len(), keys.without_key()), (1, 1));
    }

    #[test]
    fn a_malformed_did_key_or_document_is_an_error_that_names_it() {
        let error_of = |json: &str| read(json).unwrap_err();
        assert!(matches!(error_of("7"), AccountKeysError::Json { line: 1, .. }));
        assert!(matches!(error_of("{\"me\": 7}"), AccountKeysError::Json { .. }));
        assert!(matches!(error_of(r#"{"me": "x"}"#), AccountKeysError::Did { .. }));
        let no_key = format!(r#"{{"{DID}": "did:key:zzz"}}"#);
        assert!(matches!(error_of(&no_key), AccountKeysError::Key { .. }));
        let other = format!(r#"[{{"did": "{DID}", "didDoc": {{"id": "did:plc:other"}}}}]"#);
        let error = error_of(&other);
        assert!(matches!(error, AccountKeysError::Document { .. }), "{error}");
    }
}
