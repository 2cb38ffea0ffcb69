//! The resolver against a small directory, hosts and DNS on loopback.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use atproto::did_document::DidDocumentError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time;

use super::*;
use crate::dns::{DnsError, DnsResolver, Lookup, LoopbackDns};
use crate::egress::EgressPolicy;
use crate::http::{Client, HttpFault, Limits};

/// The served responses, by host and path, and the number of requests.
#[derive(Default)]
struct World {
    answers: Mutex<HashMap<String, String>>,
    texts: Mutex<HashMap<String, Vec<String>>>,
    asked: Mutex<HashMap<String, usize>>,
    /// While it is held, nothing is answered.
    silence: tokio::sync::Mutex<()>,
    is_dns_down: AtomicBool,
}

struct WorldNames(Arc<World>);

impl DnsResolver for WorldNames {
    fn addresses<'a>(&'a self, host: &'a str) -> Lookup<'a, Vec<IpAddr>> {
        LoopbackDns.addresses(host)
    }

    fn texts<'a>(&'a self, name: &'a str) -> Lookup<'a, Vec<Vec<u8>>> {
        let texts = self.0.texts.lock().unwrap().get(name).cloned().unwrap_or_default();
        if self.0.is_dns_down.load(Relaxed) {
            let error = DnsError { name: name.to_owned(), reason: "down".to_owned() };
            return Box::pin(async { Err(error) });
        }
        Box::pin(async { Ok(texts.into_iter().map(String::into_bytes).collect()) })
    }
}

impl World {
    /// Serves, and hands over a resolver that asks here.
    async fn start() -> (Arc<Self>, Resolver) {
        let world = Arc::new(Self::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Arc::clone(&world);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let server = Arc::clone(&server);
                tokio::spawn(async move {
                    let mut request = vec![0; 4096];
                    let len = stream.read(&mut request).await.unwrap_or(0);
                    let answer = server.answer(&String::from_utf8_lossy(&request[..len]));
                    drop(server.silence.lock().await);
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        let names: Arc<dyn DnsResolver> = Arc::new(WorldNames(Arc::clone(&world)));
        let http = Client::new(EgressPolicy::Loopback, Arc::clone(&names)).unwrap();
        let directory = format!("http://plc.test:{port}").parse().unwrap();
        let options = Options { directory, development_port: Some(port), ..Options::default() };
        (world, Resolver::new(http, names, options))
    }

    fn answer(&self, request: &str) -> String {
        let path = request.split(' ').nth(1).unwrap_or_default();
        let host = request.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        let key = format!("{}{path}", host.split(':').next().unwrap());
        *self.asked.lock().unwrap().entry(key.clone()).or_default() += 1;
        let answer = self.answers.lock().unwrap().get(&key).cloned();
        answer.unwrap_or_else(|| answer_of(404, "", ""))
    }

    fn serve(&self, at: &str, status: u16, body: &str) {
        self.answers.lock().unwrap().insert(at.to_owned(), answer_of(status, "", body));
    }

    fn serve_account(&self, did: &str, handle: &str) {
        self.serve(&format!("plc.test/{did}"), 200, &document(did, handle));
    }

    fn serve_handle(&self, handle: &str, body: &str) {
        self.serve(&format!("{handle}/.well-known/atproto-did"), 200, body);
    }

    fn name(&self, handle: &str, texts: &[&str]) {
        let texts = texts.iter().map(ToString::to_string).collect();
        self.texts.lock().unwrap().insert(format!("_atproto.{handle}"), texts);
    }

    /// Waits until so much was asked for at a place.
    async fn was_asked(&self, at: &str, times: usize) {
        while self.asked(at) < times {
            tokio::task::yield_now().await;
        }
    }

    fn asked(&self, at: &str) -> usize {
        self.asked.lock().unwrap().get(at).copied().unwrap_or_default()
    }
}

fn answer_of(status: u16, headers: &str, body: &str) -> String {
    let len = body.len();
    format!(
        "HTTP/1.1 {status} x\r\nconnection: close\r\n{headers}content-length: {len}\r\n\r\n{body}"
    )
}

fn document(did: &str, handle: &str) -> String {
    format!(
        r##"{{"id": "{did}", "alsoKnownAs": ["at://{handle}"], "verificationMethod": [{{
            "id": "#atproto", "type": "Multikey", "controller": "{did}",
            "publicKeyMultibase": "zDnaembgSGUhZULN2Caob4HLJPaxBh92N7rtH21TErzqf8HQo" }}],
          "service": [{{ "id": "#atproto_pds", "type": "AtprotoPersonalDataServer",
            "serviceEndpoint": "http://localhost:2583" }}] }}"##
    )
}

/// Lets time pass without letting timers run ahead of sockets.
async fn pass(duration: Duration) {
    time::pause();
    time::advance(duration).await;
    time::resume();
}

fn did(text: &str) -> Did<'_> {
    Did::parse(text).unwrap()
}

fn handle(text: &str) -> Handle<'_> {
    Handle::parse(text).unwrap()
}

async fn fault(resolver: &Resolver, of: &str) -> IdentityFault {
    resolver.account(did(of)).await.unwrap_err().fault
}

const ALICE: &str = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa";
const BOB: &str = "did:plc:bbbbbbbbbbbbbbbbbbbbbbbb";
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn an_account_has_its_key_its_host_and_a_handle_that_leads_back() {
    let (world, resolver) = World::start().await;
    world.serve_account(ALICE, "Alice.test");
    world.serve_handle("alice.test", &format!("  {ALICE} \nsecond line"));
    let identity = resolver.identity(did(ALICE)).await.unwrap();
    assert_eq!(identity.display_handle(), "alice.test");
    assert!(identity.account.key.is_some());
    assert_eq!(identity.account.host.as_ref().unwrap().as_str(), "http://localhost:2583/");
    let identity = resolver.identity_of_handle(handle("ALICE.test")).await.unwrap();
    assert_eq!((identity.did(), identity.display_handle().as_str()), (did(ALICE), "alice.test"));
}

#[tokio::test]
async fn the_dns_counts_where_the_host_says_something_else() {
    let (world, resolver) = World::start().await;
    world.name("alice.test", &["v=spf1", &format!("did={ALICE}"), &format!("did={ALICE}")]);
    world.serve_handle("alice.test", BOB);
    assert_eq!(resolver.resolve_handle(handle("alice.test")).await.unwrap().as_did(), did(ALICE));
}

#[tokio::test]
async fn several_dids_in_the_dns_are_none_whatever_the_host_says() {
    let (world, resolver) = World::start().await;
    world.name("alice.test", &[&format!("did={ALICE}"), &format!("did={BOB}")]);
    world.serve_handle("alice.test", ALICE);
    let error = resolver.resolve_handle(handle("alice.test")).await.unwrap_err();
    assert_eq!(error.fault, IdentityFault::Ambiguous(2));
    assert_eq!(error.host.as_deref(), Some("_atproto.alice.test"));
}

#[tokio::test]
async fn a_host_answers_for_a_handle_with_200_and_a_did_of_few_bytes() {
    let (world, resolver) = World::start().await;
    world.serve_handle("page.test", "<!doctype html>");
    world.serve("none.test/.well-known/atproto-did", 403, ALICE);
    world.serve_handle("long.test", &format!("{ALICE}\n{}", "x".repeat(2048)));
    for (name, expected) in [
        ("page.test", IdentityFault::NotADid),
        ("none.test", IdentityFault::Status(403)),
        ("gone.test", IdentityFault::NotFound),
        ("long.test", IdentityFault::Http(HttpFault::TooLarge(2048))),
        ("alice.local", IdentityFault::Reserved),
    ] {
        assert_eq!(
            resolver.resolve_handle(handle(name)).await.unwrap_err().fault,
            expected,
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_account_whose_handle_leads_elsewhere_stands_without_it() {
    let (world, resolver) = World::start().await;
    world.serve_account(ALICE, "bob.test");
    world.serve_account(BOB, "bob.test");
    world.serve_handle("bob.test", BOB);
    world.serve_handle("alice.test", ALICE);
    let identity = resolver.identity(did(ALICE)).await.unwrap();
    assert_eq!(identity.display_handle(), Handle::INVALID);
    let fault = identity.handle.unwrap_err().fault;
    assert_eq!(fault, IdentityFault::OtherDid(did(BOB).to_buf()));
    let identity = resolver.identity_of_handle(handle("alice.test")).await.unwrap();
    assert_eq!(identity.handle.unwrap_err().fault, IdentityFault::OtherHandle);
}

#[tokio::test]
async fn a_document_of_another_did_or_none_is_refused_with_the_host() {
    let (world, resolver) = World::start().await;
    world.serve(&format!("plc.test/{ALICE}"), 200, &document(BOB, "bob.test"));
    let error = resolver.account(did(ALICE)).await.unwrap_err();
    assert_eq!(error.fault, IdentityFault::Document(DidDocumentError::OtherDid));
    assert_eq!(error.host.as_deref(), Some("plc.test"));
    world.serve("long.test/.well-known/did.json", 200, &" ".repeat((256 << 10) + 1));
    let too_long = IdentityFault::Http(HttpFault::TooLarge(256 << 10));
    assert_eq!(fault(&resolver, "did:web:long.test").await, too_long);
    world.serve(&format!("plc.test/{BOB}"), 404, r#"{"message":"DID not available: x"}"#);
    assert_eq!(fault(&resolver, BOB).await, IdentityFault::Deleted);
    assert_eq!(fault(&resolver, "did:web:none.test").await, IdentityFault::NotFound);
}

#[tokio::test]
async fn a_host_may_not_send_us_elsewhere_for_its_document() {
    let (world, resolver) = World::start().await;
    let redirect = answer_of(302, "location: /other.json\r\n", "");
    world.answers.lock().unwrap().insert("a.test/.well-known/did.json".into(), redirect);
    world.serve("a.test/other.json", 200, &document("did:web:a.test", "a.test"));
    assert_eq!(fault(&resolver, "did:web:a.test").await, IdentityFault::Redirect(302));
    assert_eq!(world.asked("a.test/other.json"), 0);
}

#[tokio::test]
async fn many_who_want_the_same_ask_once() {
    let (world, resolver) = World::start().await;
    world.serve_account(ALICE, "alice.test");
    let lookups = (0..100).map(|_| resolver.account(did(ALICE)));
    let accounts = futures_util::future::join_all(lookups).await;
    assert!(accounts.iter().all(Result::is_ok));
    assert_eq!(world.asked(&format!("plc.test/{ALICE}")), 1);
    assert_eq!((resolver.stats().lookups, resolver.stats().hits), (1, 99));
}

#[tokio::test]
async fn what_was_known_goes_on_being_true_while_the_directory_is_down() {
    let (world, resolver) = World::start().await;
    let at = format!("plc.test/{ALICE}");
    world.serve_account(ALICE, "alice.test");
    resolver.account(did(ALICE)).await.unwrap();
    world.serve(&at, 500, "");
    pass(23 * HOUR).await;
    resolver.account(did(ALICE)).await.unwrap();
    assert_eq!(world.asked(&at), 1);
    pass(2 * HOUR).await;
    resolver.account(did(ALICE)).await.unwrap();
    resolver.account(did(ALICE)).await.unwrap();
    assert_eq!((world.asked(&at), resolver.stats().stale), (2, 1));
    world.serve(&at, 404, "");
    pass(HOUR).await;
    assert_eq!(fault(&resolver, ALICE).await, IdentityFault::NotFound);
}

#[tokio::test]
async fn a_lookup_is_forced_once_in_its_window() {
    let (world, resolver) = World::start().await;
    let at = format!("plc.test/{ALICE}");
    world.serve_account(ALICE, "alice.test");
    resolver.account(did(ALICE)).await.unwrap();
    for _ in 0..10 {
        resolver.refresh(did(ALICE)).await.unwrap();
    }
    assert_eq!((world.asked(&at), resolver.stats().refreshes_refused), (2, 9));
    pass(Options::default().min_refresh_interval).await;
    resolver.refresh(did(ALICE)).await.unwrap();
    assert_eq!(world.asked(&at), 3);
}

#[tokio::test]
async fn after_a_purge_the_next_one_asks_for_account_and_handle() {
    let (world, resolver) = World::start().await;
    world.serve_account(ALICE, "alice.test");
    world.serve_handle("alice.test", ALICE);
    resolver.identity(did(ALICE)).await.unwrap();
    resolver.purge(did(ALICE));
    resolver.identity(did(ALICE)).await.unwrap();
    assert_eq!(world.asked(&format!("plc.test/{ALICE}")), 2);
    assert_eq!(world.asked("alice.test/.well-known/atproto-did"), 2);
}

#[tokio::test]
async fn an_outage_is_forgotten_within_a_second_and_a_missing_account_is_not() {
    let (world, resolver) = World::start().await;
    let at = format!("plc.test/{ALICE}");
    for status in [503, 500, 403] {
        world.serve(&at, status, "");
        assert_eq!(fault(&resolver, ALICE).await, IdentityFault::Status(status));
        pass(Duration::from_secs(1)).await;
    }
    world.serve_account(ALICE, "alice.test");
    assert!(resolver.account(did(ALICE)).await.is_ok());
    assert_eq!(fault(&resolver, BOB).await, IdentityFault::NotFound);
    pass(Duration::from_secs(60)).await;
    world.serve_account(BOB, "bob.test");
    assert_eq!(fault(&resolver, BOB).await, IdentityFault::NotFound);
    assert_eq!(resolver.stats().directory_answers, 2);
}

#[tokio::test]
async fn a_purged_answer_is_not_used_while_the_directory_is_down() {
    let (world, resolver) = World::start().await;
    let at = format!("plc.test/{ALICE}");
    world.serve_account(ALICE, "alice.test");
    resolver.account(did(ALICE)).await.unwrap();
    world.serve(&at, 503, "");
    resolver.purge(did(ALICE));
    assert_eq!(fault(&resolver, ALICE).await, IdentityFault::Status(503));
}

#[tokio::test]
async fn a_directory_that_wants_to_be_left_alone_is_not_asked_for_anybody() {
    let (world, resolver) = World::start().await;
    let busy = answer_of(429, "retry-after: 60\r\n", "");
    world.answers.lock().unwrap().insert(format!("plc.test/{ALICE}"), busy);
    assert_eq!(fault(&resolver, ALICE).await, IdentityFault::Status(429));
    assert!(matches!(fault(&resolver, BOB).await, IdentityFault::RateLimited(_)));
    assert_eq!(world.asked(&format!("plc.test/{BOB}")), 0);
}

#[tokio::test]
async fn a_purge_during_a_lookup_counts_for_its_answer() {
    let (world, resolver) = World::start().await;
    let at = format!("plc.test/{ALICE}");
    world.serve_account(ALICE, "alice.test");
    let silence = world.silence.lock().await;
    let asker = resolver.clone();
    let lookup = tokio::spawn(async move { asker.account(did(ALICE)).await });
    world.was_asked(&at, 1).await;
    world.serve_account(ALICE, "bob.test");
    resolver.purge(did(ALICE));
    drop(silence);
    // The answer was on its way before.
    assert_eq!(lookup.await.unwrap().unwrap().document.handle().unwrap(), "alice.test");
    let account = resolver.account(did(ALICE)).await.unwrap();
    assert_eq!((account.document.handle().unwrap().as_str(), world.asked(&at)), ("bob.test", 2));
}

#[tokio::test]
async fn who_waits_for_an_asker_that_gives_up_asks() {
    let (world, resolver) = World::start().await;
    let at = format!("plc.test/{ALICE}");
    world.serve_account(ALICE, "alice.test");
    let silence = world.silence.lock().await;
    let asker = resolver.clone();
    let first = tokio::spawn(async move { asker.account(did(ALICE)).await });
    world.was_asked(&at, 1).await;
    let asker = resolver.clone();
    let second = tokio::spawn(async move { asker.account(did(ALICE)).await });
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    world.was_asked(&at, 2).await;
    drop(silence);
    assert_eq!(second.await.unwrap().unwrap().did(), did(ALICE));
    assert_eq!(resolver.stats().lookups, 2);
}

#[tokio::test]
async fn purges_without_end_are_lookups_without_end_only_as_often_as_is_allowed() {
    let (world, resolver) = World::start().await;
    let (at, options) = (format!("plc.test/{ALICE}"), Options::default());
    let most = options.max_purges as usize;
    world.serve_account(ALICE, "alice.test");
    resolver.account(did(ALICE)).await.unwrap();
    for _ in 0..3 * most {
        resolver.purge(did(ALICE));
        resolver.account(did(ALICE)).await.unwrap();
    }
    assert_eq!((world.asked(&at), resolver.stats().purges_deferred), (1 + most, 2 * most as u64));
    // A postponed purge is not forgotten, and counts once.
    world.serve_account(ALICE, "bob.test");
    pass(options.purge_window).await;
    for _ in 0..2 {
        let account = resolver.account(did(ALICE)).await.unwrap();
        assert_eq!(account.document.handle().unwrap(), "bob.test");
    }
    assert_eq!(world.asked(&at), 2 + most);
}

#[tokio::test]
async fn without_a_dns_record_the_host_names_the_did_and_without_both_there_is_none() {
    let (world, resolver) = World::start().await;
    world.serve_handle("alice.test", ALICE);
    world.is_dns_down.store(true, Relaxed);
    assert_eq!(resolver.resolve_handle(handle("alice.test")).await.unwrap().as_did(), did(ALICE));
    let error = resolver.resolve_handle(handle("bob.test")).await.unwrap_err();
    assert!(matches!(error.fault, IdentityFault::Dns(_)), "{error}");
    assert!(error.is_outage());
    // The known handle stays valid.
    world.serve("alice.test/.well-known/atproto-did", 404, "");
    pass(25 * HOUR).await;
    assert_eq!(resolver.resolve_handle(handle("alice.test")).await.unwrap().as_did(), did(ALICE));
    assert_eq!(resolver.stats().stale, 1);
}

#[tokio::test]
async fn a_document_that_ends_in_the_middle_is_none() {
    let (world, resolver) = World::start().await;
    let whole = document(ALICE, "alice.test");
    world.serve(&format!("plc.test/{ALICE}"), 200, &whole[..whole.len() / 2]);
    let error = fault(&resolver, ALICE).await;
    assert!(matches!(error, IdentityFault::Document(DidDocumentError::Json { .. })), "{error}");
    let cut = answer_of(200, "", &document(BOB, "bob.test"));
    let cut = cut[..cut.len() / 2].to_owned();
    world.answers.lock().unwrap().insert(format!("plc.test/{BOB}"), cut);
    let error = resolver.account(did(BOB)).await.unwrap_err();
    assert!(matches!(error.fault, IdentityFault::Http(HttpFault::Transport(_))), "{error}");
    assert!(error.is_outage());
}

#[tokio::test]
async fn a_host_that_does_not_go_on_speaking_is_not_waited_for() {
    let (world, resolver) = World::start().await;
    let _silence = world.silence.lock().await;
    let asker = resolver.clone();
    let lookup = tokio::spawn(async move { asker.account(did(ALICE)).await });
    world.was_asked(&format!("plc.test/{ALICE}"), 1).await;
    pass(Limits::DOCUMENT.max_time).await;
    let error = lookup.await.unwrap().unwrap_err();
    let expected = IdentityFault::Http(HttpFault::Timeout(Limits::DOCUMENT.max_time));
    assert_eq!((&error.fault, error.is_outage()), (&expected, true));
}

#[tokio::test]
async fn few_at_once_ask_the_hosts_of_one_domain() {
    let (world, resolver) = World::start().await;
    let silence = world.silence.lock().await;
    let most = Options::default().max_concurrent_per_domain;
    let names: Vec<String> = (0..3 * most).map(|number| format!("a{number}.many.test")).collect();
    let lookups = names.iter().cloned().map(|name| {
        world.serve_handle(&name, ALICE);
        let asker = resolver.clone();
        tokio::spawn(async move { asker.resolve_handle(handle(&name)).await })
    });
    let lookups: Vec<_> = lookups.collect();
    let asked = || {
        let path = |name: &String| world.asked(&format!("{name}/.well-known/atproto-did"));
        names.iter().map(path).sum::<usize>()
    };
    while asked() < most {
        tokio::task::yield_now().await;
    }
    // No other request of this domain was sent; another domain has its own limit.
    world.serve_handle("elsewhere.test", BOB);
    let asker = resolver.clone();
    let elsewhere =
        tokio::spawn(async move { asker.resolve_handle(handle("elsewhere.test")).await });
    world.was_asked("elsewhere.test/.well-known/atproto-did", 1).await;
    assert_eq!(asked(), most);
    drop(silence);
    for lookup in lookups {
        assert_eq!(lookup.await.unwrap().unwrap().as_did(), did(ALICE));
    }
    assert_eq!(elsewhere.await.unwrap().unwrap().as_did(), did(BOB));
}
