//! Tests of the client against a server on loopback.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::dns::{Lookup, LoopbackDns};
use crate::egress::{EgressError, TABLE, special_range};

/// A server that sends `response` to every request, and never closes a connection.
async fn serve(response: impl Into<Vec<u8>>) -> SocketAddr {
    let response = response.into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let response = response.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                while stream.read(&mut request).await.is_ok_and(|len| len > 0) {
                    stream.write_all(&response).await.unwrap();
                }
            });
        }
    });
    address
}

fn client(policy: EgressPolicy) -> Client {
    Client::new(policy, Arc::new(LoopbackDns)).unwrap()
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

const SMALL_LIMITS: Limits = Limits {
    max_bytes: 1000,
    max_time: Duration::from_secs(20),
    idle_timeout: Duration::from_millis(300),
    ..Limits::DOCUMENT
};

async fn fault(client: Client, url: &Url, limits: &Limits) -> HttpFault {
    client.get(url, limits).await.unwrap_err().fault
}

#[tokio::test]
async fn a_response_within_limits_is_returned_with_any_status() {
    let at = serve("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\nx-test: yes\r\n\r\nnone").await;
    let response = client(EgressPolicy::Loopback)
        .get(&url(&format!("http://{at}/")), &SMALL_LIMITS)
        .await
        .unwrap();
    assert_eq!((response.status, &response.body[..]), (404, &b"none"[..]));
    assert_eq!(response.headers["x-test"], "yes");
}

/// Sends a body to a server that gives this response, and returns the response.
async fn post(response: &str, body: &'static [u8]) -> Result<Response, HttpError> {
    let target = url(&format!("http://{}/hook", serve(response.as_bytes()).await));
    let headers = [("x-test".parse().unwrap(), "yes".parse().unwrap())].into_iter().collect();
    let client = client(EgressPolicy::Unrestricted);
    client.post(&target, headers, Bytes::from_static(body), &SMALL_LIMITS).await
}

#[tokio::test]
async fn a_redirect_of_a_post_is_returned_and_not_followed() {
    let redirect =
        "HTTP/1.1 307 Over There\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let response = post(redirect, b"events").await.unwrap();
    assert_eq!(response.status, 307);
}

#[tokio::test]
async fn the_status_of_a_post_counts_whatever_body_comes_with_it() {
    let long = "x".repeat(1001);
    for body in [&*long, "cut"] {
        let response = format!("HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n{body}");
        let response = post(&response, b"events").await.unwrap();
        assert_eq!(response.status, 200);
        assert!(response.body.len() <= 1000 && body.as_bytes().starts_with(&response.body));
    }
}

#[tokio::test]
async fn a_post_is_sent_only_where_the_policy_allows() {
    let denied = client(EgressPolicy::Public);
    let target = url("http://127.0.0.1:1/");
    let sent = denied.post(&target, HeaderMap::new(), Bytes::new(), &SMALL_LIMITS).await;
    assert_eq!(sent.unwrap_err().fault, HttpFault::Egress(EgressError::Scheme));
}

#[tokio::test]
async fn a_stated_length_beyond_the_limit_is_rejected_before_the_body() {
    let at = serve("HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n").await;
    let fault =
        fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &SMALL_LIMITS).await;
    assert_eq!(fault, HttpFault::TooLarge(1000));
}

#[tokio::test]
async fn a_chunked_body_beyond_the_limit_is_rejected() {
    let mut response = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..11 {
        response.extend_from_slice(b"64\r\n");
        response.extend_from_slice(&[b'x'; 100]);
        response.extend_from_slice(b"\r\n");
    }
    let at = serve(response).await;
    let fault =
        fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &SMALL_LIMITS).await;
    assert_eq!(fault, HttpFault::TooLarge(1000));
}

#[tokio::test]
async fn a_compressed_body_is_refused_before_it_is_read() {
    let at = serve("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 9\r\n\r\n").await;
    let fault =
        fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &SMALL_LIMITS).await;
    assert_eq!(fault, HttpFault::Compressed("gzip".to_owned()));
}

/// Asks a server that sends this body for gzip: the decoded body and its size on the wire.
async fn gzip_body(headers: &str, body: &[u8]) -> Result<(Bytes, u64), HttpFault> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    let at = serve([head.as_bytes(), body].concat()).await;
    let (client, target) = (client(EgressPolicy::Loopback), url(&format!("http://{at}/")));
    let opened = client.open_coded(&target, &SMALL_LIMITS, Coding::Gzip).await;
    let mut opened = opened.map_err(|error| error.fault)?;
    let body = opened.read_to_end().await.map_err(|error| error.fault)?;
    assert_eq!(opened.received(), body.len() as u64);
    Ok((body, opened.wire_bytes()))
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_compressed_body_that_was_asked_for_is_decoded_and_another_is_as_it_is() {
    for name in ["gzip", "x-gzip"] {
        let (data, stream) = ([b'x'; 1000], gzip(&[b'x'; 1000]));
        let (body, wire) =
            gzip_body(&format!("content-encoding: {name}\r\n"), &stream).await.unwrap();
        assert_eq!((&body[..], wire), (&data[..], stream.len() as u64));
    }
    let (body, wire) = gzip_body("", b"as it is").await.unwrap();
    assert_eq!((&body[..], wire), (&b"as it is"[..], 8));
    let other = gzip_body("content-encoding: br\r\n", b"?").await;
    assert_eq!(other, Err(HttpFault::Compressed("br".to_owned())));
}

#[tokio::test]
async fn a_compressed_body_is_limited_as_it_is_received_and_decoded() {
    let stream = gzip(&[0; 1001]);
    assert!(stream.len() < 100);
    let bomb = gzip_body(GZIP, &stream).await;
    assert_eq!(bomb, Err(HttpFault::TooLarge(1000)));
    let bomb = gzip_body(GZIP, &gzip(&vec![0; 500_000])).await;
    assert_eq!(bomb, Err(HttpFault::TooLarge(1000)));
    let long = gzip_body(GZIP, &[0; 1001]).await;
    assert_eq!(long, Err(HttpFault::TooLarge(1000)));
}

#[tokio::test]
async fn a_compressed_body_that_ends_early_or_is_damaged_is_an_error() {
    let stream = gzip(b"a repository");
    for body in
        [&stream[..stream.len() - 1], &stream[..5], b"", b"<!doctype html><title>Hello</title>"]
    {
        let fault = gzip_body(GZIP, body).await.unwrap_err();
        assert!(matches!(fault, HttpFault::DamagedGzip(_)), "{fault}");
    }
}

const GZIP: &str = "content-encoding: gzip\r\n";

#[tokio::test]
async fn a_body_that_stops_is_an_idle_error() {
    let at = serve("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfive.").await;
    let fault =
        fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &SMALL_LIMITS).await;
    assert_eq!(fault, HttpFault::Idle(SMALL_LIMITS.idle_timeout));
}

#[tokio::test]
async fn a_response_without_headers_times_out() {
    let at = serve("").await;
    let limits = Limits { max_time: Duration::from_millis(200), ..SMALL_LIMITS };
    let fault =
        fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &limits).await;
    assert_eq!(fault, HttpFault::Timeout(limits.max_time));
}

#[tokio::test]
async fn a_redirect_to_another_machine_is_not_followed() {
    for target in ["http://10.0.0.1/", "http://169.254.169.254/latest", "http://[fd00::1]/"] {
        let response =
            format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
        let at = serve(response).await;
        let fault =
            fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &SMALL_LIMITS)
                .await;
        assert!(matches!(fault, HttpFault::Egress(EgressError::NotLoopback(_))), "{fault}");
    }
}

#[tokio::test]
async fn circular_redirects_end_at_the_limit() {
    let at = serve("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n").await;
    let fault =
        fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &SMALL_LIMITS).await;
    assert_eq!(fault, HttpFault::Redirects(MAX_REDIRECTS));
}

/// A DNS that returns the same address for every name.
struct ConstantDns(IpAddr);

impl DnsResolver for ConstantDns {
    fn addresses<'a>(&'a self, _: &'a str) -> Lookup<'a, Vec<IpAddr>> {
        Box::pin(async { Ok(vec![self.0]) })
    }

    fn texts<'a>(&'a self, _: &'a str) -> Lookup<'a, Vec<Vec<u8>>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// The first and last address of every special range.
fn special_addresses() -> impl Iterator<Item = IpAddr> {
    TABLE.iter().flat_map(|range| range.ends())
}

/// An address as the host of a URL.
fn as_host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// The fault of a name or redirect that leads to `address`.
fn special_fault(address: IpAddr) -> HttpFault {
    let range = special_range(address).unwrap();
    HttpFault::Egress(EgressError::SpecialAddress(address, range))
}

#[tokio::test]
async fn urls_with_special_addresses_are_rejected() {
    for address in special_addresses() {
        let client = Client::new(EgressPolicy::Public, Arc::new(LoopbackDns)).unwrap();
        let url = url(&format!("https://{}/", as_host(address)));
        let fault = fault(client, &url, &SMALL_LIMITS).await;
        assert_eq!(fault, HttpFault::Egress(EgressError::AddressAsHost), "{address}");
    }
}

#[tokio::test]
async fn names_with_special_addresses_are_rejected() {
    for address in special_addresses() {
        let client = Client::new(EgressPolicy::Public, Arc::new(ConstantDns(address))).unwrap();
        let fault = fault(client, &url("https://pds.example.com/"), &SMALL_LIMITS).await;
        assert_eq!(fault, special_fault(address), "{address}");
    }
}

/// The fault of a client with the public policy that is redirected to `target`. The redirecting server is on
/// loopback: the request bypasses the first check.
async fn redirected_to(target: &str, dns: impl DnsResolver + 'static) -> HttpFault {
    let response = format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
    let at = serve(response).await;
    let client = Client::new(EgressPolicy::Public, Arc::new(dns)).unwrap();
    let result = client.following.get(format!("http://{at}/")).send().await;
    HttpError::of("here", &result.unwrap_err()).fault
}

#[tokio::test]
async fn redirects_to_special_addresses_are_rejected() {
    for address in special_addresses() {
        let target = format!("https://{}/", as_host(address));
        let fault = redirected_to(&target, LoopbackDns).await;
        assert_eq!(fault, HttpFault::Egress(EgressError::AddressAsHost), "{address}");
        let fault = redirected_to("https://inside.example.com/", ConstantDns(address)).await;
        assert_eq!(fault, special_fault(address), "{address}");
    }
    let fault = redirected_to("http://outside.example.com/", LoopbackDns).await;
    assert_eq!(fault, HttpFault::Egress(EgressError::Scheme));
}

#[tokio::test]
async fn the_loopback_policy_rejects_every_other_special_address() {
    for address in special_addresses().filter(|address| !address.is_loopback()) {
        let expected = HttpFault::Egress(EgressError::NotLoopback(address));
        let target = url(&format!("http://{}/", as_host(address)));
        assert_eq!(fault(client(EgressPolicy::Loopback), &target, &SMALL_LIMITS).await, expected);
        let by_name = Client::new(EgressPolicy::Loopback, Arc::new(ConstantDns(address))).unwrap();
        assert_eq!(fault(by_name.clone(), &url("http://pds.test/"), &SMALL_LIMITS).await, expected);
        for target in [target.as_str(), "http://pds.test/"] {
            let response =
                format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
            let first = url(&format!("http://{}/", serve(response).await));
            assert_eq!(fault(by_name.clone(), &first, &SMALL_LIMITS).await, expected);
        }
    }
}

#[tokio::test]
async fn a_name_without_addresses_is_an_error() {
    let url = url("http://nowhere.example.com/");
    assert_eq!(
        fault(client(EgressPolicy::Loopback), &url, &SMALL_LIMITS).await,
        HttpFault::NoAddress
    );
}
