//! What can be asked of a proof?

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::KeyCurve;

/// Proves that a file is the whole repository that an account signed.
///
/// Every block must be what its CID says, the commit of version 3 and signed by the account's key, the
/// tree canonical, every node and record of it there, every key a path, every record canonical
/// DAG-CBOR. Exit code 0 if all holds, 1 if not.
#[derive(Debug, Args)]
pub(crate) struct VerifyRepositoryArgs {
    /// The repository: a CAR file, as a server exports it.
    #[arg(value_name = "FILE.car", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) signer: SignerArgs,
    /// The curve of a --key that does not name it.
    #[arg(long, value_enum, requires = "key")]
    pub(crate) curve: Option<KeyCurve>,
    /// Whose repository it must be [default: whose document or log it is, else anybody's].
    #[arg(long, value_name = "DID")]
    pub(crate) did: Option<String>,
    /// Builds the tree anew from the records too, and compares the roots.
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Tells all faults instead of the first.
    #[arg(long)]
    pub(crate) all: bool,
    /// The proof as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who must have signed.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct SignerArgs {
    /// The account's key: a did:key, or any other form that `wireproof key` reads.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The account's DID document, a JSON file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) did_doc: Option<PathBuf>,
    /// The log of the account's did:plc, a JSON file, which is judged too.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) plc_log: Option<PathBuf>,
    /// The keys of many accounts, as `wireproof frames verify` reads them: the one of the DID that the
    /// commit names is taken.
    #[arg(long, value_name = "accounts.json", value_hint = ValueHint::FilePath)]
    pub(crate) keys: Option<PathBuf>,
    /// Gives up that it is anybody's in particular: everything is proved but the signature.
    #[arg(long)]
    pub(crate) without_signature: bool,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  wireproof verify repository.car --key did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme
  wireproof verify repository.car --plc-log log.json --rebuild
  wireproof verify repository.car --did-doc did.json --json | jq .records
  wireproof verify broken.car --keys accounts.json --all";
