//! The keys under which lines are proved: from files, or looked up.

use std::path::PathBuf;

use atproto::syntax::{Did, DidBuf};
use clap::{Args, ValueHint};
use crypto::PublicKey;
use verify::identity::AccountKeys;

use crate::failure::Failure;
use crate::key_files::{account_keys, document_key, log_key};
use crate::mirrored_accounts::MirroredAccounts;
use crate::network::{LazyNetwork, NetworkArgs};

/// The arguments; one of them is required.
#[derive(Debug, Args)]
#[group(id = "line_keys", required = true, multiple = false)]
pub(super) struct LineKeysArgs {
    /// The accounts' keys: JSON, an object of DID to did:key, or an array of objects with did and didDoc.
    #[arg(long, value_name = "accounts.json|-", value_hint = ValueHint::FilePath)]
    keys: Option<PathBuf>,
    /// The DID document of the only account, a JSON file.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    did_doc: Option<PathBuf>,
    /// The log of the did:plc of the only account, a JSON file; it is verified too.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    plc_log: Option<PathBuf>,
    /// The mirror of a did:plc directory, a file of `plc mirror`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    plc_mirror: Option<PathBuf>,
    /// Look up the current key of every account: at the did:plc directory, or the host of a did:web.
    #[arg(long)]
    resolve: bool,
}

/// The keys of accounts.
pub(super) enum LineKeys<'a> {
    Many(AccountKeys),
    One(DidBuf, Box<PublicKey>),
    Mirrored(MirroredAccounts),
    LookedUp(LazyNetwork<'a>),
}

impl<'a> LineKeys<'a> {
    pub(super) fn of(args: &LineKeysArgs, network: &'a NetworkArgs) -> Result<Self, Failure> {
        let one = |(did, key)| Self::One(did, Box::new(key));
        let LineKeysArgs { keys, did_doc, plc_log, plc_mirror, .. } = args;
        match (keys, did_doc, plc_log, plc_mirror) {
            (Some(file), ..) => account_keys(file).map(Self::Many),
            (_, Some(file), ..) => document_key(file).map(one),
            (.., Some(file), _) => log_key(file).map(one),
            (.., Some(file)) => Ok(Self::Mirrored(MirroredAccounts::open(file)?)),
            _ => Ok(Self::LookedUp(LazyNetwork::new(network, &[], false))),
        }
    }

    /// The key of an account, if it has one.
    ///
    /// # Errors
    /// If it cannot be looked up at the moment.
    pub(super) fn get(&self, did: &str) -> Result<Option<PublicKey>, Failure> {
        let Ok(did) = Did::parse(did) else { return Ok(None) };
        match self {
            Self::Many(keys) => Ok(keys.get(did).and_then(|key| PublicKey::try_from(key).ok())),
            Self::One(of, key) => Ok((of.as_did() == did).then(|| (**key).clone())),
            Self::Mirrored(mirror) => Ok(mirror.history(did)?.and_then(|of| of.signing_key())),
            Self::LookedUp(network) => look_up(network, did),
        }
    }

    /// Where a missing key was looked for.
    pub(super) fn place(&self) -> &'static str {
        match self {
            Self::Many(_) => "the file of keys has none",
            Self::One(..) => "the given key is not that",
            Self::Mirrored(_) => "the mirror has none",
            Self::LookedUp(_) => "there is no key",
        }
    }
}

/// The key in the document of an account. One that does not exist has none.
fn look_up(network: &LazyNetwork<'_>, did: Did<'_>) -> Result<Option<PublicKey>, Failure> {
    let online = network.open()?;
    let account = online.runtime.block_on(online.network.resolver.account(did));
    match account.map_err(Failure::from) {
        Ok(account) => Ok(account.key.clone()),
        Err(Failure::Refused(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}
