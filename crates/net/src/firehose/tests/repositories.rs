//! Repositories that are fetched for resyncs: attempts, keys and revisions.

use std::io::{Read, Seek, Write};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atproto::did_document::{self, DidDocument};
use atproto::syntax::{Did, Tid};
use codec::Cid;
use crypto::PublicKey;
use futures_util::FutureExt;
use reqwest::header;
use tokio::time::Instant;
use verify::sync::{AccountState, Head, Policy, SyncState};

use super::super::resync::{
    AccountLookup, Expected, MAX_RESYNC_LOOKUPS, PartFetch, RepoFetch, RepoSource, Resyncer,
};
use super::super::resynced_repo::ResyncResult;
use super::super::*;
use super::support::*;
use crate::dns::LoopbackDns;
use crate::http::{HttpFault, Url, authority};
use crate::identity::{self, Account, IdentityError, IdentityFault};
use crate::loopback_server::{response, serve};
use crate::rate_limit::RateLimiter;
use crate::xrpc::{
    FetchedRepo, NamedError, RequestTurn, SliceError, WantedPart, XrpcError, XrpcFault,
};

/// The answers of a source, and the requests to it.
#[derive(Debug)]
struct Source {
    account: Result<Account, IdentityError>,
    refreshed: Option<Account>,
    archive: Result<Vec<u8>, XrpcFault>,
    /// The part with the wanted collections, or why there is none.
    part: Result<Vec<u8>, Option<SliceError>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Account,
    AccountRefreshed,
    Part,
    /// A part of this commit.
    PartOf(Cid),
    Repository,
}

impl RepoSource for Source {
    fn account<'a>(&'a self, _: Did<'a>, refresh: bool) -> AccountLookup<'a> {
        let asked = if refresh { Asked::AccountRefreshed } else { Asked::Account };
        self.asked.lock().unwrap().push(asked);
        let refreshed = self.refreshed.clone().filter(|_| refresh);
        let account = refreshed.map_or_else(|| self.account.clone(), Ok);
        Box::pin(async move { account.map(Arc::new) })
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Url,
        _: Did<'a>,
        out: &'a mut (dyn Write + Send),
    ) -> RepoFetch<'a> {
        self.asked.lock().unwrap().push(Asked::Repository);
        Box::pin(async move {
            let host: Box<str> = host.as_str().into();
            let failed = |fault| XrpcError { host: host.clone(), method: "getRepo", fault };
            let archive = self.archive.clone().map_err(failed)?;
            out.write_all(&archive)?;
            let bytes = archive.len() as u64;
            Ok(FetchedRepo { host, bytes, wire_bytes: bytes })
        })
    }

    fn fetch_part<'a>(
        &'a self,
        host: &'a Url,
        _: Did<'a>,
        wanted: WantedPart<'a>,
        turn: &'a dyn RequestTurn,
        out: &'a mut (dyn Write + Send),
    ) -> PartFetch<'a> {
        self.asked.lock().unwrap().push(wanted.commit.map_or(Asked::Part, Asked::PartOf));
        Box::pin(async move {
            turn.wait().await?;
            let Ok(part) = &self.part else { return Ok(Err(self.part.clone().unwrap_err())) };
            out.write_all(part)?;
            let bytes = part.len() as u64;
            Ok(Ok(FetchedRepo { host: host.as_str().into(), bytes, wire_bytes: bytes }))
        })
    }
}

/// The account of a writer, at a host.
fn account(writer: &Writer) -> Account {
    let json = format!("{{\"id\":\"{}\"}}", writer.did);
    let document = DidDocument::parse(json.as_bytes(), &did_document::Options::default()).unwrap();
    let key = Some(PublicKey::try_from(writer.key()).unwrap());
    Account { key, host: Some("https://pds.test".parse().unwrap()), document }
}

impl Source {
    /// A source of the writer's account and repository.
    fn of(writer: &mut Writer) -> Self {
        let archive = Ok(writer.archive());
        let account = Ok(account(writer));
        Self { account, refreshed: None, archive, part: Err(None), asked: Arc::default() }
    }

    /// Resyncs the writer's account; returns the requests.
    async fn resync(self, writer: &Writer, known: Option<Head>) -> (ResyncResult, Vec<Asked>) {
        let known = AccountState { head: known, ..AccountState::UNKNOWN };
        self.resync_by(resync_options(), writer, known).await
    }

    /// Resyncs a collection of the writer's account; returns the requests.
    async fn resync_collection(self, writer: &Writer) -> (ResyncResult, Vec<Asked>) {
        let options = ResyncOptions { is_paced: true, ..resync_options() };
        options.collections.replace(Some(["app.bsky.feed.post".parse().unwrap()]));
        self.resync_by(options, writer, AccountState::UNKNOWN).await
    }

    /// Resyncs the writer's account, whose consumer has all likes and lacks the posts; returns the requests.
    async fn resync_widened(
        self,
        writer: &Writer,
        known: AccountState,
    ) -> (ResyncResult, Vec<Asked>) {
        let (post, like) = ("app.bsky.feed.post", "app.bsky.feed.like");
        let options = resync_options();
        options.collections.replace(Some([post, like].map(|name| name.parse().unwrap())));
        options.collections.replace_base([like.parse().unwrap()]);
        options.collections.widen(&writer.did);
        self.resync_by(options, writer, known).await
    }

    async fn resync_by(
        self,
        options: ResyncOptions,
        writer: &Writer,
        known: AccountState,
    ) -> (ResyncResult, Vec<Asked>) {
        let asked = self.asked.clone();
        let resyncer = Resyncer::from_source(Box::new(self), options, Policy::default());
        let result = resyncer.resync(&writer.did, known).await;
        let asked = asked.lock().unwrap().clone();
        (result, asked)
    }
}

#[tokio::test]
async fn a_repository_whose_signature_does_not_match_is_checked_with_the_key_as_it_is_now() {
    let mut writer = Writer::new(0);
    let before = account(&writer);
    writer.rotate();
    let mut source = Source::of(&mut writer);
    (source.refreshed, source.account) = (source.account.ok(), Ok(before));
    let (result, asked) = source.resync(&writer, None).await;
    assert_eq!(result.unwrap().head.rev, writer.rev().unwrap());
    assert_eq!(asked, [Asked::Account, Asked::Repository, Asked::AccountRefreshed]);
}

#[tokio::test(start_paused = true)]
async fn a_repository_that_breaks_another_rule_is_fetched_again_with_the_same_key() {
    let mut writer = Writer::new(0);
    let mut source = Source::of(&mut writer);
    source.archive = source.archive.map(|archive| archive[..archive.len() - 1].to_vec());
    let (result, asked) = source.resync(&writer, None).await;
    assert!(matches!(result, Err(ResyncError::Rejected { .. })));
    assert_eq!(asked, [Asked::Account, Asked::Repository].repeat(3));
}

#[tokio::test]
async fn wanted_collections_are_proved_by_their_part_of_the_repository() {
    let mut writer = Writer::new(0);
    let part = Ok(writer.archive());
    let source = Source { part, ..Source::of(&mut Writer::new(0)) };
    let (result, asked) = source.resync_collection(&writer).await;
    let resynced = result.unwrap();
    assert_eq!(resynced.collections.as_deref(), Some(&["app.bsky.feed.post".parse().unwrap()][..]));
    assert_eq!(
        (resynced.head.rev, resynced.head.data),
        (writer.rev().unwrap(), writer.head().data)
    );
    assert!(resynced.part_refusal.is_none());
    assert_eq!(asked, [Asked::Account, Asked::Part]);
}

#[tokio::test]
async fn a_whole_repository_replaces_a_part_that_is_refused_and_says_why() {
    let refused = SliceError::Unrequested { requested: 1, received: 2 };
    for (part, code) in [
        (Ok(Writer::new(0).archive_without_tree()), Some("tree/missing-node")),
        (Ok(b"no archive".to_vec()), Some("car/truncated")),
        (Err(Some(refused)), Some("car/extra")),
        (Err(None), None),
    ] {
        let mut writer = Writer::new(0);
        let source = Source { part, ..Source::of(&mut writer) };
        let (result, asked) = source.resync_collection(&writer).await;
        let resynced = result.unwrap();
        let refusal = resynced.part_refusal.as_ref();
        assert_eq!(refusal.and_then(PartRefusal::code), code);
        assert!(resynced.collections.is_none());
        assert_eq!(asked, [Asked::Account, Asked::Part, Asked::Repository]);
    }
}

/// The state of the writer's account at the commit of an archive.
async fn known_at(writer: &Writer, archive: &[u8]) -> AccountState {
    let source = Source { archive: Ok(archive.to_vec()), ..Source::of(&mut Writer::new(0)) };
    let (result, _) = source.resync(writer, None).await;
    AccountState { head: Some(result.unwrap().head), ..AccountState::UNKNOWN }
}

#[tokio::test]
async fn added_collections_are_fetched_at_the_known_commit_unless_an_event_was_missed() {
    let mut writer = Writer::new(0);
    let archive = writer.archive();
    let known = known_at(&writer, &archive).await;
    let commit = known.head.unwrap().commit;
    let source = || Source { part: Ok(archive.clone()), ..Source::of(&mut Writer::new(0)) };

    let (result, asked) = source().resync_widened(&writer, known).await;
    let resynced = result.unwrap();
    assert_eq!(resynced.head.commit, commit);
    assert_eq!(asked, [Asked::Account, Asked::PartOf(commit)]);
    assert_eq!(resynced.collections.as_deref(), Some(&["app.bsky.feed.post".parse().unwrap()][..]));
    assert_eq!(resynced.base.as_deref(), Some(&["app.bsky.feed.like".parse().unwrap()][..]));

    let missed = AccountState { sync: SyncState::Desynchronized, ..known };
    let (result, asked) = source().resync_widened(&writer, missed).await;
    assert!(result.unwrap().base.is_none());
    assert_eq!(asked, [Asked::Account, Asked::Part]);
}

#[tokio::test]
async fn without_the_known_commit_all_wanted_collections_are_fetched_and_no_refusal_is_noted() {
    let mut writer = Writer::new(0);
    let earlier = writer.archive();
    let known = known_at(&writer, &earlier).await;
    let commit = known.head.unwrap().commit;
    let archive = writer.archive();
    let now = known_at(&writer, &archive).await.head;
    let refused = SliceError::NoCommit("getBlocks");
    // A part of another commit, and one that is not served.
    for (part, last) in
        [(Ok(archive.clone()), Asked::Part), (Err(Some(refused)), Asked::Repository)]
    {
        let is_part = part.is_ok();
        let archive = Ok(archive.clone());
        let source = Source { part, archive, ..Source::of(&mut Writer::new(0)) };
        let (result, asked) = source.resync_widened(&writer, known).await;
        let resynced = result.unwrap();
        assert_eq!((resynced.base.as_deref(), Some(resynced.head)), (None, now));
        assert_eq!(resynced.collections.is_some(), is_part);
        assert_eq!(resynced.part_refusal.is_none(), is_part, "of the present commit");
        assert_eq!((asked[1], asked.last()), (Asked::PartOf(commit), Some(&last)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_repository_must_be_at_the_known_revision_or_later() {
    for (ahead, is_outdated) in [(-1, false), (0, false), (1, true)] {
        let mut writer = Writer::new(0);
        let source = Source::of(&mut writer);
        let head = writer.head();
        let rev = Tid::new(head.rev.micros().checked_add_signed(ahead).unwrap(), 0);
        let (result, asked) = source.resync(&writer, Some(Head { rev, ..head })).await;
        assert_eq!(matches!(result, Err(ResyncError::Outdated { .. })), is_outdated);
        assert_eq!((result.is_ok(), asked.len()), (!is_outdated, if is_outdated { 6 } else { 2 }));
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_may_pass_is_tried_three_times() {
    let identity = |fault| {
        let mut source = Source::of(&mut Writer::new(0));
        source.account = Err(IdentityError { subject: "did:plc:a".into(), host: None, fault });
        source
    };
    let fetch = |fault| Source { archive: Err(fault), ..Source::of(&mut Writer::new(0)) };
    let too_slow = HttpFault::Timeout(Duration::from_secs(1));
    let no_key = {
        let mut source = Source::of(&mut Writer::new(0));
        source.account = source.account.map(|account| Account { key: None, ..account });
        source
    };
    for (source, attempts) in [
        (identity(IdentityFault::DnsTimeout), 3),
        (identity(IdentityFault::NotFound), 1),
        (fetch(XrpcFault::Status(503)), 3),
        (fetch(XrpcFault::Status(404)), 1),
        (fetch(XrpcFault::Http(too_slow)), 1),
        (no_key, 1),
    ] {
        let what = format!("{source:?}");
        let (result, asked) = source.resync(&Writer::new(0), None).await;
        assert!(result.is_err());
        let lookups = asked.into_iter().filter(|asked| *asked == Asked::Account);
        assert_eq!(lookups.count(), attempts, "{what}");
    }
}

#[tokio::test]
async fn accounts_beyond_the_queue_are_refused_until_others_are_done() {
    let mut writer = Writer::new(0);
    let options = ResyncOptions { max_queued: 4, max_fetches: 1, ..resync_options() };
    let source = Box::new(Source::of(&mut writer));
    let resyncer = Resyncer::from_source(source, options, Policy::default());
    for _ in 0..2 {
        let held: Vec<_> = (0..6).map(|_| resyncer.enqueue()).collect();
        let refused = held.iter().filter(|slot| matches!(slot, Err(ResyncError::QueueFull)));
        assert_eq!(refused.count(), 2);
    }
}

#[tokio::test]
async fn a_fetched_archive_has_no_name_and_is_whole() {
    let mut writer = Writer::new(0);
    let source = Source::of(&mut writer);
    let archive = source.archive.clone().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = ResyncOptions { folder: folder.path().into(), ..resync_options() };
    let resyncer = Resyncer::from_source(Box::new(source), options, Policy::default());
    let resynced = resyncer.resync(&writer.did, AccountState::UNKNOWN).await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let (mut file, mut bytes) = (resynced.file(), Vec::new());
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, archive);
}

#[tokio::test]
async fn a_resynced_repository_counts_as_in_use_until_the_program_drops_it() {
    let mut writer = Writer::new(0);
    let source = Box::new(Source::of(&mut writer));
    let resyncer = Resyncer::from_source(source, resync_options(), Policy::default());
    let resynced = resyncer.resync(&writer.did, AccountState::UNKNOWN).await.unwrap();
    assert!(resyncer.space().used_bytes() >= resynced.bytes);
    drop(resynced);
    assert_eq!(resyncer.space().used_bytes(), 0);
}

/// A host that sends archives of zeros in parts of a MiB.
#[derive(Debug)]
struct Zeros {
    account: Arc<Account>,
    mib: u64,
}

impl RepoSource for Zeros {
    fn account<'a>(&'a self, _: Did<'a>, _: bool) -> AccountLookup<'a> {
        Box::pin(std::future::ready(Ok(self.account.clone())))
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Url,
        _: Did<'a>,
        out: &'a mut (dyn Write + Send),
    ) -> RepoFetch<'a> {
        Box::pin(async move {
            for _ in 0..self.mib {
                out.write_all(&[0; 1 << 20])?;
                tokio::task::yield_now().await;
            }
            let bytes = self.mib << 20;
            Ok(FetchedRepo { host: host.as_str().into(), bytes, wire_bytes: bytes })
        })
    }
}

#[tokio::test]
async fn the_archives_of_all_resyncs_stay_within_one_bound_until_they_are_verified() {
    const MIB: u64 = 1 << 20;
    let writer = Writer::new(0);
    let source = Zeros { account: Arc::new(account(&writer)), mib: 24 };
    let mut options = ResyncOptions { attempts: 1, max_bytes_in_use: 48 * MIB, ..resync_options() };
    options.limits.max_bytes = 24 * MIB;
    (options.max_fetches_per_domain, options.max_fetches_per_host) = (16, 16);
    let resyncer = Resyncer::from_source(Box::new(source), options, Policy::default());
    let dids: Vec<String> = (0..16).map(|number| format!("did:web:a{number}.test")).collect();
    let resyncs = dids.iter().map(|did| resyncer.resync(did, AccountState::UNKNOWN));
    for result in futures_util::future::join_all(resyncs).await {
        assert!(matches!(result, Err(ResyncError::Rejected { .. })), "{result:?}");
    }
    let space = resyncer.space();
    assert_eq!(space.max_bytes(), 48 * MIB);
    assert!(space.peak_bytes() <= space.max_bytes(), "{}", space.peak_bytes());
    assert!(space.peak_bytes() >= 24 * MIB, "{}", space.peak_bytes());
    assert_eq!(space.used_bytes(), 0);
}

/// A directory and hosts that never answer, with the number of lookups.
#[derive(Debug, Default)]
struct Away(Arc<AtomicUsize>);

impl RepoSource for Away {
    fn account<'a>(&'a self, _: Did<'a>, _: bool) -> AccountLookup<'a> {
        self.0.fetch_add(1, Relaxed);
        Box::pin(std::future::pending())
    }

    fn fetch<'a>(&'a self, _: &'a Url, _: Did<'a>, _: &'a mut (dyn Write + Send)) -> RepoFetch<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_few_accounts_are_looked_up_in_the_directory_at_once_and_hosts_do_not_wait_for_it() {
    let source = Away::default();
    let lookups = source.0.clone();
    let resyncer = Resyncer::from_source(Box::new(source), resync_options(), Policy::default());
    let dids = |method: &'static str| (0..40).map(move |at| format!("did:{method}:a{at}"));
    let dids: Vec<_> = dids("plc").chain(dids("web")).collect();
    let mut resyncs: Vec<_> =
        dids.iter().map(|did| Box::pin(resyncer.resync(did, AccountState::UNKNOWN))).collect();
    for resync in &mut resyncs[..40] {
        assert!(resync.as_mut().now_or_never().is_none());
    }
    assert_eq!(lookups.load(Relaxed), MAX_RESYNC_LOOKUPS);
    for resync in &mut resyncs[40..] {
        assert!(resync.as_mut().now_or_never().is_none());
    }
    assert_eq!(lookups.load(Relaxed), MAX_RESYNC_LOOKUPS + 40);
}

/// A host that never answers.
#[derive(Debug)]
struct Silent(Arc<Account>);

impl RepoSource for Silent {
    fn account<'a>(&'a self, _: Did<'a>, _: bool) -> AccountLookup<'a> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }

    fn fetch<'a>(&'a self, _: &'a Url, _: Did<'a>, _: &'a mut (dyn Write + Send)) -> RepoFetch<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn the_hosts_of_one_domain_fill_a_quarter_of_the_queue() {
    let writer = Writer::new(0);
    let options = ResyncOptions { max_queued: 8, max_fetches_per_host: 1, ..resync_options() };
    let source = Box::new(Silent(Arc::new(account(&writer))));
    let resyncer = Resyncer::from_source(source, options, Policy::default());
    let mut resyncs: Vec<_> =
        (0..4).map(|_| Box::pin(resyncer.resync(&writer.did, AccountState::UNKNOWN))).collect();
    let ended: Vec<_> = resyncs.iter_mut().map(|resync| resync.as_mut().now_or_never()).collect();
    // One is fetched, and two wait.
    assert!(matches!(ended[..], [None, None, None, Some(Err(ResyncError::QueueFull))]));
}

/// Time of the fetches of 100 repositories, one after the other, from a host that answers with this fault.
async fn time_of_fetches(fault: XrpcFault, is_paced: bool) -> Duration {
    let source = Source { archive: Err(fault), ..Source::of(&mut Writer::new(0)) };
    let options = ResyncOptions { attempts: 1, is_paced, ..resync_options() };
    let resyncer = Resyncer::from_source(Box::new(source), options, Policy::default());
    let started = Instant::now();
    for number in 0..100 {
        resyncer
            .resync(&format!("did:web:a{number}.test"), AccountState::UNKNOWN)
            .await
            .unwrap_err();
    }
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn paced_fetches_are_sent_at_a_rate_that_adapts_to_their_host() {
    assert_eq!(time_of_fetches(XrpcFault::Status(503), false).await, Duration::ZERO);
    let answered = time_of_fetches(XrpcFault::Status(404), true).await.as_secs();
    assert!((2..4).contains(&answered), "{answered} s, and 12 at the initial rate");
    let too_slow = XrpcFault::Http(HttpFault::Timeout(Duration::from_secs(1)));
    for overloaded in [XrpcFault::Status(503), XrpcFault::Status(429), too_slow] {
        let time = time_of_fetches(overloaded, true).await;
        assert!(time > Duration::from_secs(150), "{time:?}");
    }
}

/// A source whose host rejects the first fetches, every time with the second after which it may be asked
/// again.
#[derive(Debug)]
struct Limited {
    limiter: RateLimiter,
    rejections: AtomicUsize,
    source: Source,
}

impl RepoSource for Limited {
    fn account<'a>(&'a self, did: Did<'a>, refresh: bool) -> AccountLookup<'a> {
        self.source.account(did, refresh)
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Url,
        did: Did<'a>,
        out: &'a mut (dyn Write + Send),
    ) -> RepoFetch<'a> {
        if self.rejections.load(Relaxed) == 0 {
            return self.source.fetch(host, did, out);
        }
        self.rejections.fetch_sub(1, Relaxed);
        let headers = [(header::RETRY_AFTER, "1".parse().unwrap())].into_iter().collect();
        self.limiter.record_response(&authority(host), 429, &headers);
        let (host, fault) = (host.as_str().into(), XrpcFault::Status(429));
        Box::pin(async move { Err(XrpcError { host, method: "getRepo", fault }.into()) })
    }
}

#[tokio::test(start_paused = true)]
async fn rejections_that_name_their_end_leave_the_rate_of_paced_fetches_as_it_is() {
    let options = ResyncOptions { attempts: 1, is_paced: true, ..resync_options() };
    let missing = XrpcFault::Status(404);
    let source = Limited {
        limiter: options.client.rate_limiter().clone(),
        rejections: AtomicUsize::new(8),
        source: Source { archive: Err(missing), ..Source::of(&mut Writer::new(0)) },
    };
    let resyncer = Resyncer::from_source(Box::new(source), options, Policy::default());
    let started = Instant::now();
    for number in 0..100 {
        resyncer
            .resync(&format!("did:web:a{number}.test"), AccountState::UNKNOWN)
            .await
            .unwrap_err();
    }
    let time = started.elapsed().as_secs();
    assert!((8..13).contains(&time), "{time} s, of which 8 are those of the rejections");
}

/// Number of requests of one resync to a host that rejects the first ones, with this `Retry-After`.
async fn requests_of(is_paced: bool, rejected: usize, retry_after: &'static str) -> usize {
    let (writer, asked) = (Writer::new(0), Arc::<AtomicUsize>::default());
    let count = asked.clone();
    let limit = move |_: &_| match count.fetch_add(1, Relaxed) {
        number if number < rejected => {
            response(429, &format!("retry-after: {retry_after}\r\n"), "")
        }
        _ => response(404, "", ""),
    };
    let host = format!("http://localhost:{}", serve(limit).await);
    let document = format!(
        r##"{{"id":"{}","service":[{{"id":"#atproto_pds","type":"AtprotoPersonalDataServer",
            "serviceEndpoint":"{host}"}}]}}"##,
        writer.did
    );
    let directory = serve(move |_| response(200, "", &document)).await;
    let directory = format!("http://localhost:{directory}").parse().unwrap();
    let identity = identity::Options { directory, ..identity::Options::default() };
    let resolver = identity::Resolver::new(http_client(), Arc::new(LoopbackDns), identity);
    let options = ResyncOptions { attempts: 1, is_paced, resolver, ..resync_options() };
    let resync =
        Resyncer::new(options, Policy::default()).resync(&writer.did, AccountState::UNKNOWN).await;
    assert!(matches!(resync, Err(ResyncError::Fetch(_))), "{resync:?}");
    asked.load(Relaxed)
}

#[tokio::test]
async fn a_paced_fetch_is_one_request_and_waits_for_limits_before_it() {
    let (unpaced, paced) = (requests_of(false, 9, "0").await, requests_of(true, 9, "0").await);
    assert_eq!((unpaced, paced), (3, 1));
}

#[tokio::test]
async fn a_limit_that_the_host_of_a_paced_fetch_names_is_waited_for_without_an_attempt() {
    assert_eq!(requests_of(true, 1, "1").await, 2);
}

#[tokio::test]
async fn a_resync_of_what_is_no_did_is_not_repeated() {
    let options = ResyncOptions { retries: 1, ..resync_options() };
    let resyncer = Resyncer::new(options, Policy::default());
    let error = resyncer.resync("no DID", AccountState::UNKNOWN).await.unwrap_err();
    assert!(matches!(error, ResyncError::InvalidDid(_)), "{error}");
    assert_eq!(resyncer.retry_delay("no DID", &error, 0, Expected::Anything), None);
}

#[tokio::test(start_paused = true)]
async fn a_failed_resync_is_repeated_some_times_unless_the_host_says_that_it_serves_nothing() {
    let writer = Writer::new(0);
    let takedown = || XrpcFault::Named(NamedError::new("RepoTakendown", "", 400));
    for (fault, expected, is_repeated) in [
        (XrpcFault::Status(503), Expected::Anything, true),
        (takedown(), Expected::Anything, false),
        // The stream calls the account active: its server may be behind.
        (takedown(), Expected::Repository, true),
    ] {
        let source = Source { archive: Err(fault), ..Source::of(&mut Writer::new(0)) };
        let options = ResyncOptions { retries: 2, ..resync_options() };
        let resyncer = Resyncer::from_source(Box::new(source), options, Policy::default());
        let delays = async {
            let mut delays = Vec::new();
            for retries in 0.. {
                let error = resyncer.resync(&writer.did, AccountState::UNKNOWN).await.unwrap_err();
                let delay = resyncer.retry_delay(&writer.did, &error, retries, expected);
                let Some(delay) = delay else { break };
                delays.push(delay.as_secs());
                tokio::time::sleep(delay).await;
            }
            delays
        };
        let expected: &[u64] = if is_repeated { &[60, 120] } else { &[] };
        assert_eq!(delays.await, expected);
    }
}
