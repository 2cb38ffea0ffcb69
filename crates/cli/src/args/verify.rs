//! What can be asked of a proof?

use std::path::PathBuf;

use clap::{Args, ValueHint};

use wireproof::net::http::Url;

use super::KeyCurve;
use super::network::{FetchArgs, NETWORK, NetworkArgs};

/// Proves that bytes are what an account signed: a whole repository, or what is at a path of one.
///
/// Of a repository every block must be what its CID says, the commit of version 3 and signed by the
/// account's key, the tree canonical, every node and record of it there, every key a path, every record
/// canonical DAG-CBOR.
///
/// A file is held against the key that is given with it. Of a handle or a DID the whole chain is gone
/// through: handle, DID, key and server by the DID's document, repository. Of the at:// URI of a record
/// it is proved that the record is there, or that none is. Exit code 0 if all holds, 1 if not, 3 if
/// somebody did not answer.
#[derive(Debug, Args)]
pub(crate) struct VerifyRepositoryArgs {
    /// What to prove. What exists, ends in .car or has a slash in it is a file, but for at:// URIs.
    #[arg(value_name = "FILE.car|HANDLE|DID|at://…", required_unless_present = "file")]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) target: Option<String>,
    /// A CAR file, whatever its name looks like.
    #[arg(long, value_name = "FILE.car", conflicts_with = "target", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Builds the tree anew from the records too, and compares the roots.
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Tells all faults instead of the first.
    #[arg(long)]
    pub(crate) all: bool,
    /// The proof as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) signer: SignerArgs,
    /// The curve of a --key that does not name it.
    #[arg(long, value_enum, requires = "key", help_heading = FILES)]
    pub(crate) curve: Option<KeyCurve>,
    /// Whose repository it must be [default: whose document or log it is, else anybody's].
    #[arg(long, value_name = "DID", help_heading = FILES)]
    pub(crate) did: Option<String>,
    /// Keeps what was fetched in a file, whatever comes of the proof.
    #[arg(long, value_name = "FILE.car", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = NETWORK)]
    pub(crate) save: Option<PathBuf>,
    /// Another server to fetch from than the account's own: a mirror or a relay. What it gives is
    /// proved all the same.
    #[arg(long, value_name = "URL", help_heading = NETWORK)]
    pub(crate) from: Option<Url>,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) fetch: FetchArgs,
}

/// Who must have signed.
#[derive(Debug, Args)]
#[group(id = "signer", multiple = false)]
pub(crate) struct SignerArgs {
    /// The account's key: a did:key, or any other form that `wireproof key` reads.
    #[arg(long, value_name = "KEY", help_heading = FILES)]
    pub(crate) key: Option<String>,
    /// The account's DID document, a JSON file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(crate) did_doc: Option<PathBuf>,
    /// The log of the account's did:plc, a JSON file, which is judged too.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(crate) plc_log: Option<PathBuf>,
    /// The keys of many accounts, as `wireproof frames verify` reads them: the one of the DID that the
    /// commit names is taken.
    #[arg(long, value_name = "accounts.json", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(crate) keys: Option<PathBuf>,
    /// Gives up that it is anybody's in particular: everything is proved but the signature.
    #[arg(long, help_heading = FILES)]
    pub(crate) without_signature: bool,
}

impl SignerArgs {
    /// Whether one of them is given.
    pub(crate) fn is_given(&self) -> bool {
        let Self { key, did_doc, plc_log, keys, without_signature } = self;
        let files = [did_doc, plc_log, keys];
        key.is_some() || *without_signature || files.iter().any(|file| file.is_some())
    }
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  wireproof verify atproto.com --save atproto.com.car
  wireproof verify at://atproto.com/app.bsky.actor.profile/self --json | jq .record.value
  wireproof verify repository.car --key did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme
  wireproof verify repository.car --plc-log log.json --rebuild
  wireproof verify repository.car --did-doc did.json --json | jq .records
  wireproof verify broken.car --keys accounts.json --all";

/// What belongs to files alone.
const FILES: &str = "Files";
