//! Arguments of `wireproof follow`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{BoolishValueParser, FalseyValueParser};
use clap::{ArgAction, Args, ValueHint};
use delivery::LineForm;

use atproto::syntax::Nsid;
use net::firehose::MoreHosts;
use net::hosts::parse_host_url;
use net::http::Url;
use verify::sync::Policy;

use super::admin_args::AdminArgs;
use super::condition::Condition;
use super::delivery_args::{DELIVERY, DeliveryArgs};
use super::line::ProofForm;
use super::listing::Listing;
use super::state;
use super::verify_level::VerifyLevel;
use crate::failure::Failure;
use crate::help::EXPERT;
use crate::stream::{OPERATION, SOURCE, Start, StreamArgs};

/// Follow an event stream, and print or deliver one line of JSON per event.
///
/// Every event is verified: the account's key signed the commit, the operations are the whole change, and the commit
/// continues the previous one. Every line has the verdict; unverified events come without their records. No event is
/// dropped: the next run resumes after the last line that the reader of the output took. After a crash, or if the
/// reader ends first (exit code 4), lines that may have been lost are printed again and marked `repeated`. With --to,
/// events go to an outbox on disk, which keeps them until every destination has acknowledged them.
///
/// Ctrl-C or SIGTERM finishes the events in flight and stores the cursor, within --stop-seconds (exit code 130 after
/// Ctrl-C, 0 after SIGTERM); a second one ends at once. SIGHUP reads the files of --dids again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FollowArgs {
    #[command(flatten)]
    pub(super) stream: StreamArgs,
    #[arg(skip)]
    pub(super) more_hosts: Option<MoreHosts>,
    /// Verify events; `--verify=false` or --no-verify prints them unverified.
    #[arg(long, env = "WIREPROOF_VERIFY", action = ArgAction::Set, value_name = "BOOL")]
    #[arg(num_args = 0..=1, require_equals = true, default_value_t = true)]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    #[arg(help_heading = EXPERT)]
    pub(super) verify: bool,
    /// Print events unverified.
    #[arg(long, overrides_with = "verify")]
    #[arg(help_heading = PROOF)]
    pub(super) no_verify: bool,
    /// Level of proof for every event: `full` proves that the account's key signed the commit, that the operations are
    /// the whole change of the signed tree, and that no event is missing; `signature` proves the signature and the
    /// hashes of the records, but a host can invent and leave out operations; `none` proves nothing, even with --to.
    /// Lines of the last two say so (`verified_against`) [default: full].
    #[arg(long, env = "WIREPROOF_VERIFY_AGAINST", value_name = "LEVEL")]
    #[arg(help_heading = PROOF)]
    pub(super) verify_against: Option<VerifyLevel>,
    /// Refuse commits and repositories with invalid records: not canonical DAG-CBOR, or not a map [default: verify
    /// them, and print the record as invalid].
    #[arg(long, env = "WIREPROOF_STRICT_RECORDS", value_parser = FalseyValueParser::new())]
    #[arg(help_heading = PROOF)]
    pub(super) strict_records: bool,
    /// Print only operations in these collections: app.bsky.feed.post, or app.bsky.graph.* for a prefix
    /// [default: all].
    #[arg(long, env = "WIREPROOF_COLLECTIONS", value_name = "LIST", value_delimiter = ',')]
    #[arg(help_heading = SELECTION)]
    pub(super) collections: Vec<String>,
    /// Whether whole repositories are fetched even if only some collections are selected.
    #[arg(skip)]
    pub(super) whole_repositories: bool,
    /// Print only operations whose record matches this expression (CEL): `record.text.contains('proof')`. Its variables
    /// are record, collection, rkey, action, did, rev and live. Deletions always match, and an update that does not
    /// match becomes a deletion with `"filtered":true` [default: all].
    #[arg(
        long = "where",
        env = "WIREPROOF_WHERE",
        value_name = "EXPR",
        allow_hyphen_values = true
    )]
    #[arg(help_heading = SELECTION)]
    pub(super) condition: Option<Condition>,
    /// Print only events of these accounts: DIDs, or handles, which are resolved at the start; `@FILE` names a file
    /// with one per line, which SIGHUP reads again; `none` selects only accounts that --admin adds [default: all].
    #[arg(long, env = "WIREPROOF_DIDS", value_name = "LIST|@FILE", value_delimiter = ',')]
    #[arg(help_heading = SELECTION)]
    pub(super) dids: Vec<String>,
    /// Add the accounts in this file to --dids, one DID or handle per line; `-` reads standard input.
    #[arg(long, env = "WIREPROOF_DID_FILE", value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = SELECTION)]
    pub(super) did_file: Vec<String>,
    /// Follow a Jetstream, whose JSON is not signed, in version 2 or the given one [default host:
    /// jetstream1.us-east.bsky.network].
    #[arg(long, env = "WIREPROOF_JETSTREAM", value_name = "VERSION", num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "2")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=2))]
    #[arg(help_heading = SOURCE)]
    pub(super) jetstream: Option<u8>,
    /// Let the Jetstream compress, with the dictionary that it serves (version 2).
    #[arg(long, env = "WIREPROOF_COMPRESS", requires = "jetstream")]
    #[arg(value_parser = FalseyValueParser::new())]
    #[arg(help_heading = EXPERT)]
    pub(super) compress: bool,
    /// Let the Jetstream compress with the dictionary in this file.
    #[arg(long, env = "WIREPROOF_DICTIONARY", value_name = "FILE", requires = "jetstream")]
    #[arg(value_hint = ValueHint::FilePath)]
    #[arg(help_heading = EXPERT)]
    pub(super) dictionary: Option<PathBuf>,
    /// Print and deliver a flat line per operation, instead of one line per commit or repository. The tables of
    /// `sqlite:` and the messages of `ws://` do not change.
    #[arg(long, env = "WIREPROOF_OPS", value_parser = FalseyValueParser::new())]
    #[arg(help_heading = DELIVERY)]
    pub(super) ops: bool,
    /// Add the proof to lines with verified records: `frame`, the whole event, or `blocks`, the commit, the tree nodes
    /// and the records; lines of a repository have blocks. `wireproof frames verify-lines` proves them again [default:
    /// none].
    #[arg(long, env = "WIREPROOF_PROOF", value_name = "FORM", conflicts_with = "jetstream")]
    #[arg(help_heading = PROOF)]
    pub(super) proof: Option<ProofForm>,
    /// Treat --host as a PDS: refuse events of accounts whose DID document names another server.
    #[arg(long, env = "WIREPROOF_PDS", conflicts_with = "jetstream")]
    #[arg(value_parser = FalseyValueParser::new())]
    #[arg(help_heading = SOURCE)]
    pub(super) pds: bool,
    /// Download and verify the repository of an account whose chain is broken.
    #[arg(long, env = "WIREPROOF_RESYNC", value_parser = FalseyValueParser::new())]
    #[arg(help_heading = PROOF)]
    pub(super) resync: bool,
    /// Maximum bytes of repositories that are received, verified or delivered at a time. They are in files in the state
    /// folder or in TMPDIR; a single repository may have 16 MiB less, and at most 512 MiB [default: 1 GiB].
    #[arg(long, env = "WIREPROOF_RESYNC_BYTES", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(MIN_RESYNC_BYTES..))]
    #[arg(help_heading = EXPERT)]
    pub(super) resync_bytes: Option<u64>,
    /// Forget the known revisions of these accounts, whose own servers have lost newer revisions: their next repository
    /// or commit is accepted, whatever its revision.
    #[arg(long, value_name = "DID", value_delimiter = ',')]
    #[arg(help_heading = PROOF)]
    pub(super) reset_account: Vec<String>,
    /// Folder for cursors, keys and account states. Without it, a run that prints to a terminal keeps no state [default: wireproof
    /// in $XDG_STATE_HOME or ~/.local/state].
    #[arg(long, env = "WIREPROOF_STATE", value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(help_heading = STATE)]
    pub(super) state: Option<PathBuf>,
    /// Maximum size of the state file in bytes; the run ends when it is reached [default: none].
    #[arg(long, env = "WIREPROOF_STATE_BYTES", value_name = "N")]
    #[arg(help_heading = EXPERT)]
    pub(super) state_bytes: Option<u64>,
    /// Where to start with a host that has no stored cursor: `live`, `oldest`, or after a sequence number.
    #[arg(long, env = "WIREPROOF_CURSOR", value_name = "CURSOR", default_value = "live")]
    #[arg(help_heading = SOURCE)]
    pub(super) cursor: Start,
    /// Ignore the stored cursor, and start at `live`, `oldest`, or after a sequence number. Histories are fetched
    /// again, as events in between may be missed.
    #[arg(long, value_name = "CURSOR", help_heading = SOURCE)]
    pub(super) restart: Option<Start>,
    /// Serve Prometheus metrics at /metrics of this address, and for supervisors /health and /ready: 200, or 503 with
    /// the reason. For addresses other than loopback, a warning is printed.
    #[arg(long, env = "WIREPROOF_METRICS", value_name = "ADDRESS:PORT")]
    #[arg(help_heading = OPERATION)]
    pub(super) metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub(super) admin: AdminArgs,
    /// End after the lines of N events.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(help_heading = OPERATION)]
    pub(super) events: Option<u64>,
    /// Milliseconds for which a thread with few events waits for more. It verifies them together, and waits only while
    /// the stream brings several in that time; 0 never waits.
    #[arg(long, env = "WIREPROOF_GATHER_MS", value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=1_000))]
    #[arg(help_heading = EXPERT)]
    pub(super) gather_ms: u64,
    /// Number of verifying threads [default: one per core].
    #[arg(long, env = "WIREPROOF_WORKERS", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    #[arg(help_heading = EXPERT)]
    pub(super) workers: Option<u16>,
    #[command(flatten)]
    pub(super) delivery: DeliveryArgs,
}

/// Bytes of repositories that resyncs have at least: half of them for one.
const MIN_RESYNC_BYTES: u64 = 32 << 20;

impl FollowArgs {
    /// The level of proof for events.
    pub(super) fn verify_level(&self) -> VerifyLevel {
        let level = if self.has_no_verify() { VerifyLevel::None } else { VerifyLevel::Full };
        self.verify_against.unwrap_or(level)
    }

    /// The policy of the verification; `None` for decoding only.
    pub(super) fn policy(&self) -> Option<Policy> {
        let mut policy = self.verify_level().policy()?;
        policy.strict_records = self.strict_records;
        Some(policy)
    }

    /// Where to start with a host that has no stored cursor.
    pub(super) fn start(&self) -> Start {
        self.restart.unwrap_or(self.cursor)
    }

    fn has_no_verify(&self) -> bool {
        !self.verify || self.no_verify
    }

    /// The unit of a line.
    pub(super) fn line_form(&self) -> LineForm {
        if self.ops { LineForm::Operations } else { LineForm::Events }
    }

    /// These options without the options for printing and delivery that the environment can set.
    pub(super) fn without_delivery(mut self) -> Self {
        (self.jetstream, self.condition, self.proof) = (None, None, None);
        self.admin = AdminArgs::default();
        (self.ops, self.resync, self.verify_against) = (false, false, None);
        (self.delivery.to, self.delivery.stored.forget, self.delivery.all_from) =
            Default::default();
        (self.delivery.ack_stdin, self.delivery.backfill) = (false, false);
        self
    }

    /// Whether the repositories of accounts with a broken chain are fetched.
    pub(super) fn resyncs(&self) -> bool {
        self.resync || (self.delivery.uses_outbox() && self.verify_level() != VerifyLevel::None)
    }

    /// The folder of the outbox.
    pub(super) fn outbox_folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.delivery.stored.outbox.clone();
        folder.map_or_else(|| Ok(state::folder(self)?.join("outbox")), Ok)
    }

    /// The accounts of --dids and --did-file; `@FILE` and `@-` for those in files.
    pub(super) fn accounts(&self) -> Vec<String> {
        let in_files = self.did_file.iter().map(|file| format!("@{file}"));
        self.dids.iter().cloned().chain(in_files).collect()
    }

    /// Whether accounts get their history.
    pub(super) fn backfills(&self) -> bool {
        self.delivery.backfill || !self.delivery.all_from.is_empty()
    }

    fn names_accounts(&self) -> bool {
        !self.accounts().is_empty()
            || !self.delivery.all_from.is_empty()
            || !self.collections.is_empty()
    }

    /// The servers of --all-from.
    pub(super) fn listed_servers(&self) -> Result<Vec<Url>, Failure> {
        let url = |name: &String| {
            let failed = |error| Failure::Usage(format!("--all-from {name}: {error}"));
            parse_host_url(name).map_err(failed)
        };
        self.delivery.all_from.iter().map(url).collect()
    }

    /// The lists of accounts whose history is delivered: --all-from, or the collections of --backfill without accounts.
    pub(super) fn listings(&self, relay: &Url) -> Result<Vec<Listing>, Failure> {
        let servers = self.listed_servers()?.into_iter();
        let mut listings: Vec<Listing> = servers.map(Listing::of_server).collect();
        if self.delivery.backfill && self.accounts().is_empty() && listings.is_empty() {
            for name in &self.collections {
                let collection = Nsid::parse(name).map_err(|_| {
                    Failure::Usage(format!(
                        "--backfill: accounts are not listed by `{name}`: name collections without `*`, or the accounts"
                    ))
                })?;
                listings.push(Listing::of_collection(relay.clone(), collection.to_buf()));
            }
        }
        Ok(listings)
    }

    /// Checks that the options fit the level of proof.
    pub(super) fn check_verify_level(&self) -> Result<(), Failure> {
        let Some(level) = self.verify_against else { return Ok(()) };
        if self.has_no_verify() && level != VerifyLevel::None {
            let name = level.name();
            return Err(Failure::Usage(format!("--no-verify: leave out --verify-against {name}")));
        }
        let needs_proof = [
            (self.resync, "--resync"),
            (self.delivery.backfill, "--backfill"),
            (!self.delivery.all_from.is_empty(), "--all-from"),
            (self.proof.is_some(), "--proof"),
            (self.strict_records, "--strict-records"),
            (self.pds, "--pds"),
        ];
        let option = needs_proof.iter().find(|(is_set, _)| *is_set).map(|(_, option)| option);
        match (level, option) {
            (VerifyLevel::None, Some(option)) => Err(Failure::Usage(format!(
                "--verify-against none: {option} needs verified events: leave it out, or verify against signature or \
                 full"
            ))),
            (VerifyLevel::Signature | VerifyLevel::Full, _) if self.jetstream.is_some() => {
                let text = "--verify-against: the events of a Jetstream are not signed: leave out --jetstream";
                Err(Failure::Usage(text.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the options of the delivery fit the others. A file of options can set any of them.
    pub(super) fn check_delivery(&self) -> Result<(), Failure> {
        let uses_outbox = self.delivery.uses_outbox();
        let is_unused =
            (self.backfills() || !self.delivery.stored.forget.is_empty()) && !uses_outbox;
        let fault = match () {
            () if is_unused => "--backfill, --all-from and --forget need --to or --ack-stdin",
            () if uses_outbox && self.jetstream.is_some() => {
                "--to and --ack-stdin deliver verified events: leave out --jetstream"
            }
            () if self.condition.is_some() && self.jetstream.is_some() => {
                "--where: the cursor of a Jetstream moves with the printed lines, and would stay where none match: leave \
                 out --jetstream, or filter the output"
            }
            () if self.admin.is_served() && self.jetstream.is_some() => {
                "--admin: its states, histories and destinations need verified events: leave out --jetstream; \
                 SIGHUP reads the files of --dids again"
            }
            () if uses_outbox && self.has_no_verify() && self.verify_against.is_none() => {
                "--to and --ack-stdin deliver verified events: leave out --no-verify, or say --verify-against none"
            }
            () if self.delivery.ack_stdin && self.accounts().iter().any(|text| text == "@-") => {
                "--ack-stdin reads acknowledgements from standard input: name a file of accounts"
            }
            () if self.delivery.backfill && !self.names_accounts() => {
                "--backfill: name the accounts with --dids, --did-file, --all-from or --collections"
            }
            () if self.dids == ["none"] && !self.admin.is_served() => {
                "--dids none: add --admin, to add accounts"
            }
            () => return Ok(()),
        };
        Err(Failure::Usage(fault.to_owned()))
    }
}

/// The headings of the options in the help.
const SELECTION: &str = "Selection";
const PROOF: &str = "Proof";
const STATE: &str = "State";

const EXAMPLES: &str = "\
Examples:
  wireproof follow | jq -c 'select(.verdict != \"verified\")'
  wireproof follow --collections app.bsky.feed.post | jq -r '.ops[].record.text'
  wireproof follow --host https://one.example.com --host https://two.example.com --resync
  wireproof follow --dids @dids.txt --cursor oldest --state state --metrics 127.0.0.1:9464
  wireproof follow --dids ada.example.com --collections app.bsky.feed.post --backfill --to sqlite:posts.db
  wireproof follow --all-from pds.example.com --to sqlite:all.db
  wireproof follow --collections app.bsky.feed.post --to ws://127.0.0.1:2480

Every option can be set in the environment (WIREPROOF_HOST, …) and in wireproof.toml: `wireproof config show`.";
