//! Who must have signed, according to the arguments?

use std::path::Path;

use wireproof::atproto::did_document::{self, DidDocument};
use wireproof::atproto::syntax::{Did, DidBuf};
use wireproof::crypto::PublicKey;
use wireproof::verify::account_keys::AccountKeys;
use wireproof::verify::{identity, plc};

use crate::args::verify::VerifyRepositoryArgs;
use crate::failure::Failure;
use crate::key;

/// Whose signature is wanted.
pub(super) struct Signer {
    did: Option<DidBuf>,
    keys: Keys,
}

enum Keys {
    /// One account's.
    One(Box<PublicKey>),
    /// That of the account which the commit names.
    Many(AccountKeys),
    /// Nobody's.
    None,
}

impl Signer {
    pub(super) fn of(args: &VerifyRepositoryArgs) -> Result<Self, Failure> {
        let (named, keys) = keys(args)?;
        let did = match &args.did {
            None => named,
            Some(text) => Some(asked(text, named)?),
        };
        Ok(Self { did, keys })
    }

    /// The account and the key that its DID document names.
    pub(super) fn of_account(did: DidBuf, key: PublicKey) -> Self {
        Self { did: Some(did), keys: Keys::One(Box::new(key)) }
    }

    /// Whose repository it must be.
    pub(super) fn did(&self) -> Option<&str> {
        self.did.as_ref().map(|did| did.as_str())
    }

    /// The key that must have signed the commit of the account `did`; `None` if no signature is
    /// wanted.
    pub(super) fn key_of(&self, did: &str) -> Result<Option<PublicKey>, NoKey> {
        match &self.keys {
            Keys::One(key) => Ok(Some((**key).clone())),
            Keys::Many(keys) => match Did::parse(did).ok().and_then(|did| keys.get(did)) {
                Some(key) => PublicKey::try_from(key).map(Some).map_err(|_| NoKey),
                None => Err(NoKey),
            },
            Keys::None => Ok(None),
        }
    }
}

/// The account's key is not among those that were given.
pub(super) struct NoKey;

/// The keys that the arguments name, and whose they are if they say so.
fn keys(args: &VerifyRepositoryArgs) -> Result<(Option<DidBuf>, Keys), Failure> {
    let signer = &args.signer;
    if let Some(text) = &signer.key {
        return Ok((None, Keys::One(Box::new(key::parse(text, args.curve)?))));
    }
    if let Some(file) = &signer.did_doc {
        return of_document(file);
    }
    if let Some(file) = &signer.plc_log {
        return of_log(file);
    }
    match &signer.keys {
        Some(file) => Ok((None, Keys::Many(account_keys(file)?))),
        None => Ok((None, Keys::None)),
    }
}

fn of_document(file: &Path) -> Result<(Option<DidBuf>, Keys), Failure> {
    let refused = |what: &dyn std::fmt::Display| refused(file, what);
    let document = DidDocument::parse(&read(file)?, &did_document::Options::default())
        .map_err(|error| refused(&error))?;
    match identity::signing_key(&document).map_err(|error| refused(&error))? {
        Some(key) => Ok((Some(document.did().to_buf()), Keys::One(Box::new(key)))),
        None => Err(refused(&"the document names no key for repositories")),
    }
}

fn of_log(file: &Path) -> Result<(Option<DidBuf>, Keys), Failure> {
    let refused = |what: &dyn std::fmt::Display| refused(file, what);
    let history = plc::verify(&read(file)?, &plc::Options::default())
        .map_err(|error| refused(&format_args!("({}) {error}", error.code())))?;
    match history.signing_key() {
        Some(key) => Ok((Some(history.did().to_buf()), Keys::One(Box::new(key)))),
        None if history.is_tombstoned() => Err(refused(&"the identity is tombstoned")),
        None => Err(refused(&"the log names no key for repositories")),
    }
}

/// Reads a file with the keys of many accounts.
pub(crate) fn account_keys(file: &Path) -> Result<AccountKeys, Failure> {
    AccountKeys::from_json(&read(file)?).map_err(|error| refused(file, &error))
}

/// The account that was asked for, which must not be another than the one whose key was given.
fn asked(text: &str, named: Option<DidBuf>) -> Result<DidBuf, Failure> {
    let usage = |what: String| Failure::Usage(format!("--did {text}: {what}"));
    let did: DidBuf = text.parse().map_err(|error| usage(format!("{error}")))?;
    match named {
        Some(named) if named != did => Err(usage(format!("the key given is that of {named}"))),
        _ => Ok(did),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(Failure::file(file))
}

fn refused(file: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::Refused(format!("{}: {what}", file.display()))
}
