//! Arguments of `wireproof verify`, and their subjects: a file, an account or a record.

use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use atproto::syntax::{
    AtIdentifier, AtUri, CollectionPatternBuf, Did, Nsid, RecordKey, RepoPath, SyntaxError,
};
use clap::{Args, ValueHint};
use net::http::Url;

use crate::batch::JobsArgs;
use crate::failure::Failure;
use crate::key::KeyCurve;
use crate::network::{DownloadArgs, NETWORK, NetworkArgs};
use crate::{files, names};

/// Verify that an account signed a repository, or that a record is in it or absent from it.
///
/// In a repository every block must match its CID, the commit must be of version 3 and signed by the
/// account's key, the tree must be canonical with all its nodes and records, and every key must be a record
/// path. A record that is not canonical DAG-CBOR is reported as invalid, or refused with --strict-records.
///
/// A file is verified with the key that you give. With --record, the file is the slice of one record, as
/// com.atproto.sync.getRecord returns it, and proves that the record is present or absent. With --collection, it is the slice of
/// whole collections, as --save saves it.
///
/// Standard input (-), pipes and downloads without --save are verified as they are read.
///
/// A handle or a DID is verified end to end: handle, DID, key and server by the DID document, repository. For the at://
/// URI of a record or a collection, only its slice is downloaded.
///
/// Several arguments, a folder (all its .car files) and a list (@FILE, one argument per line) are verified on all
/// cores. The output has one line per argument, in their order.
///
/// Exit code 0 if everything holds (for a record, a proof of its presence or absence), 1 if not, 2 for a mistyped key
/// or argument, 3 if a host did not respond.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// Accounts, records or files to verify; - is standard input. An existing path is a file, and so is text that ends
    /// in .car or has a slash, except at:// URIs.
    #[arg(
        value_name = "FILE.car|FOLDER|HANDLE|DID|at://…|@LIST|-",
        required_unless_present = "file"
    )]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(super) targets: Vec<String>,
    /// A CAR file of any name.
    #[arg(long, value_name = "FILE.car|-", conflicts_with = "targets", value_hint = ValueHint::FilePath)]
    pub(super) file: Option<PathBuf>,
    /// Verify the file as the slice of this record: its at:// URI with the DID of the account, or
    /// `collection/rkey`.
    #[arg(long, value_name = "at://DID/…|PATH", help_heading = FILES)]
    record: Option<String>,
    /// Prove these collections alone, whole: their records, and that they have no others; app.bsky.graph.* for a prefix. Of an
    /// account, only the part of the repository that proves this is downloaded; a file can be such a part.
    #[arg(long = "collection", value_name = "NSID,…", value_delimiter = ',')]
    collections: Vec<String>,
    /// Rebuild the tree from the records too, and compare the roots.
    #[arg(long)]
    pub(super) rebuild: bool,
    /// Refuse invalid records: not canonical DAG-CBOR, not a map, or over 1 MiB [default: report them, and prove the
    /// rest].
    #[arg(long)]
    pub(super) strict_records: bool,
    /// Report every fault as it is found [default: the first].
    #[arg(long)]
    pub(super) all: bool,
    /// Print one JSON document; for several arguments, one per line.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) jobs: JobsArgs,
    #[command(flatten)]
    pub(super) signer: SignerArgs,
    /// The curve of a --key that does not name it.
    #[arg(long, value_enum, requires = "key", help_heading = FILES)]
    pub(super) curve: Option<KeyCurve>,
    /// The account that must own the repository [default: the account of the document or log, else any].
    #[arg(long, value_name = "DID", help_heading = FILES)]
    pub(super) did: Option<String>,
    /// Save the download to a file, even if it is refused.
    #[arg(long, value_name = "FILE.car", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = NETWORK)]
    pub(super) save: Option<PathBuf>,
    /// Server to download from: a mirror or a relay. The proof is the same [default: the account's own].
    #[arg(long, value_name = "URL", help_heading = NETWORK)]
    pub(super) from: Option<Url>,
    #[command(flatten)]
    pub(super) network: NetworkArgs,
    #[command(flatten)]
    pub(super) download: DownloadArgs,
}

/// The key that must have signed.
#[derive(Debug, Args)]
#[group(id = "signer", multiple = false)]
pub(super) struct SignerArgs {
    /// The account's key: a did:key, or any other encoding that `wireproof key` reads.
    #[arg(long, value_name = "KEY", help_heading = FILES)]
    pub(super) key: Option<String>,
    /// The account's DID document, a JSON file.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(super) did_doc: Option<PathBuf>,
    /// The log of the account's did:plc, a JSON file; it is verified too.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(super) plc_log: Option<PathBuf>,
    /// The keys of many accounts, in the format of `wireproof frames verify`; the DID of the commit
    /// selects the key.
    #[arg(long, value_name = "accounts.json|-", value_hint = ValueHint::FilePath, help_heading = FILES)]
    pub(super) keys: Option<PathBuf>,
    /// Verify everything except the signature.
    #[arg(long, help_heading = FILES)]
    pub(super) without_signature: bool,
}

impl SignerArgs {
    pub(super) fn is_given(&self) -> bool {
        let Self { key, did_doc, plc_log, keys, without_signature } = self;
        let files = [did_doc, plc_log, keys];
        key.is_some() || *without_signature || files.iter().any(|file| file.is_some())
    }
}

/// The subject of a verification.
pub(super) enum Target<'a> {
    /// A repository in a file.
    File(&'a Path),
    /// The slice of a record in a file.
    Slice(&'a Path, SliceRecord<'a>),
    /// The repository of an account.
    Account(AtIdentifier<'a>),
    /// A record of an account's repository.
    Record(RecordAddress<'a>),
    /// Collections of an account's repository.
    Collections(AtIdentifier<'a>, Vec<CollectionPatternBuf>),
    /// The slice of some collections in a file.
    CollectionsSlice(&'a Path, Vec<CollectionPatternBuf>),
}

/// The account and path of a record.
pub(super) struct RecordAddress<'a> {
    pub(super) who: AtIdentifier<'a>,
    pub(super) collection: Nsid<'a>,
    pub(super) rkey: RecordKey<'a>,
}

/// The record that a file proves, or whose absence it proves.
pub(super) struct SliceRecord<'a> {
    /// The account, if it is named.
    pub(super) did: Option<Did<'a>>,
    pub(super) path: RepoPath<'a>,
}

impl<'a> SliceRecord<'a> {
    fn parse(text: &'a str) -> Result<Self, Failure> {
        let usage = |what: &str| Failure::Usage(format!("--record {text}: {what}"));
        let syntax = |error: SyntaxError| usage(&error.to_string());
        if !text.starts_with("at://") {
            return Ok(Self { did: None, path: RepoPath::parse(text).map_err(syntax)? });
        }
        let uri = AtUri::parse(text).map_err(syntax)?;
        let did = uri.authority().as_did();
        let did = did.ok_or_else(|| usage("name the account by its DID: nothing is resolved"))?;
        let path = text.splitn(4, '/').nth(3).unwrap_or_default();
        let path =
            RepoPath::parse(path).map_err(|_| usage("name a record: at://DID/collection/rkey"))?;
        Ok(Self { did: Some(did), path })
    }
}

impl<'a> Target<'a> {
    /// The target of `--file`.
    pub(super) fn of_file(file: &'a Path, args: &'a VerifyArgs) -> Result<Self, Failure> {
        Self::File(file).checked(args)
    }

    /// The target of an argument.
    pub(super) fn of(text: &'a str, args: &'a VerifyArgs) -> Result<Self, Failure> {
        Self::parse(text)?.checked(args)
    }

    /// The target under the options. Options for another kind of target are refused.
    fn checked(self, args: &'a VerifyArgs) -> Result<Self, Failure> {
        let target = match (self, &args.record) {
            (target, None) => target,
            (Self::File(file), Some(record)) => Self::Slice(file, SliceRecord::parse(record)?),
            _ => return Err(Failure::Usage("--record is for a file".to_owned())),
        };
        let target = target.limited_to(&args.collections)?;
        match target {
            Self::File(_) | Self::Slice(..) | Self::CollectionsSlice(..) => {
                check_file_options(args)?
            }
            Self::Account(_) | Self::Record(_) | Self::Collections(..) => {
                check_account_options(args)?;
            }
        }
        if !matches!(target, Self::File(_) | Self::Account(_)) && (args.rebuild || args.all) {
            let what = "--rebuild and --all are for whole repositories, not for a part";
            return Err(Failure::Usage(what.to_owned()));
        }
        Ok(target)
    }

    /// The target, but only these collections of it, if there are any.
    fn limited_to(self, collections: &'a [String]) -> Result<Self, Failure> {
        if collections.is_empty() {
            return Ok(self);
        }
        let usage = |what: &str| Err(Failure::Usage(format!("--collection {what}")));
        let names = crate::collections::parse(collections.iter().map(String::as_str))?;
        match self {
            Self::File(file) => Ok(Self::CollectionsSlice(file, names)),
            Self::Account(who) => Ok(Self::Collections(who, names)),
            Self::Collections(..) => {
                usage("is for an account or a file, and this URI names a collection")
            }
            _ => usage("is for an account or a file, not for a record"),
        }
    }

    fn parse(text: &'a str) -> Result<Self, Failure> {
        let path = Path::new(text);
        let is_file = || text.ends_with(".car") || text.contains(['/', MAIN_SEPARATOR]);
        match text {
            _ if text.starts_with("at://") => Self::parse_uri(text),
            _ if files::is_standard_stream(path) || path.exists() || is_file() => {
                Ok(Self::File(path))
            }
            _ => names::account(text).map(Self::Account),
        }
    }

    fn parse_uri(text: &'a str) -> Result<Self, Failure> {
        let uri = AtUri::parse(text).map_err(|error| Failure::Usage(format!("{text}: {error}")))?;
        let who = uri.authority();
        match (uri.collection(), uri.record_key()) {
            (None, _) => Ok(Self::Account(who)),
            (Some(collection), Some(rkey)) => {
                Ok(Self::Record(RecordAddress { who, collection, rkey }))
            }
            (Some(collection), None) => {
                Ok(Self::Collections(who, vec![collection.to_buf().into()]))
            }
        }
    }
}

/// Options for one argument are refused for several.
pub(super) fn check_batch_options(args: &VerifyArgs) -> Result<(), Failure> {
    let what = match args {
        VerifyArgs { all: true, .. } => "--all",
        VerifyArgs { record: Some(_), .. } => "--record",
        VerifyArgs { save: Some(_), .. } => "--save",
        _ => return Ok(()),
    };
    Err(Failure::Usage(format!("{what} is for one argument: verify it by itself")))
}

fn check_file_options(args: &VerifyArgs) -> Result<(), Failure> {
    if !args.signer.is_given() {
        return Err(no_signer());
    }
    if args.save.is_some() || args.from.is_some() {
        Err(Failure::Usage("--save and --from are for downloads, not for a file".to_owned()))
    } else {
        Ok(())
    }
}

/// The failure of a file without a key.
pub(super) fn no_signer() -> Failure {
    let what = "a file is verified under a key: give one of --key, --did-doc, --plc-log, --keys, or \
                --without-signature";
    Failure::Usage(what.to_owned())
}

fn check_account_options(args: &VerifyArgs) -> Result<(), Failure> {
    if !args.signer.is_given() && args.did.is_none() {
        return Ok(());
    }
    let what = "the key of an account comes from its DID document: --key, --did-doc, --plc-log, \
                --keys, --without-signature and --did are for files";
    Err(Failure::Usage(what.to_owned()))
}

/// The heading of the options for files.
const FILES: &str = "Files";

const EXAMPLES: &str = "\
Examples:
  wireproof verify atproto.com --save atproto.com.car
  wireproof verify at://atproto.com/app.bsky.actor.profile/self --json | jq .record_proof.record
  wireproof verify repository.car --key did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme
  wireproof verify repository.car --plc-log log.json --rebuild
  wireproof verify at://atproto.com/app.bsky.feed.post --save posts.car
  wireproof verify posts.car --did-doc did.json --collection app.bsky.feed.post
  wireproof verify slice.car --did-doc did.json --record app.bsky.actor.profile/self
  wireproof verify repository.car --did-doc did.json --json | jq .repository.records
  wireproof verify broken.car --keys accounts.json --all
  curl -s \"$URL\" | wireproof verify - --did-doc did.json
  wireproof verify archives/ @more.txt --keys accounts.json --json | jq 'select(.verified | not)'";
