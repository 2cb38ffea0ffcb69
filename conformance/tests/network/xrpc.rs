//! Repositories, records and lists from PDSs and relays.

use std::sync::Arc;
use std::time::{Duration, Instant};

use atproto::syntax::{Did, Nsid, RecordKey};
use codec::{Cid, car};
use crypto::PublicKey;
use net::dns::LoopbackDns;
use net::egress::{EgressError, EgressPolicy};
use net::http::{self, HttpFault, Limits};
use net::rate_limit::RateLimiter;
use net::xrpc::{
    Client, ErrorName, FetchError, PaceOptions, PacedClient, PageOptions, XrpcError, XrpcFault,
};
use simnet::servers::{
    AccountInfo, AccountStatus, Fault, FaultSchedule, RequestLimit, Server, Simulation, Spec,
};
use verify::{record, repository};

const PDS: Server = Server::Pds(0);
const RELAY: Server = Server::Relay(0);

fn sim() -> Simulation {
    let spec = Spec { accounts: 6, records: 20, ..Spec::default() };
    Simulation::start(spec).expect("ports for a small network")
}

fn client() -> Client {
    Client::new(http::Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap())
}

/// A network in which a PDS has this fault, and one of its accounts.
fn with_fault(fault: Fault, schedule: FaultSchedule) -> (Simulation, AccountInfo) {
    let sim = sim();
    sim.faults().enable(PDS, fault, schedule);
    let account = sim.account(0);
    (sim, account)
}

/// Fetches the repository of `account` from `server`, within these bounds.
async fn fetch(
    sim: &Simulation,
    server: Server,
    account: &AccountInfo,
    limits: &Limits,
) -> Result<Vec<u8>, XrpcError> {
    fetch_by(&client(), sim, server, account, limits).await
}

async fn fetch_by(
    client: &Client,
    sim: &Simulation,
    server: Server,
    account: &AccountInfo,
    limits: &Limits,
) -> Result<Vec<u8>, XrpcError> {
    let mut archive = Vec::new();
    match client.fetch_repo(&url(sim, server), did(account), &mut archive, limits).await {
        Ok(fetched) => {
            assert_eq!(fetched.bytes, archive.len() as u64);
            Ok(archive)
        }
        Err(FetchError::Remote(error)) => Err(error),
        Err(FetchError::Local(error)) => panic!("{error}"),
    }
}

fn url<U: std::str::FromStr<Err: std::fmt::Debug>>(sim: &Simulation, server: Server) -> U {
    sim.url(server).parse().unwrap()
}

fn did(account: &AccountInfo) -> Did<'_> {
    Did::parse(&account.did).unwrap()
}

fn key(account: &AccountInfo) -> PublicKey {
    PublicKey::from_did_key(&account.signing_key).unwrap()
}

/// The authority of a server's URL.
fn host(sim: &Simulation, server: Server) -> String {
    format!("localhost:{}", sim.port(server))
}

const LIMITS: Limits = Limits::REPOSITORY;

#[tokio::test]
async fn a_repository_comes_whole_from_its_host_and_through_a_relay() {
    let sim = sim();
    for number in 0..2 {
        let account = sim.account(number);
        for server in [Server::Pds(account.host), RELAY] {
            let archive = fetch(&sim, server, &account, &LIMITS).await.unwrap();
            let (did, key) = (Some(&*account.did), key(&account));
            let options = repository::Options::default();
            repository::verify(&archive, did, &key, &options).expect("a repository that holds");
        }
    }
}

#[tokio::test]
async fn the_host_of_a_response_or_an_error_is_reported_even_after_a_redirect() {
    let sim = sim();
    let (account, relay) = (sim.account(0), url(&sim, RELAY));
    let client = client();
    let fetched = client.fetch_repo(&relay, did(&account), &mut Vec::new(), &LIMITS).await.unwrap();
    assert_eq!(*fetched.host, sim.url(PDS));
    sim.stop_server(PDS);
    let error = fetch(&sim, RELAY, &account, &LIMITS).await.unwrap_err();
    assert_eq!(*error.host, host(&sim, PDS));
    assert!(matches!(error.fault, XrpcFault::Http(HttpFault::Connect(_))), "{error}");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn refusals_are_reported_by_name() {
    let sim = sim();
    for (status, name) in [
        (AccountStatus::TakenDown, ErrorName::RepoTakendown),
        (AccountStatus::Suspended, ErrorName::RepoSuspended),
        (AccountStatus::Deactivated, ErrorName::RepoDeactivated),
        (AccountStatus::Deleted, ErrorName::RepoNotFound),
    ] {
        sim.set_account_status(0, status);
        for server in [PDS, RELAY] {
            let error = fetch(&sim, server, &sim.account(0), &LIMITS).await.unwrap_err();
            assert_eq!(error.name(), Some(&name), "{error}");
            assert!(!error.is_retryable());
        }
        let latest = client().get_latest_commit(&url(&sim, PDS), did(&sim.account(0))).await;
        assert_eq!(latest.unwrap_err().name(), Some(&name));
    }
}

#[tokio::test]
async fn a_busy_host_is_asked_again_when_it_said_and_others_at_once() {
    let (sim, account) = with_fault(Fault::RequestTooMany, FaultSchedule::ONCE.with_amount(1));
    let since = Instant::now();
    fetch(&sim, PDS, &account, &LIMITS).await.unwrap();
    assert!(since.elapsed() >= Duration::from_secs(1));
    assert_eq!(sim.request_counts(PDS).values().sum::<u64>(), 2);
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_host_that_asks_for_more_patience_than_there_is_is_left_alone() {
    let (sim, account) = with_fault(Fault::RequestTooMany, FaultSchedule::ONCE.with_amount(60));
    let client =
        client().with_rate_limiter(RateLimiter::new(Duration::from_secs(5))).with_attempts(1);
    let error = fetch_by(&client, &sim, PDS, &account, &LIMITS).await.unwrap_err();
    assert_eq!(error.name(), Some(&ErrorName::RateLimitExceeded));
    assert!(error.is_retryable());
    for server in [PDS, RELAY] {
        let error = fetch_by(&client, &sim, server, &account, &LIMITS).await.unwrap_err();
        assert!(matches!(error.fault, XrpcFault::RateLimited(_)), "{error}");
        assert_eq!(*error.host, host(&sim, PDS));
    }
    assert_eq!(sim.request_counts(PDS).values().sum::<u64>(), 1);
    let other = sim.account(1);
    fetch_by(&client, &sim, Server::Pds(1), &other, &LIMITS).await.unwrap();
}

#[tokio::test]
async fn a_page_for_people_is_no_error_of_the_protocol_but_a_status() {
    let (sim, account) = with_fault(Fault::RequestUnavailable, FaultSchedule::ALWAYS);
    let client = client().with_attempts(1);
    let error = fetch_by(&client, &sim, PDS, &account, &LIMITS).await.unwrap_err();
    assert_eq!((&error.fault, error.is_retryable()), (&XrpcFault::Status(503), true));
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_not_followed() {
    let (sim, account) = with_fault(Fault::PrivateRedirect, FaultSchedule::ALWAYS);
    let error = fetch(&sim, PDS, &account, &LIMITS).await.unwrap_err();
    let fault =
        XrpcFault::Http(HttpFault::Egress(EgressError::NotLoopback("10.0.0.1".parse().unwrap())));
    assert_eq!((error.fault, &*error.host), (fault, "10.0.0.1"));
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_repository_that_is_cut_or_stalls_or_never_ends_is_an_error() {
    let (sim, account) = with_fault(Fault::CutRepo, FaultSchedule::ONCE.with_amount(1000));
    let error = fetch(&sim, PDS, &account, &LIMITS).await.unwrap_err();
    assert!(matches!(error.fault, XrpcFault::Http(HttpFault::Transport(_))), "{error}");
    assert!(error.is_retryable());

    sim.faults().enable(PDS, Fault::StalledRepo, FaultSchedule::ONCE);
    let silence = Duration::from_millis(200);
    let limits = Limits { idle_timeout: silence, ..LIMITS };
    let error = fetch(&sim, PDS, &account, &limits).await.unwrap_err();
    assert_eq!(error.fault, XrpcFault::Http(HttpFault::Idle(silence)));

    sim.faults().enable(PDS, Fault::EndlessRepo, FaultSchedule::ONCE);
    let limits = Limits { max_bytes: 1 << 20, ..LIMITS };
    let error = fetch(&sim, PDS, &account, &limits).await.unwrap_err();
    assert_eq!(error.fault, XrpcFault::Http(HttpFault::TooLarge(1 << 20)));
    assert!(!error.is_retryable());
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_repository_that_drips_makes_no_progress() {
    let (sim, account) = with_fault(Fault::SlowRepo, FaultSchedule::ALWAYS.with_amount(50));
    let limits = Limits {
        min_bytes_per_s: 100 << 10,
        progress_window: Duration::from_millis(200),
        ..LIMITS
    };
    let error = fetch(&sim, PDS, &account, &limits).await.unwrap_err();
    assert!(matches!(error.fault, XrpcFault::Http(HttpFault::TooSlow(_))), "{error}");
    let limits = Limits { max_time: Duration::from_millis(300), ..LIMITS };
    let error = fetch(&sim, PDS, &account, &limits).await.unwrap_err();
    assert!(matches!(error.fault, XrpcFault::Http(HttpFault::Timeout(_))), "{error}");
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn what_cannot_be_written_is_our_fault_and_not_the_hosts() {
    let (sim, mut full) = (sim(), [0; 10]);
    let (host, account) = (url(&sim, PDS), sim.account(0));
    let fetched = client().fetch_repo(&host, did(&account), &mut &mut full[..], &LIMITS).await;
    assert!(matches!(fetched, Err(FetchError::Local(_))));
}

#[tokio::test]
async fn a_record_is_proved_there_or_not_there() {
    let (sim, client) = (sim(), client());
    let account = sim.account(0);
    let host = url(&sim, PDS);
    let path = sim.expected_accounts()[0].records.keys().next().unwrap().clone();
    for (path, is_there) in [(&*path, true), ("app.bsky.feed.post/3zzzzzzzzzzzz", false)] {
        let (collection, rkey) = path.split_once('/').unwrap();
        let (collection, rkey) = (Nsid::parse(collection), RecordKey::parse(rkey));
        let slice =
            client.get_record(&host, did(&account), collection.unwrap(), rkey.unwrap()).await;
        let slice = slice.unwrap();
        let options = record::Options::default();
        let proof =
            record::verify(&slice, path, Some(&account.did), &key(&account), &options).unwrap();
        assert_eq!(proof.record().is_some(), is_there, "{path}");
    }
}

#[tokio::test]
async fn blocks_come_by_their_names_or_not_at_all() {
    let (sim, client) = (sim(), client());
    let (host, expected) = (url(&sim, PDS), &sim.expected_accounts()[0]);
    let wanted = [expected.commit, expected.data];
    let did = did(&expected.account);
    let slice = client.get_blocks(&host, did, &wanted).await.unwrap();
    let read = car::read(&slice, &car::Options::default()).unwrap();
    let found: Vec<Cid> = read.blocks.iter().map(|block| block.cid.to_cid().unwrap()).collect();
    assert_eq!(found, wanted);
    let strange = "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454".parse().unwrap();
    let error = client.get_blocks(&host, did, &[strange]).await.unwrap_err();
    assert_eq!(error.name(), Some(&ErrorName::BlockNotFound));
}

#[tokio::test]
async fn the_latest_commit_and_the_status_are_returned() {
    let (sim, client) = (sim(), client());
    let (host, expected) = (url(&sim, PDS), &sim.expected_accounts()[0]);
    let latest = client.get_latest_commit(&host, did(&expected.account)).await.unwrap();
    assert_eq!(latest.cid, expected.commit);
    assert_eq!(latest.rev.to_string(), expected.rev.to_string());
    let status = client.get_repo_status(&host, did(&expected.account)).await.unwrap();
    assert_eq!((status.active, status.rev), (true, Some(latest.rev)));
    sim.set_account_status(0, AccountStatus::TakenDown);
    let status = client.get_repo_status(&host, did(&expected.account)).await.unwrap();
    assert_eq!((status.active, status.status.as_deref()), (false, Some("takendown")));
}

#[tokio::test]
async fn lists_come_page_by_page_and_go_on_at_a_cursor() {
    let (sim, client) = (sim(), client());
    let relay = url(&sim, RELAY);
    let two = PageOptions { limit: Some(2), cursor: None };
    let mut pages = client.list_repos(&relay, &two);
    let (mut found, mut second) = (Vec::new(), None);
    while let Some(page) = pages.next().await.unwrap() {
        assert!(page.items.len() <= 2);
        second = second.or(page.cursor);
        found.extend(page.items.into_iter().map(|repo| repo.did.to_string()));
    }
    let all: Vec<String> = (0..6).map(|number| sim.account(number).did).collect();
    assert_eq!(found, all);
    let rest = PageOptions { limit: None, cursor: second.as_deref() };
    let rest = client.list_repos(&relay, &rest).next().await.unwrap().unwrap();
    assert_eq!((rest.items.len(), rest.items[0].did.as_str()), (4, &*all[2]));

    let profiles = Nsid::parse("app.bsky.actor.profile").unwrap();
    let mut profiles = client.list_repos_by_collection(&relay, profiles, &PageOptions::default());
    assert_eq!(profiles.next().await.unwrap().unwrap().items.len(), 6);
    assert!(profiles.next().await.unwrap().is_none());
    let hosts = client.list_hosts(&relay, &PageOptions::default()).next().await.unwrap().unwrap();
    assert_eq!(*hosts.items[1].hostname, host(&sim, Server::Pds(1)));
    assert_eq!(hosts.items[1].account_count, Some(3));
}

#[tokio::test]
async fn a_method_that_a_server_does_not_have_is_not_asked_for_again() {
    let sim = sim();
    let pds = url(&sim, PDS);
    let error = client().list_hosts(&pds, &PageOptions::default()).next().await.unwrap_err();
    assert_eq!(error.name(), Some(&ErrorName::MethodNotImplemented));
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn a_paced_client_gets_all_repositories_of_a_host_that_limits_requests() {
    let limit = RequestLimit { requests: 9, window: Duration::from_secs(1) };
    let spec =
        Spec { accounts: 24, records: 2, pds: 1, request_limit: Some(limit), ..Spec::default() };
    let sim = Simulation::start(spec).unwrap();
    let (host, client) = (url(&sim, PDS), PacedClient::new(client(), &PaceOptions::default()));
    let options = PageOptions { limit: Some(10), cursor: None };
    let (mut pages, mut repos) = (client.client().list_repos(&host, &options), Vec::new());
    let mut answering = Duration::ZERO;
    while let Some(page) = client.next_page(&host, &mut pages, &mut answering).await.unwrap() {
        repos.extend(page.items);
    }
    assert_eq!(repos.len(), 24);
    let fetches =
        repos.iter().map(|repo| client.fetch_repo(&host, repo.did.as_did(), &Limits::REPOSITORY));
    for fetched in futures_util::future::join_all(fetches).await {
        let (fetched, file) = fetched.unwrap();
        assert_eq!(fetched.bytes, file.file().metadata().unwrap().len());
    }
    let requests = sim.request_counts(PDS)["/xrpc/com.atproto.sync.getRepo"];
    // In every window, the requests under way when it is exhausted are rejected, and sent again in the
    // next one.
    assert!((24..=24 + 4 * 4).contains(&requests), "{requests}");
}

#[tokio::test]
async fn a_paced_client_reports_what_is_no_limit_at_once() {
    let (sim, account) = with_fault(Fault::RequestUnavailable, FaultSchedule::ONCE);
    let (host, client) = (url(&sim, PDS), PacedClient::new(client(), &PaceOptions::default()));
    let fault = match client.fetch_repo(&host, did(&account), &Limits::REPOSITORY).await {
        Err(FetchError::Remote(error)) => error.fault,
        other => panic!("{other:?}"),
    };
    assert_eq!(fault, XrpcFault::Status(503));
    assert_eq!(sim.faults().fired(PDS, Fault::RequestUnavailable), 1);
    client.fetch_repo(&host, did(&account), &Limits::REPOSITORY).await.unwrap();
}
