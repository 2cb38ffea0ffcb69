//! Tests of the client against a server on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use atproto::syntax::Did;
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

    async fn with_bytes(response: String) -> Self {
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
                    let _ = stream.write_all(response.as_bytes()).await;
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
    let long = format!(r#"{{"error":"RepoNotFound","message":"{}"}}"#, "x".repeat(64 << 10));
    let host = TestHost::with_response("400 x", "", &long).await;
    assert_eq!(host.repo(&client()).await, XrpcFault::Status(400));
    let host =
        TestHost::with_bytes("HTTP/1.1 404 x\r\ncontent-length: 100\r\n\r\n{\"err".to_owned())
            .await;
    assert_eq!(host.repo(&client()).await, XrpcFault::Status(404));
}

#[tokio::test]
async fn responses_that_do_not_match_the_method_are_rejected() {
    let page = TestHost::with_response("200 OK", "content-type: text/html\r\n", "<h1>Hello").await;
    assert_eq!(page.repo(&client()).await, XrpcFault::ContentType("text/html".into()));
    let malformed = TestHost::with_response("200 OK", "", "{").await;
    assert!(matches!(malformed.status().await, XrpcFault::Schema(_)));
    let incomplete = TestHost::with_response("200 OK", "", r#"{"did":"did:web:a.test"}"#).await;
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
