//! What is to be proved: a file, an account or a record?

use std::path::{MAIN_SEPARATOR, Path};

use wireproof::atproto::syntax::{AtIdentifier, AtUri, Nsid, RecordKey};

use crate::account;
use crate::args::verify::VerifyRepositoryArgs;
use crate::failure::Failure;

/// What is to be proved.
pub(super) enum Target<'a> {
    /// A repository in a file.
    File(&'a Path),
    /// The repository of an account.
    Account(AtIdentifier<'a>),
    /// What is at a path of it.
    Record(Place<'a>),
}

/// A path of an account's repository.
pub(super) struct Place<'a> {
    pub(super) who: AtIdentifier<'a>,
    pub(super) collection: Nsid<'a>,
    pub(super) rkey: RecordKey<'a>,
}

impl<'a> Target<'a> {
    /// What the arguments name; those that belong to another kind of target make no sense with it.
    pub(super) fn of(args: &'a VerifyRepositoryArgs) -> Result<Self, Failure> {
        let target = Self::named(args)?;
        match target {
            Self::File(_) => for_files(args)?,
            Self::Account(_) | Self::Record(_) => for_accounts(args)?,
        }
        Ok(target)
    }

    fn named(args: &'a VerifyRepositoryArgs) -> Result<Self, Failure> {
        let text = match (&args.file, &args.target) {
            (Some(file), _) => return Ok(Self::File(file)),
            (None, Some(target)) => target.as_str(),
            (None, None) => return Err(Failure::Usage("nothing to prove is named".to_owned())),
        };
        let path = Path::new(text);
        let is_file = || text.ends_with(".car") || text.contains(['/', MAIN_SEPARATOR]);
        match text {
            _ if text.starts_with("at://") => in_repository(text),
            _ if path.exists() || is_file() => Ok(Self::File(path)),
            _ => account::identifier(text).map(Self::Account),
        }
    }
}

fn in_repository(text: &str) -> Result<Target<'_>, Failure> {
    let uri = AtUri::parse(text).map_err(|error| Failure::Usage(format!("{text}: {error}")))?;
    let who = uri.authority();
    match (uri.collection(), uri.record_key()) {
        (None, _) => Ok(Target::Account(who)),
        (Some(collection), Some(rkey)) => Ok(Target::Record(Place { who, collection, rkey })),
        (Some(collection), None) => Err(Failure::Usage(format!(
            "{text}: that a collection is whole follows only from the whole repository: `wireproof verify \
             {who} --save {who}.car`, then `wireproof repo ls {who}.car --collection {collection}`"
        ))),
    }
}

/// A file says nothing of its owner that could be trusted.
fn for_files(args: &VerifyRepositoryArgs) -> Result<(), Failure> {
    let usage = |what: &str| Err(Failure::Usage(what.to_owned()));
    if !args.signer.is_given() {
        return usage(
            "a file is held against a key: give one of --key, --did-doc, --plc-log, --keys, or \
             --without-signature",
        );
    }
    match args.save.is_some() || args.from.is_some() {
        true => usage("--save and --from are for what is fetched, not for a file"),
        false => Ok(()),
    }
}

fn for_accounts(args: &VerifyRepositoryArgs) -> Result<(), Failure> {
    if !args.signer.is_given() && args.did.is_none() {
        return Ok(());
    }
    let what = "the key of an account comes from its DID document: --key, --did-doc, --plc-log, \
                --keys, --without-signature and --did are for files";
    Err(Failure::Usage(what.to_owned()))
}
