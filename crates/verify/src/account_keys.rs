//! Which key has each account, according to a file?
//!
//! Two forms are read, both JSON: an object of DIDs and their `did:key`s, and an array of objects with
//! `did` and `didDoc`, the DID document. In the array an account whose document has no key that can
//! be read is counted and left out: its events will be refused for the lack of a key.
//!
//! ```
//! use atproto::syntax::Did;
//! use wireproof_verify::account_keys::AccountKeys;
//!
//! let did = "did:plc:wq4aajammjtxdomz3e23667t";
//! let key = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme";
//! let keys = AccountKeys::from_json(format!(r#"{{"{did}": "{key}"}}"#).as_bytes())?;
//! assert!(keys.get(Did::parse(did)?).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::HashMap;

use atproto::did_document::{DidDocument, DidDocumentError, Options};
use atproto::syntax::{Did, DidBuf, SyntaxError};
use crypto::{CompressedKey, KeyError};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::identity;
use crate::sync::{AccountKey, KeySource};

/// The keys of accounts, by DID.
#[derive(Clone, Debug, Default)]
pub struct AccountKeys {
    keys: HashMap<DidBuf, CompressedKey>,
    without_key: usize,
}

/// Why a file does not tell the keys of accounts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountKeysError {
    /// Neither of the two forms.
    #[error(
        "neither an object of DIDs and keys nor an array of {{did, didDoc}}: line {line}, column {column}"
    )]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A name that is no DID.
    #[error("{name:?} is not a DID: {error}")]
    Did {
        /// The name.
        name: String,
        /// What is wrong with it.
        error: SyntaxError,
    },
    /// A text that is no key.
    #[error("the key of {did}: {error}")]
    Key {
        /// Whose it should be.
        did: DidBuf,
        /// What is wrong with it.
        error: KeyError,
    },
    /// A document that is none, or another account's.
    #[error("the DID document of {did}: {error}")]
    Document {
        /// Whose it should be.
        did: DidBuf,
        /// What is wrong with it.
        error: DidDocumentError,
    },
}

impl AccountKeys {
    /// Reads either form.
    ///
    /// # Errors
    /// If the text has neither form, or holds a DID, key or document that is none.
    pub fn from_json(json: &[u8]) -> Result<Self, AccountKeysError> {
        match json.trim_ascii_start().first() {
            Some(b'[') => Self::of_documents(parse(json)?),
            _ => Self::of_keys(parse(json)?),
        }
    }

    fn of_keys(keys: HashMap<String, String>) -> Result<Self, AccountKeysError> {
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

    fn of_documents(accounts: Vec<Account<'_>>) -> Result<Self, AccountKeysError> {
        let mut all = Self::default();
        for account in accounts {
            let did = did(&account.did)?;
            match account.key(did.as_did()) {
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

    /// How many accounts have a key.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no account has a key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many documents have no key that can be read.
    pub fn without_key(&self) -> usize {
        self.without_key
    }

    /// The accounts and their keys, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Did<'_>, &CompressedKey)> {
        self.keys.iter().map(|(did, key)| (did.as_did(), key))
    }
}

impl KeySource for AccountKeys {
    fn key(&self, did: &str) -> AccountKey {
        self.keys.get(did).copied().into()
    }
}

/// An entry of the array.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Account<'a> {
    did: String,
    #[serde(borrow)]
    did_doc: &'a RawValue,
}

impl Account<'_> {
    /// The key that the document names; `None` if that is missing or cannot be read.
    fn key(&self, did: Did<'_>) -> Result<Option<CompressedKey>, DidDocumentError> {
        let json = self.did_doc.get().as_bytes();
        let document = DidDocument::parse_for(did, json, &Options::default())?;
        Ok(identity::signing_key(&document).ok().flatten().map(|key| *key.as_compressed()))
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
    fn an_object_gives_each_account_its_key() {
        let keys = read(&format!(r#"{{"{DID}": "{KEY}"}}"#)).unwrap();
        assert_eq!((key_of(&keys).as_deref(), keys.len()), (Some(KEY), 1));
        assert_eq!(KeySource::key(&keys, "did:plc:other"), AccountKey::Unknown);
    }

    #[test]
    fn an_array_gives_the_keys_of_documents_and_counts_those_without() {
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
    fn what_is_no_did_key_or_document_is_refused_with_its_place() {
        let refused = |json: &str| read(json).unwrap_err();
        assert!(matches!(refused("7"), AccountKeysError::Json { line: 1, .. }));
        assert!(matches!(refused("{\"me\": 7}"), AccountKeysError::Json { .. }));
        assert!(matches!(refused(r#"{"me": "x"}"#), AccountKeysError::Did { .. }));
        let no_key = format!(r#"{{"{DID}": "did:key:zzz"}}"#);
        assert!(matches!(refused(&no_key), AccountKeysError::Key { .. }));
        let other = format!(r#"[{{"did": "{DID}", "didDoc": {{"id": "did:plc:other"}}}}]"#);
        let error = refused(&other);
        assert!(matches!(error, AccountKeysError::Document { .. }), "{error}");
    }
}
