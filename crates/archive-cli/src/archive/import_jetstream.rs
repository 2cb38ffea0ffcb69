//! `wireproof archive import-jetstream`: the arguments of [`jetstream_archive::import`], and its verdicts as text or JSON lines.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use archive::Archive;
use atproto::syntax::{CollectionPatternBuf, DidBuf};
use clap::{Args, ValueHint};
use jetstream_archive::{
    AccountVerdict, Differences, ImportOptions, MAX_TEMPORARY_BYTES, Paths, Summary, Verdict,
};
use net::http::Url;
use net::jetstream::Token;
use serde::Serialize;

use crate::erasure_key::ErasureKeyArgs;
use crate::failure::Failure;
use crate::files;
use crate::network::{self, ContactArgs, NetworkArgs};
use crate::output::{Output, write_json_line};
use program::inputs::{InputKind, Inputs};

/// Read the hosted archive of a Jetstream, and prove its records against the commits that the accounts have signed.
///
/// `archive import jetstream://HOST` is the same command.
///
/// Nothing in such an archive is signed. For every account, the tree of its archived records is rebuilt and compared with the newest
/// commit, which the account's own host serves. If the roots differ, the differing records are found by hash and named by path. With
/// --to, proved repositories are stored as a backfill stores them, and the other accounts in a ledger, which `backfill status` shows.
///
/// Exit code 1 if records differ from the signed ones or data breaks a rule, 3 if an account could not be checked. An account whose
/// commit is later than its last event in the archive is counted as newer: it has moved on.
///
/// The token for the server is read from --token-file, or from the environment variable WIREPROOF_JETSTREAM_TOKEN.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportJetstreamArgs {
    /// The server, such as https://jetstream.example.com.
    #[arg(value_name = "URL")]
    server: Url,
    /// The archive for the proved repositories: a folder, file:///FOLDER, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or
    /// az://CONTAINER/PREFIX. Without it, nothing is stored.
    #[arg(long, value_name = "ARCHIVE", env = "WIREPROOF_ARCHIVE")]
    to: Option<String>,
    #[command(flatten)]
    erasure_key: ErasureKeyArgs,
    /// File with the token that the server asks for.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,
    /// Prove only these collections, such as app.bsky.feed.post or app.bsky.feed.*; at most 100. Proved ones are stored as parts.
    #[arg(long, value_name = "NSID", value_delimiter = ',')]
    collections: Vec<CollectionPatternBuf>,
    /// Only these accounts, one DID per line; at most 10,000.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    dids: Option<PathBuf>,
    /// Read events up to this sequence number.
    #[arg(long, value_name = "SEQ")]
    before_seq: Option<u64>,
    /// Prove this number of accounts, chosen at random, and state with 95 % confidence how many accounts are wrong at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "all")]
    sample: Option<u32>,
    /// Prove all accounts: the default.
    #[arg(long)]
    all: bool,
    /// The seed of the sample, with which the same accounts are chosen again [default: random].
    #[arg(long, value_name = "N", requires = "sample")]
    seed: Option<u64>,
    /// Look up keys and hosts in this file of `plc mirror` first, then in the directory.
    #[arg(long, value_name = "FILE", env = "WIREPROOF_PLC_MIRROR", value_hint = ValueHint::FilePath)]
    plc_mirror: Option<PathBuf>,
    /// The name of the ledger in the archive.
    #[arg(long, value_name = "NAME", default_value = "jetstream")]
    name: String,
    /// Maximum number of requests per second to one host of accounts.
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = network::rate)]
    max_rate: f64,
    /// Maximum bytes of events in the folder for temporary files: the events of all accounts, or of the sample.
    #[arg(long, value_name = "N", default_value_t = MAX_TEMPORARY_BYTES)]
    max_temporary_bytes: u64,
    /// Print a JSON line for every account, and a last line with the summary.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    contact: ContactArgs,
    #[command(flatten)]
    network: NetworkArgs,
}

/// A line of the output.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'l> {
    Account(&'l AccountVerdict),
    Summary(&'l Summary),
}

pub(super) async fn run(args: &ImportJetstreamArgs, output: Output) -> Result<(), Failure> {
    let options = options(args)?;
    let archive = match &args.to {
        Some(to) => Some(args.erasure_key.add_to(Archive::open(to)?)?),
        None => None,
    };
    if let Some(archive) = &archive {
        archive.check_logs().await?;
    }
    let mut print = |verdict: &AccountVerdict| match args.json {
        true => Ok(write_json_line(&mut output.stdout(), &Line::Account(verdict))?),
        false => output.text(&account_text(verdict)),
    };
    let summary = jetstream_archive::import(&options, archive.as_ref(), &mut print).await?;
    match args.json {
        true => write_json_line(&mut output.stdout(), &Line::Summary(&summary))?,
        false => output.text(&summary.to_text())?,
    }
    summary.result()
}

/// Changes `archive import jetstream://HOST` to `archive import-jetstream https://HOST`, and `jetstream+http:` to `http:`. Other arguments
/// stay as they are.
pub(crate) fn name_jetstream_import(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_import = |pair: &[OsString]| pair[0] == "archive" && pair[1] == "import";
    let Some(archive) = arguments.windows(2).position(is_import) else { return arguments };
    let url_of = |argument: &OsString| {
        let (scheme, rest) = argument.to_str()?.split_once("://")?;
        let (_, http) = JETSTREAM_SCHEMES.iter().find(|(name, _)| *name == scheme)?;
        Some(format!("{http}://{rest}"))
    };
    let mut sources = arguments.iter().enumerate().skip(archive + 2);
    let source = sources.find_map(|(at, argument)| Some((at, url_of(argument)?)));
    if let Some((at, url)) = source {
        arguments[archive + 1] = "import-jetstream".into();
        arguments[at] = url.into();
    }
    arguments
}

fn options(args: &ImportJetstreamArgs) -> Result<ImportOptions, Failure> {
    if args.collections.len() > MAX_COLLECTIONS {
        return Err(Failure::Usage(format!(
            "--collections: at most {MAX_COLLECTIONS} are allowed"
        )));
    }
    let mut options = ImportOptions::new(args.server.clone());
    options.token = token(args.token_file.as_deref())?;
    options.collections = args.collections.clone();
    options.dids = args.dids.as_deref().map(dids).transpose()?.unwrap_or_default();
    options.before_seq = args.before_seq;
    options.sample = args.sample.map(|size| size as usize);
    options.seed = args.seed.unwrap_or_else(random_seed);
    options.plc_mirror = args.plc_mirror.clone();
    options.name = args.name.clone();
    options.max_temporary_bytes = args.max_temporary_bytes;
    options.max_rate = args.max_rate;
    options.contact = args.contact.clone();
    options.network = args.network.clone();
    options.prints_progress = true;
    Ok(options)
}

/// A seed that differs from run to run, as the standard library seeds its tables.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // As many digits as JSON readers keep.
    RandomState::new().hash_one(0) >> 11
}

fn token(file: Option<&Path>) -> Result<Option<Token>, Failure> {
    let text = match file {
        Some(path) => Some(files::read_at_most(path, MAX_TOKEN_FILE)?),
        None => std::env::var(TOKEN).ok().filter(|text| !text.is_empty()).map(String::into_bytes),
    };
    let Some(text) = text else { return Ok(None) };
    let place = file.map_or_else(|| TOKEN.to_owned(), files::name);
    let token = str::from_utf8(&text).ok().and_then(|text| Token::new(text).ok());
    // The text is a secret, so it is not quoted.
    let invalid =
        || Failure::Usage(format!("{place}: not a token: visible ASCII characters on one line"));
    token.map(Some).ok_or_else(invalid)
}

fn dids(path: &Path) -> Result<Vec<DidBuf>, Failure> {
    let arguments = [format!("@{}", path.display())];
    let dids: Vec<DidBuf> = Inputs::new(&arguments, InputKind::Names)
        .map(|input| {
            let name = input?.name;
            name.parse()
                .map_err(|error| Failure::Usage(format!("{}: {name}: {error}", files::name(path))))
        })
        .collect::<Result<_, Failure>>()?;
    match dids.len() {
        0 => Err(Failure::Usage(format!("{}: no account", files::name(path)))),
        1..=MAX_DIDS => Ok(dids),
        count => Err(Failure::Usage(format!(
            "--dids: {count} accounts, and at most {MAX_DIDS} are allowed"
        ))),
    }
}

/// The text of an account that is not proved; empty for a proved one.
fn account_text(verdict: &AccountVerdict) -> String {
    let kind = match verdict.verdict {
        Verdict::Proved => return String::new(),
        Verdict::Newer => "newer",
        Verdict::Wrong => "wrong",
        Verdict::Inactive => "not served",
        _ => "not checked",
    };
    let code = verdict.code.as_deref().unwrap_or_default();
    let mut text = format!("{}: {kind} ({code})", verdict.did);
    if let Some(message) = &verdict.message {
        text.push_str(&format!(": {message}"));
    }
    text.push('\n');
    if verdict.verdict == Verdict::Wrong {
        let Differences { unsigned, altered, missing, .. } = &verdict.differences;
        for (name, paths) in [("unsigned", unsigned), ("altered", altered), ("missing", missing)] {
            text.push_str(&paths_text(name, paths));
        }
    }
    text
}

fn paths_text(name: &str, paths: &Paths) -> String {
    let shown = paths.paths.len().min(MAX_SHOWN);
    let lines = paths.paths[..shown].iter().map(|path| format!("  {name} {path}\n"));
    let mut text: String = lines.collect();
    if paths.count > shown as u64 {
        text.push_str(&format!("  … and {} more {name} records\n", paths.count - shown as u64));
    }
    text
}

/// Schemes of a source of `archive import`, and the schemes of its requests.
const JETSTREAM_SCHEMES: [(&str, &str); 2] = [("jetstream", "https"), ("jetstream+http", "http")];

/// The environment variable with the token.
const TOKEN: &str = "WIREPROOF_JETSTREAM_TOKEN";

const MAX_TOKEN_FILE: usize = 64 << 10;

/// What servers accept.
const MAX_DIDS: usize = 10_000;
const MAX_COLLECTIONS: usize = 100;

/// Paths of a kind that are printed of an account.
const MAX_SHOWN: usize = 10;

const EXAMPLES: &str = "\
Examples:
  wireproof archive import-jetstream https://jetstream.example.com --sample 300 --contact ops@example.com
  wireproof archive import jetstream://jetstream.example.com --to archive --token-file token --contact ops@example.com
  wireproof archive import-jetstream https://jetstream.example.com --collections site.standard.* --json --contact ops@example.com";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jetstream_as_the_source_of_an_import_names_the_command() {
        let changed = |text: &str| {
            let arguments = text.split(' ').map(OsString::from).collect();
            let changed = name_jetstream_import(arguments);
            changed.into_iter().map(|of| of.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        for (before, after) in [
            ("w archive import jetstream://a.test", "w archive import-jetstream https://a.test"),
            (
                "w -q archive import --to x jetstream+http://[::1]:5 --json",
                "w -q archive import-jetstream --to x http://[::1]:5 --json",
            ),
            ("w archive import a.car --to x", "w archive import a.car --to x"),
            ("w archive verify jetstream://a.test", "w archive verify jetstream://a.test"),
            ("w backfill import jetstream://a.test", "w backfill import jetstream://a.test"),
        ] {
            assert_eq!(changed(before), after);
        }
    }
}
