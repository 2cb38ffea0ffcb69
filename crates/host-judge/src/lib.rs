//! Judges a PDS or a relay by the protocol: its stream, its repositories, its lists and its cursors.
//!
//! ```text
//! listHosts, documents: PDS, relay   live stream ──────┐ (for some seconds)
//! listRepos ──> a sample ──> every account            ├─> replay, oldest events, cursors
//!               status, commit, repository,           │
//!               blocks, records                  keys ┴─> events in order ──> findings
//!                        └──────────────────────────────> lists and statuses again
//! ```
//!
//! A contradiction that a write between two requests explains is looked for again, and reported only if it lasts. A host that
//! does not answer is not accused. Every finding has a code, and a command that shows it again.

#![forbid(unsafe_code)]

mod account;
mod answers;
mod ask;
mod cursors;
mod events;
mod finding;
pub mod html;
mod identities;
mod list;
mod listen;
mod reconcile;
pub mod rule;
mod sequence;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use atproto::syntax::Did;
use net::http::{Client, Limits, Url};
use net::identity::Resolver;
use net::remote_text::sanitize;
use serde::Serialize;
use tokio::time::Instant;

use account::{AccountFacts, AccountJudge};
use ask::{Host, Reply};
pub use events::{Keys, Stream, StreamCounts, StreamJudgement, judge_stream};
pub use finding::Finding;
use identities::{Identities, Identity};
use list::Listing;
use listen::Heard;
pub use rule::{Kind, Rule};
pub use sequence::Arrival;

/// The clients with which a host is judged; their egress policy decides where they connect.
#[derive(Clone)]
pub struct Clients {
    /// HTTP and WebSockets.
    pub http: Client,
    /// The keys and servers of accounts.
    pub resolver: Resolver,
    /// The did:plc directory.
    pub directory: Url,
}

/// Limits of a judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Number of accounts whose repositories are asked for. 20.
    pub accounts: usize,
    /// Time for which the live stream is heard. 30 seconds.
    pub listen: Duration,
    /// Time without an event after which a replay has come to its end. 2 seconds.
    pub quiet: Duration,
    /// Maximum number of requests per second. 10.
    pub requests_per_s: u32,
    /// Maximum silence of a body or of a stream, whose pings are answered in less. 15 seconds.
    pub idle: Duration,
    /// Maximum size of a repository in bytes. 64 MiB.
    pub max_repo_bytes: u64,
    /// Maximum time for the accounts. 5 minutes.
    pub max_accounts_time: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            accounts: 20,
            listen: Duration::from_secs(30),
            quiet: Duration::from_secs(2),
            requests_per_s: 10,
            idle: Duration::from_secs(15),
            max_repo_bytes: 64 << 20,
            max_accounts_time: Duration::from_secs(300),
        }
    }
}

/// The judgement of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The host.
    pub host: String,
    /// `pds`, `relay`, or `unknown`, which is judged like a relay.
    pub kind: &'static str,
    /// `sound`, `faulty` or `unanswered`.
    pub verdict: &'static str,
    /// Accounts that were asked for.
    pub accounts: usize,
    /// Accounts whose repository was proved.
    pub repositories: usize,
    /// The events of the stream.
    pub stream: StreamCounts,
    /// Number of answers of the host.
    pub answers: u64,
    /// Number of findings by code.
    pub codes: Vec<CodeCount>,
    /// The findings, of every code the first five.
    pub findings: Vec<Finding>,
}

/// The number of findings of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CodeCount {
    /// The code.
    pub code: &'static str,
    /// How it counts.
    pub kind: Kind,
    /// The number of findings.
    pub count: u64,
}

impl Judgement {
    /// The codes of violations.
    pub fn violations(&self) -> BTreeSet<&'static str> {
        let of_kind = self.codes.iter().filter(|count| count.kind == Kind::Violation);
        of_kind.map(|count| count.code).collect()
    }

    /// The verdict in one line.
    pub fn line(&self) -> String {
        let of_kind = |kind| {
            let codes = self.codes.iter().filter(move |count| count.kind == kind);
            codes.map(|count| count.code).collect::<Vec<_>>().join(", ")
        };
        let Self { host, kind, verdict, accounts, repositories, stream, .. } = self;
        let scope = format!(
            "{kind}, {} events, {repositories} of {accounts} repositories proved",
            stream.live + stream.oldest
        );
        match *verdict {
            "faulty" => format!("{host}: faulty: {} ({scope})", of_kind(Kind::Violation)),
            "unanswered" => format!("{host}: unanswered: {} ({scope})", of_kind(Kind::Unknown)),
            _ => format!("{host}: no fault found ({scope})"),
        }
    }
}

/// Judges the host at `url`.
pub async fn judge(url: &Url, clients: &Clients, options: &Options) -> Judgement {
    let host = Host::new(url.clone(), clients.http.clone(), options.requests_per_s, options.idle);
    let mut identities = Identities::new(
        clients.resolver.clone(),
        clients.http.clone(),
        clients.directory.clone(),
        (options.accounts * LOOKUPS_PER_ACCOUNT).max(MIN_LOOKUPS),
    );
    let deadline = Instant::now() + options.listen;
    let asked = ask_accounts(&host, &mut identities, options);
    let (live, asked) = tokio::join!(listen::live(&host, deadline), asked);
    let Asked { kind, listing, accounts } = asked;
    // A host that is no PDS for certain is judged by the rules that a relay has too.
    let is_relay = kind != "pds";
    let seen = ask_seen(&host, &mut identities, is_relay, options, &live).await;
    let replays = cursors::judge(&host, &live, options.quiet).await;
    let events = judge_events(&host, &mut identities, is_relay, &live, &replays).await;
    let last_live = live.ends.map_or(0, |(_, last)| last);
    reconcile::judge(&host, &listing, &accounts, &seen, &events, last_live).await;
    if identities.outages > 0 && events.counts.proved == 0 {
        let text = format!("{} lookups without an answer", identities.outages);
        host.note(Finding::of(&rule::NO_KEYS, "identity", text));
    }
    let answers = host.answered();
    let (findings, codes) = host.take_findings().finish();
    let codes: Vec<CodeCount> =
        codes.into_iter().map(|(code, kind, count)| CodeCount { code, kind, count }).collect();
    let has = |kind| codes.iter().any(|count| count.kind == kind);
    let verdict = match (has(Kind::Violation), has(Kind::Unknown)) {
        (true, _) => "faulty",
        (false, true) => "unanswered",
        (false, false) => "sound",
    };
    Judgement {
        host: sanitize(&url.origin().ascii_serialization(), MAX_HOST_CHARS),
        kind,
        verdict,
        accounts: accounts.len(),
        repositories: accounts.values().filter(|facts| facts.proved_rev.is_some()).count(),
        stream: events.counts,
        answers,
        codes,
        findings,
    }
}

/// The answers while the stream was heard.
struct Asked {
    kind: &'static str,
    listing: Listing,
    accounts: BTreeMap<String, AccountFacts>,
}

/// Lists the accounts, and asks for a sample of them.
async fn ask_accounts(host: &Host, identities: &mut Identities, options: &Options) -> Asked {
    let until = Instant::now() + options.max_accounts_time;
    let is_relay = has_hosts(host).await;
    let listing = list::read(host).await;
    let sample = listing.sample(options.accounts);
    let kind = match is_relay {
        true => "relay",
        false if is_named(host, identities, &sample).await => "pds",
        false => "unknown",
    };
    let mut accounts = BTreeMap::new();
    let mut judge = AccountJudge { host, identities, is_relay: kind != "pds", options };
    judge.judge_unknown().await;
    for did in sample {
        if Instant::now() >= until {
            break;
        }
        let facts = judge.judge(&did).await;
        accounts.insert(did, facts);
    }
    Asked { kind, listing, accounts }
}

/// A relay lists the hosts that it reads.
async fn has_hosts(host: &Host) -> bool {
    let reply = host.ask("listHosts", &[("limit", "1")], &Limits::LIST).await;
    matches!(reply, Reply::Body(_) | Reply::TooLong(_))
}

/// Whether the document of one of some accounts names the host as their server: relays need not have `listHosts`.
async fn is_named(host: &Host, identities: &mut Identities, sample: &[String]) -> bool {
    for did in sample.iter().take(MAX_NAMING_ACCOUNTS) {
        let identity = identities.get(did).await;
        if identity
            .is_some_and(|identity| identity.server.is_some() && !is_elsewhere(&identity, host))
        {
            return true;
        }
    }
    false
}

/// Asks for the status of accounts of the live stream, as soon as it was heard.
async fn ask_seen(
    host: &Host,
    identities: &mut Identities,
    is_relay: bool,
    options: &Options,
    live: &Heard,
) -> BTreeMap<String, reconcile::Stated> {
    let sequence = sequence::read(&live.arrivals);
    let frames = sequence.numbered.values();
    let of_kind = |is_account: bool| {
        let frames = frames.clone();
        frames.filter(move |frame| (frame.kind == net::firehose::FrameKind::Account) == is_account)
    };
    // Those whose status has changed first.
    let dids = of_kind(true).chain(of_kind(false)).filter_map(|frame| frame.did.clone());
    let dids = dids.filter(|did| Did::parse(did).is_ok());
    let (mut seen, judge) = (BTreeMap::new(), AccountJudge { host, identities, is_relay, options });
    for did in dids {
        if seen.len() >= options.accounts {
            break;
        }
        if let Entry::Vacant(unknown) = seen.entry(did) {
            let answer = judge.status(unknown.key()).await;
            unknown.insert(reconcile::Stated::of(answer));
        }
    }
    seen
}

/// Judges the live stream and the oldest events, with earlier keys where they are needed.
async fn judge_events(
    host: &Host,
    identities: &mut Identities,
    is_relay: bool,
    live: &Heard,
    replays: &cursors::Replays,
) -> StreamJudgement {
    let mut keys = Keys { is_relay, ..Keys::default() };
    let elsewhere = add_keys(&mut keys, identities, &live.arrivals, host).await;
    add_keys(&mut keys, identities, &replays.oldest, host).await;
    let stream = Stream {
        oldest: &replays.oldest,
        live: &live.arrivals,
        replay: replays.of_live.as_deref(),
    };
    let mut judged = judge_stream(&stream, &keys);
    let suspects: BTreeSet<String> = judged.unfitting.iter().chain(&elsewhere).cloned().collect();
    for (number, did) in suspects.iter().enumerate() {
        let identity = match number < MAX_HISTORIES {
            true => identities.with_history(did).await,
            false => None,
        };
        let Some(identity) = identity else {
            // Without all its keys, nothing is decided.
            keys.keys.remove(did);
            continue;
        };
        keys.keys.insert(did.clone(), identity.compressed());
        if !is_relay
            && is_elsewhere(&identity, host)
            && let Some(since) = identity.served_since
        {
            keys.elsewhere.insert(did.clone(), since);
        }
    }
    if !suspects.is_empty() {
        judged = judge_stream(&stream, &keys);
    }
    for finding in std::mem::take(&mut judged.findings) {
        let cursor = finding.seq.map(|seq| (seq - 1).max(0));
        host.note(finding.seen_by(listen::command(host, cursor)));
    }
    judged
}

/// Looks up the accounts of a stream; returns those that another server hosts.
async fn add_keys(
    keys: &mut Keys,
    identities: &mut Identities,
    arrivals: &[Arrival],
    host: &Host,
) -> BTreeSet<String> {
    let mut elsewhere = BTreeSet::new();
    let sequence = sequence::read(arrivals);
    for did in sequence.numbered.values().filter_map(|frame| frame.did.as_ref()) {
        if keys.keys.contains_key(did) {
            continue;
        }
        let Some(identity) = identities.get(did).await else { continue };
        keys.keys.insert(did.clone(), identity.compressed());
        if !keys.is_relay && is_elsewhere(&identity, host) {
            elsewhere.insert(did.clone());
        }
    }
    elsewhere
}

fn is_elsewhere(identity: &Identity, host: &Host) -> bool {
    identity.server.as_ref().is_some_and(|server| server.origin() != host.url.origin())
}

/// The time of this machine in microseconds since 1970.
pub(crate) fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Lookups in the directory, by the number of sampled accounts.
const LOOKUPS_PER_ACCOUNT: usize = 10;
const MIN_LOOKUPS: usize = 100;
/// Accounts whose documents decide whether the host is a PDS.
const MAX_NAMING_ACCOUNTS: usize = 10;
/// Accounts whose earlier keys are looked up.
const MAX_HISTORIES: usize = 50;
const MAX_HOST_CHARS: usize = 200;
