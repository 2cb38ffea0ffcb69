//! Repositories by name: a CAR file, or an account, whose repository is downloaded and proved.

use std::borrow::Cow;
use std::ops::Deref;
use std::path::Path;

use atproto::syntax::{AtIdentifier, CollectionPatternBuf};
use clap::Args;
use mapping::MappedFile;
use net::http::Url;
use verify::record;
use verify::repository::{self, Options};

use crate::account::{ResolvedAccount, Signer};
use crate::batch::cores;
use crate::collections;
use crate::download::{self, Saved, Target};
use crate::failure::Failure;
use crate::files;
use crate::log::{self, Level};
use crate::names;
use crate::network::{DownloadArgs, LazyNetwork, NETWORK, NetworkArgs, origin};
use crate::stage::Stages;

/// How the repositories of accounts are downloaded.
#[derive(Debug, Args)]
pub(crate) struct DownloadedArgs {
    /// Server to download from: a mirror or a relay. The proof is the same [default: the account's own].
    #[arg(long, value_name = "URL", help_heading = NETWORK)]
    from: Option<Url>,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    download: DownloadArgs,
}

/// The name of a repository in an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RepositoryName<'a> {
    pub(super) source: Source<'a>,
    /// The collection of an at:// URI.
    pub(super) collection: Option<&'a str>,
}

/// Where a repository is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source<'a> {
    File(&'a Path),
    Account(&'a str),
}

/// An open repository.
pub(super) struct OpenRepository<'a> {
    /// Its name in messages.
    pub(super) name: Cow<'a, Path>,
    pub(super) bytes: OpenBytes,
    /// The download, which is removed with this value.
    _saved: Option<Saved>,
}

/// The bytes of a file, or of a download in memory.
pub(super) enum OpenBytes {
    File(MappedFile),
    Memory(Vec<u8>),
}

impl Deref for OpenBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::File(file) => file,
            Self::Memory(bytes) => bytes,
        }
    }
}

impl<'a> RepositoryName<'a> {
    /// An existing path, and text that ends in `.car` or has a slash, is a file, except URIs; every other text is an account.
    pub(super) fn parse(text: &'a str) -> Self {
        let path = Path::new(text);
        if let Some(rest) = text.trim().strip_prefix("at://") {
            let (who, path) = rest.split_once('/').unwrap_or((rest, ""));
            let collection = path.split('/').next().filter(|name| !name.is_empty());
            return Self { source: Source::Account(who), collection };
        }
        let is_url = text.trim().starts_with("https://") || text.trim().starts_with("http://");
        let is_file = files::is_standard_stream(path) || path.exists();
        let looks_like_file =
            text.ends_with(".car") || text.contains(['/', std::path::MAIN_SEPARATOR]);
        let source = if is_file || (looks_like_file && !is_url) {
            Source::File(path)
        } else {
            Source::Account(text)
        };
        Self { source, collection: None }
    }

    /// The collections of the option, or else the one in the name. Without either, all are wanted.
    pub(super) fn collections(
        &self,
        of_option: &[String],
    ) -> Result<Vec<CollectionPatternBuf>, Failure> {
        if of_option.is_empty() {
            collections::parse(self.collection)
        } else {
            collections::parse(of_option.iter().map(String::as_str))
        }
    }

    /// Opens a file, or downloads the repository of an account and proves that the account signed it: of some collections, only the part
    /// that proves them.
    pub(super) fn open(
        self,
        collections: &[CollectionPatternBuf],
        args: &DownloadedArgs,
    ) -> Result<OpenRepository<'a>, Failure> {
        match self.source {
            Source::File(path) => {
                let bytes = OpenBytes::File(files::map(path)?);
                Ok(OpenRepository { name: path.into(), bytes, _saved: None })
            }
            Source::Account(name) if collections.is_empty() => {
                download(names::account(name)?, args)
            }
            Source::Account(name) => download_part(names::account(name)?, collections, args),
        }
    }
}

/// Downloads and proves the part of a repository that has these collections.
fn download_part<'a>(
    who: AtIdentifier<'_>,
    collections: &[CollectionPatternBuf],
    args: &DownloadedArgs,
) -> Result<OpenRepository<'a>, Failure> {
    let network = LazyNetwork::new(&args.network, args.from.as_slice(), true);
    let online = &*network.open()?;
    let (network, runtime) = (&online.network, &online.runtime);
    let account = ResolvedAccount::look_up(network, runtime, who, &mut Stages::default())?;
    let Signer { did, key, host } = account.signer(args.from.as_ref())?;
    let limits = args.download.limits();
    let slice = collections::download(who, did.as_did(), &host, collections, &limits, online)?;
    let (options, of) = (record::Options::default(), Some(did.as_str()));
    let proved = verify::collections::verify(&slice.archive, collections, of, &key, &options);
    let proved = proved.map_err(|why| {
        let code = why.code();
        Failure::Refused(format!("{who}: refused ({code}): {why} (from {})", origin(&host)))
    })?;
    let (records, rev) = (proved.records().len(), proved.commit().rev);
    let names: Vec<&str> = collections.iter().map(CollectionPatternBuf::as_str).collect();
    let of = names.join(", ");
    let text = format!(
        "{who}: all {records} records of {of}, proved to be signed by {did} (revision {rev})"
    );
    log::print(Level::Info, &text)?;
    if let Some(reason) = &slice.whole {
        log::print(Level::Info, &format!("{who}: the whole repository was fetched: {reason}"))?;
    }
    let name = Path::new(&who.to_string()).to_owned();
    Ok(OpenRepository { name: name.into(), bytes: OpenBytes::Memory(slice.archive), _saved: None })
}

fn download<'a>(
    who: AtIdentifier<'_>,
    args: &DownloadedArgs,
) -> Result<OpenRepository<'a>, Failure> {
    let network = LazyNetwork::new(&args.network, args.from.as_slice(), true);
    let online = network.open()?;
    let (network, runtime) = (&online.network, &online.runtime);
    let account = ResolvedAccount::look_up(network, runtime, who, &mut Stages::default())?;
    let Signer { did, key, host } = account.signer(args.from.as_ref())?;
    let mut target = Target::new(None)?;
    let xrpc = &network.xrpc;
    let line = online.progress_line();
    let limits = args.download.limits();
    let fetched = download::repository(xrpc, &host, did.as_did(), &mut target, &limits, line);
    let fetched = runtime.block_on(fetched)?;
    let saved = target.save()?;
    let bytes = OpenBytes::File(files::map(saved.path())?);
    let mut options = Options::default();
    options.threads = cores();
    let proved = repository::verify(&bytes, Some(did.as_str()), &key, &options);
    let proved = proved.map_err(|why| {
        Failure::Refused(format!("{who}: refused ({}): {why} (from {})", why.code(), fetched.host))
    })?;
    let (records, rev) = (proved.tree().records, proved.commit().rev);
    let text = format!("{who}: {records} records, proved to be signed by {did} (revision {rev})");
    log::print(Level::Info, &text)?;
    let name = Path::new(&who.to_string()).to_owned();
    Ok(OpenRepository { name: name.into(), bytes, _saved: Some(saved) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_file_or_an_account_with_perhaps_a_collection() {
        let account =
            |name, collection| RepositoryName { source: Source::Account(name), collection };
        let file =
            |path| RepositoryName { source: Source::File(Path::new(path)), collection: None };
        for (text, expected) in [
            ("alice.example.com", account("alice.example.com", None)),
            ("@alice.example.com", account("@alice.example.com", None)),
            ("did:web:alice.example.com", account("did:web:alice.example.com", None)),
            ("at://alice.example.com", account("alice.example.com", None)),
            ("at://alice.example.com/", account("alice.example.com", None)),
            ("at://alice.example.com/a.b.c", account("alice.example.com", Some("a.b.c"))),
            ("at://alice.example.com/a.b.c/self", account("alice.example.com", Some("a.b.c"))),
            ("https://bsky.app/profile/a.test", account("https://bsky.app/profile/a.test", None)),
            ("alice.car", file("alice.car")),
            ("archives/alice", file("archives/alice")),
            ("-", file("-")),
        ] {
            assert_eq!(RepositoryName::parse(text), expected, "{text}");
        }
    }
}
