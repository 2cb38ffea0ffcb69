//! The key that must have signed a repository, from the arguments or from the account.

use atproto::syntax::{Did, DidBuf};
use crypto::PublicKey;
use verify::identity::AccountKeys;

use super::args::VerifyArgs;
use crate::failure::Failure;
use crate::key;
use crate::key_files::{account_keys, document_key, log_key};

/// The required account and key.
pub(super) struct Signer {
    did: Option<DidBuf>,
    keys: Keys,
}

enum Keys {
    One(Box<PublicKey>),
    /// Keys by account; the commit names the account.
    Many(AccountKeys),
    /// The signature is not checked.
    None,
}

impl Signer {
    pub(super) fn of(args: &VerifyArgs) -> Result<Self, Failure> {
        let (named, keys) = keys(args)?;
        let did = match &args.did {
            None => named,
            Some(text) => Some(required_did(text, named)?),
        };
        Ok(Self { did, keys })
    }

    /// The key for the record of an account, if one is named.
    pub(super) fn of_record(args: &VerifyArgs, did: Option<Did<'_>>) -> Result<Self, Failure> {
        let signer = Self::of(args)?;
        match (did, &signer.did) {
            (Some(did), Some(other)) if *other != did.to_buf() => Err(Failure::Usage(format!(
                "--record at://{did}/…: the given key belongs to {other}"
            ))),
            (Some(did), _) => Ok(Self { did: Some(did.to_buf()), ..signer }),
            (None, _) => Ok(signer),
        }
    }

    /// The key that must have signed the part of a repository for `option`.
    pub(super) fn part_key(&self, option: &str) -> Result<PublicKey, Failure> {
        let usage = |what: &str| Err(Failure::Usage(format!("{option}: {what}")));
        let key = match (&self.keys, self.did()) {
            (Keys::None, _) => return usage("this is proved under a key: give one"),
            (Keys::Many(_), None) => {
                return usage("--keys needs the account: --did, or at://DID/…");
            }
            (_, did) => self.key_of(did.unwrap_or_default()),
        };
        match key {
            Ok(Some(key)) => Ok(key),
            _ => Err(Failure::Refused(format!(
                "--keys has no key of {}",
                self.did().unwrap_or_default()
            ))),
        }
    }

    /// The account and the key that its DID document names.
    pub(super) fn of_account(did: DidBuf, key: PublicKey) -> Self {
        Self { did: Some(did), keys: Keys::One(Box::new(key)) }
    }

    /// The account that the repository must be of.
    pub(super) fn did(&self) -> Option<&str> {
        self.did.as_ref().map(|did| did.as_str())
    }

    /// The key that must have signed the commit of the account `did`; `None` if the signature is not
    /// checked.
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

/// The given keys have none for the account.
pub(super) struct NoKey;

/// The keys of the arguments, and their account if a document or log names it.
fn keys(args: &VerifyArgs) -> Result<(Option<DidBuf>, Keys), Failure> {
    let signer = &args.signer;
    if let Some(text) = &signer.key {
        let key = key::parse_option("--key", text, args.curve)?;
        return Ok((None, Keys::One(Box::new(key))));
    }
    if let Some(file) = &signer.did_doc {
        return document_key(file).map(one);
    }
    if let Some(file) = &signer.plc_log {
        return log_key(file).map(one);
    }
    match &signer.keys {
        Some(file) => Ok((None, Keys::Many(account_keys(file)?))),
        None => Ok((None, Keys::None)),
    }
}

fn one((did, key): (DidBuf, PublicKey)) -> (Option<DidBuf>, Keys) {
    (Some(did), Keys::One(Box::new(key)))
}

/// The account of `--did`, which must match the document or log.
fn required_did(text: &str, named: Option<DidBuf>) -> Result<DidBuf, Failure> {
    let usage = |what: String| Failure::Usage(format!("--did {text}: {what}"));
    let did: DidBuf = text.parse().map_err(|error| usage(format!("{error}")))?;
    match named {
        Some(named) if named != did => Err(usage(format!("the given key belongs to {named}"))),
        _ => Ok(did),
    }
}
