//! Tests of the client against a server on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use atproto::syntax::{Did, Nsid};
use bytes::Bytes;
use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::dns::LoopbackDns;
use crate::egress::EgressPolicy;
use crate::http::{self, HttpFault, Limits, MAX_REDIRECTS};
use crate::rate_limit::RateLimiter;

/// A server that sends the same response to every request, and counts requests.
struct TestHost {
    url: Url,
    requests: Arc<AtomicUsize>,
}

impl TestHost {
    async fn with_response(status: &str, headers: &str, body: &str) -> Self {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
        Self::with_bytes(format!("{head}{headers}connection: close\r\n\r\n{body}")).await
    }

    async fn with_bytes(response: impl Into<Vec<u8>>) -> Self {
        let response: Vec<u8> = response.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let response = response.clone();
                counter.fetch_add(1, Relaxed);
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    let _ = stream.read(&mut request).await;
                    let _ = stream.write_all(&response).await;
                    // After an incomplete response the connection stays open.
                    let _ = stream.read(&mut request).await;
                });
            }
        });
        Self { url: url.parse().unwrap(), requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Relaxed)
    }

    async fn repo(&self, client: &Client) -> XrpcFault {
        let limits = Limits { idle_timeout: Duration::from_millis(300), ..Limits::REPOSITORY };
        repo(client, &self.url, &limits).await
    }

    async fn blocks(&self, client: &Client, cid: codec::Cid) -> Result<Bytes, XrpcError> {
        client.get_blocks(&self.url, did(), &[cid]).await
    }

    async fn status(&self) -> XrpcFault {
        client().get_repo_status(&self.url, did()).await.unwrap_err().fault
    }
}

/// The fault of a failing request for a repository.
async fn repo(client: &Client, host: &Url, limits: &Limits) -> XrpcFault {
    client.get_repo(host, did(), None, limits).await.unwrap_err().fault
}

fn client() -> Client {
    let http = http::Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
    Client::new(http).with_rate_limiter(RateLimiter::new(Duration::ZERO))
}

fn did() -> Did<'static> {
    Did::parse("did:plc:ewvi7nxzyoun6zhxrhs64oiz").unwrap()
}

#[tokio::test]
async fn error_bodies_are_parsed_up_to_a_limit_of_size_and_time() {
    let named = r#"{"error":"RepoTakendown","message":"no more"}"#;
    let host = TestHost::with_response("403 x", "", named).await;
    let XrpcFault::Named(error) = host.repo(&client()).await else { panic!("not an XRPC error") };
    assert_eq!((&error.name, error.status), (&ErrorName::RepoTakendown, 403));
    assert_eq!(error.to_string(), "RepoTakendown (status 403): no more");
    let odd = r#"{"error":"RepoTakendown","message":{"en":"no more"}}"#;
    let host = TestHost::with_response("403 x", "", odd).await;
    let XrpcFault::Named(error) = host.repo(&client()).await else { panic!("not an XRPC error") };
    assert_eq!((&error.name, &*error.message), (&ErrorName::RepoTakendown, ""));
    let long = format!(r#"{{"error":"RepoNotFound","message":"{}"}}"#, "x".repeat(64 << 10));
    let host = TestHost::with_response("400 x", "", &long).await;
    assert_eq!(host.repo(&client()).await, XrpcFault::Status(400));
    let host =
        TestHost::with_bytes("HTTP/1.1 404 x\r\ncontent-length: 100\r\n\r\n{\"err".to_owned())
            .await;
    assert_eq!(host.repo(&client()).await, XrpcFault::Status(404));
}

#[tokio::test]
async fn an_archive_that_a_server_calls_text_is_received_whole() {
    let mut writer = codec::car::Writer::new(Vec::new(), &[]).unwrap();
    let block = vec![b'x'; 200_000];
    let cid = codec::Cid::of(codec::cid::Codec::Raw, &block);
    writer.block(&cid, &block).unwrap();
    let archive = writer.into_inner();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\r\n",
        archive.len()
    );
    let host = TestHost::with_bytes([head.into_bytes(), archive.clone()].concat()).await;
    assert_eq!(host.blocks(&client(), cid).await.unwrap(), archive);
    for text in ["", "a", "<", "\u{feff}<p>", "ab\u{a2}", "\u{a2}\u{a2}"] {
        let host = TestHost::with_response("200 OK", "content-type: text/html\r\n", text).await;
        let fault = host.blocks(&client(), cid).await.unwrap_err().fault;
        assert_eq!(fault, XrpcFault::ContentType("text/html".into()), "{text:?}");
    }
}

#[tokio::test]
async fn responses_that_do_not_match_the_method_are_rejected() {
    let page = TestHost::with_response("200 OK", "content-type: text/html\r\n", "<h1>Hello").await;
    assert_eq!(page.repo(&client()).await, XrpcFault::ContentType("text/html".into()));
    let malformed = TestHost::with_response("200 OK", "", "{").await;
    assert!(matches!(malformed.status().await, XrpcFault::Schema(_)));
    let own = r#"{"did":"did:plc:ewvi7nxzyoun6zhxrhs64oiz","rev":"3jzfcijpj2z2a"}"#;
    let incomplete = TestHost::with_response("200 OK", "", own).await;
    assert!(matches!(incomplete.status().await, XrpcFault::Schema(_)));
    let other =
        TestHost::with_response("200 OK", "", r#"{"did":"did:web:a.test","active":true}"#).await;
    assert_eq!(other.status().await, XrpcFault::Schema("another account".into()));
    let long = TestHost::with_response("200 OK", "", &" ".repeat((256 << 10) + 1)).await;
    assert_eq!(long.status().await, XrpcFault::Http(HttpFault::TooLarge(256 << 10)));
}

#[tokio::test]
async fn redirects_without_a_url_and_circular_redirects_are_errors() {
    let nowhere = TestHost::with_response("302 x", "", "").await;
    assert_eq!(nowhere.repo(&client()).await, XrpcFault::Location(302));
    let circle = TestHost::with_response("302 x", "location: /xrpc/again\r\n", "").await;
    let expected = XrpcFault::Http(HttpFault::Redirects(MAX_REDIRECTS));
    assert_eq!(circle.repo(&client()).await, expected);
    assert_eq!(circle.requests(), MAX_REDIRECTS + 1);
}

#[tokio::test]
async fn no_request_is_sent_when_the_rate_limit_of_a_response_is_used_up() {
    let headers = "ratelimit-remaining: 0\r\nratelimit-reset: 60\r\n";
    let host = TestHost::with_response("400 x", headers, r#"{"error":"RepoNotFound"}"#).await;
    let other = TestHost::with_response("400 x", "", r#"{"error":"RepoNotFound"}"#).await;
    let client = client();
    assert!(matches!(host.repo(&client).await, XrpcFault::Named(_)));
    assert!(matches!(host.repo(&client).await, XrpcFault::RateLimited(_)));
    assert!(matches!(other.repo(&client).await, XrpcFault::Named(_)));
    assert_eq!((host.requests(), other.requests()), (1, 1));
}

#[tokio::test]
async fn a_list_with_a_repeated_cursor_ends_with_an_error() {
    let host = TestHost::with_response("200 OK", "", r#"{"repos":[],"cursor":"a"}"#).await;
    let client = client();
    let mut pages = client.list_repos(&host.url, &PageOptions::default());
    assert_eq!(pages.next().await.unwrap().unwrap().cursor.as_deref(), Some("a"));
    assert_eq!(pages.next().await.unwrap_err().fault, XrpcFault::Cursor);
    assert_eq!(host.requests(), 2);
}

/// The first page of `listRepos`, for this body.
async fn repos(body: &str) -> Result<ListPage<ListedRepo>, XrpcFault> {
    let host = TestHost::with_response("200 OK", "", body).await;
    let page = client().list_repos(&host.url, &PageOptions::default()).next().await;
    page.map(Option::unwrap).map_err(|error| error.fault)
}

fn entry(fields: &str) -> String {
    format!(r#"{{"repos":[{{"did":"did:web:a.test"}},{fields},{{"did":"did:web:b.test"}}]}}"#)
}

#[tokio::test]
async fn an_entry_that_names_no_account_costs_itself_and_is_named() {
    let deep = format!(r#"{{"did":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    for odd in [
        "null",
        "7",
        r#""did:web:c.test""#,
        "[]",
        "{}",
        r#"{"did":null}"#,
        r#"{"did":7}"#,
        r#"{"did":""}"#,
        r#"{"did":"nobody"}"#,
        r#"{"did":"DID:WEB:C.TEST"}"#,
        r#"{"did":" did:web:c.test"}"#,
        r#"{"did":"did:web:c.test","did":"did:web:d.test"}"#,
        r#"{"did":"\ud800"}"#,
        &deep,
    ] {
        let page = repos(&entry(odd)).await.unwrap();
        let dids: Vec<&str> = page.items.iter().map(|item| item.did.as_did().as_str()).collect();
        assert_eq!((&*dids, page.odd.count()), (&["did:web:a.test", "did:web:b.test"][..], 1));
        let named = &page.odd.named()[0];
        assert!(odd.starts_with(named.split(": ").next().unwrap()), "{named}");
    }
}

#[tokio::test]
async fn a_field_that_is_not_needed_counts_as_absent_when_it_is_unusable() {
    for odd in ["\"\"", "null", "7.5", "[{}]", "\"yes\"", "1e999", "\"\\udfff\""] {
        for field in ["head", "rev", "active"] {
            let fields = format!(r#"{{"did":"did:web:c.test","{field}":{odd}}}"#);
            let page = repos(&entry(&fields)).await.unwrap();
            assert_eq!((page.items.len(), page.odd.count()), (3, 0), "{fields}");
            let ListedRepo { head, rev, active, status, .. } = &page.items[1];
            assert_eq!((head, rev, active, status), (&None, &None, &None, &None), "{fields}");
        }
    }
    let head = "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454";
    let fields = format!(
        r#"{{"did":"did:web:c.test","head":"{head}","rev":"","active":false,"status":"deleted"}}"#
    );
    let ListedRepo { head: read, rev, active, status, .. } =
        repos(&entry(&fields)).await.unwrap().items.remove(1);
    assert_eq!((read.unwrap().to_string().as_str(), rev, active), (head, None, Some(false)));
    assert_eq!(status.as_deref(), Some("deleted"));
}

#[tokio::test]
async fn odd_entries_are_counted_and_the_first_named_up_to_a_length() {
    let long = format!(r#"{{"did":"{}"}}"#, "x".repeat(10_000));
    let body = format!(r#"{{"repos":[{}]}}"#, vec![long; 20].join(","));
    let page = repos(&body).await.unwrap();
    assert_eq!((page.items.len(), page.odd.count(), page.odd.named().len()), (0, 20, 8));
    assert!(page.odd.named().iter().all(|named| named.len() < 300));
    let mut all = OddEntries::default();
    assert_eq!(all.append(page.odd.clone()).len(), 8);
    assert_eq!((all.append(page.odd).len(), all.count(), all.named().len()), (0, 40, 8));
}

#[tokio::test]
async fn a_page_without_a_list_is_an_error() {
    for body in
        ["[]", "{}", r#"{"repos":null}"#, r#"{"repos":{}}"#, r#"{"repos":[}"#, r#"{"hosts":[]}"#]
    {
        assert!(matches!(repos(body).await, Err(XrpcFault::Schema(_))), "{body}");
    }
    for cursor in ["7", "[]", "{}", "true"] {
        let body = format!(r#"{{"repos":[],"cursor":{cursor}}}"#);
        assert!(matches!(repos(&body).await, Err(XrpcFault::Schema(_))), "{body}");
    }
}

#[tokio::test]
async fn a_cursor_has_at_most_512_bytes_and_an_empty_one_is_none() {
    let page = |cursor: String| async move {
        repos(&format!(r#"{{"repos":[],"cursor":"{cursor}"}}"#)).await.map(|page| page.cursor)
    };
    let longest = "c".repeat(MAX_CURSOR_BYTES);
    assert_eq!(page(longest.clone()).await, Ok(Some(longest.into())));
    let fault = page("c".repeat(MAX_CURSOR_BYTES + 1)).await.unwrap_err();
    assert_eq!(fault, XrpcFault::LongCursor(513));
    assert_eq!(
        fault.to_string(),
        "the cursor of the next page has 513 bytes: at most 512 are allowed"
    );
    assert_eq!(page(String::new()).await, Ok(None));
}

#[tokio::test]
async fn odd_entries_of_collections_and_hosts_are_left_out_too() {
    let body = r#"{"repos":[{"did":"did:web:a.test"},{"did":"A"},{"did":"did:web:b.test"}]}"#;
    let host = TestHost::with_response("200 OK", "", body).await;
    let collection = Nsid::parse("app.bsky.feed.post").unwrap();
    let (client, options) = (client(), PageOptions::default());
    let mut pages = client.list_repos_by_collection(&host.url, collection, &options);
    let page = pages.next().await.unwrap().unwrap();
    assert_eq!((page.items.len(), page.odd.count()), (2, 1));
    let body = r#"{"hosts":[{"hostname":"a.test","seq":"7","accountCount":-0.5,"status":7},{"hostname":null}]}"#;
    let host = TestHost::with_response("200 OK", "", body).await;
    let page = client.list_hosts(&host.url, &options).next().await.unwrap().unwrap();
    let listed =
        ListedHost { hostname: "a.test".into(), seq: None, account_count: None, status: None };
    assert_eq!((&*page.items, page.odd.count()), (&[listed][..], 1));
}

#[tokio::test]
async fn a_host_that_sends_no_response_times_out() {
    let host = TestHost::with_bytes(String::new()).await;
    let (client, url) = (client(), host.url.clone());
    let fault = tokio::spawn(async move { repo(&client, &url, &Limits::REPOSITORY).await });
    while host.requests() == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(36)).await;
    tokio::time::resume();
    let expected = HttpFault::Idle(Limits::REPOSITORY.idle_timeout);
    assert_eq!(fault.await.unwrap(), XrpcFault::Http(expected));
}
