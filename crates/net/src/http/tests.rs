//! The client against a small server on loopback.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::dns::{Lookup, LoopbackDns};
use crate::egress::{EgressError, TABLE, special_range};

/// Answers every request with `answer`, and never closes a connection.
async fn serve(answer: impl Into<Vec<u8>>) -> SocketAddr {
    let answer = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                while stream.read(&mut request).await.is_ok_and(|len| len > 0) {
                    stream.write_all(&answer).await.unwrap();
                }
            });
        }
    });
    address
}

fn client(reach: EgressPolicy) -> Client {
    Client::new(reach, Arc::new(LoopbackDns)).unwrap()
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

const QUICK: Limits = Limits {
    max_bytes: 1000,
    max_time: Duration::from_secs(20),
    idle_timeout: Duration::from_millis(300),
    ..Limits::DOCUMENT
};

async fn fault(client: Client, url: &Url, limits: &Limits) -> HttpFault {
    client.get(url, limits).await.unwrap_err().fault
}

#[tokio::test]
async fn an_answer_within_bounds_is_handed_over_whatever_its_status() {
    let at = serve("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\nx-said: so\r\n\r\nnone").await;
    let answer =
        client(EgressPolicy::Loopback).get(&url(&format!("http://{at}/")), &QUICK).await.unwrap();
    assert_eq!((answer.status, &answer.body[..]), (404, &b"none"[..]));
    assert_eq!(answer.headers["x-said"], "so");
}

#[tokio::test]
async fn a_stated_length_beyond_the_limit_is_refused_before_the_body() {
    let at = serve("HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n").await;
    let fault = fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &QUICK).await;
    assert_eq!(fault, HttpFault::TooLarge(1000));
}

#[tokio::test]
async fn a_body_that_grows_beyond_the_limit_is_refused() {
    let mut answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..11 {
        answer.extend_from_slice(b"64\r\n");
        answer.extend_from_slice(&[b'x'; 100]);
        answer.extend_from_slice(b"\r\n");
    }
    let at = serve(answer).await;
    let fault = fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &QUICK).await;
    assert_eq!(fault, HttpFault::TooLarge(1000));
}

#[tokio::test]
async fn silence_in_the_middle_of_a_body_is_an_error() {
    let at = serve("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfive.").await;
    let fault = fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &QUICK).await;
    assert_eq!(fault, HttpFault::Idle(QUICK.idle_timeout));
}

#[tokio::test]
async fn an_answer_that_never_begins_is_an_error() {
    let at = serve("").await;
    let limits = Limits { max_time: Duration::from_millis(200), ..QUICK };
    let fault =
        fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &limits).await;
    assert_eq!(fault, HttpFault::Timeout(limits.max_time));
}

#[tokio::test]
async fn a_redirect_to_another_machine_is_not_followed() {
    for target in ["http://10.0.0.1/", "http://169.254.169.254/latest", "http://[fd00::1]/"] {
        let answer =
            format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
        let at = serve(answer).await;
        let fault =
            fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &QUICK).await;
        assert!(matches!(fault, HttpFault::Egress(EgressError::NotLoopback(_))), "{fault}");
    }
}

#[tokio::test]
async fn a_circle_of_redirects_ends() {
    let at = serve("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n").await;
    let fault = fault(client(EgressPolicy::Loopback), &url(&format!("http://{at}/")), &QUICK).await;
    assert_eq!(fault, HttpFault::Redirects(guard::MAX_REDIRECTS));
}

/// A DNS that gives every name one address.
struct Always(IpAddr);

impl DnsResolver for Always {
    fn addresses<'a>(&'a self, _: &'a str) -> Lookup<'a, Vec<IpAddr>> {
        Box::pin(async { Ok(vec![self.0]) })
    }

    fn texts<'a>(&'a self, _: &'a str) -> Lookup<'a, Vec<Vec<u8>>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Both ends of every special range.
fn inside() -> impl Iterator<Item = IpAddr> {
    TABLE.iter().flat_map(|range| range.ends())
}

/// An address as the host of a URL.
fn as_host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Why a name or a redirect that leads to `address` is refused.
fn special(address: IpAddr) -> HttpFault {
    let range = special_range(address).unwrap();
    HttpFault::Egress(EgressError::SpecialAddress(address, range))
}

#[tokio::test]
async fn no_special_address_is_asked_that_a_url_names() {
    for address in inside() {
        let client = Client::new(EgressPolicy::Public, Arc::new(LoopbackDns)).unwrap();
        let url = url(&format!("https://{}/", as_host(address)));
        let fault = fault(client, &url, &QUICK).await;
        assert_eq!(fault, HttpFault::Egress(EgressError::AddressAsHost), "{address}");
    }
}

#[tokio::test]
async fn no_special_address_is_connected_to_that_a_name_leads_to() {
    for address in inside() {
        let client = Client::new(EgressPolicy::Public, Arc::new(Always(address))).unwrap();
        let fault = fault(client, &url("https://pds.example.com/"), &QUICK).await;
        assert_eq!(fault, special(address), "{address}");
    }
}

/// Where a client of the public internet ends that was sent to `target`. The first server is on
/// loopback, where such a client would not have begun: it is asked behind the first check.
async fn sent_to(target: &str, names: impl DnsResolver + 'static) -> HttpFault {
    let answer = format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
    let at = serve(answer).await;
    let client = Client::new(EgressPolicy::Public, Arc::new(names)).unwrap();
    let sent = client.following.get(format!("http://{at}/")).send().await;
    HttpError::of("here", &sent.unwrap_err()).fault
}

#[tokio::test]
async fn no_special_address_is_connected_to_that_a_redirect_leads_to() {
    for address in inside() {
        let target = format!("https://{}/", as_host(address));
        let fault = sent_to(&target, LoopbackDns).await;
        assert_eq!(fault, HttpFault::Egress(EgressError::AddressAsHost), "{address}");
        let fault = sent_to("https://inside.example.com/", Always(address)).await;
        assert_eq!(fault, special(address), "{address}");
    }
    let fault = sent_to("http://outside.example.com/", LoopbackDns).await;
    assert_eq!(fault, HttpFault::Egress(EgressError::Scheme));
}

#[tokio::test]
async fn in_development_no_other_machine_is_connected_to_either() {
    for address in inside().filter(|address| !address.is_loopback()) {
        let expected = HttpFault::Egress(EgressError::NotLoopback(address));
        let target = url(&format!("http://{}/", as_host(address)));
        assert_eq!(fault(client(EgressPolicy::Loopback), &target, &QUICK).await, expected);
        let by_name = Client::new(EgressPolicy::Loopback, Arc::new(Always(address))).unwrap();
        assert_eq!(fault(by_name.clone(), &url("http://pds.test/"), &QUICK).await, expected);
        for target in [target.as_str(), "http://pds.test/"] {
            let answer =
                format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
            let first = url(&format!("http://{}/", serve(answer).await));
            assert_eq!(fault(by_name.clone(), &first, &QUICK).await, expected);
        }
    }
}

#[tokio::test]
async fn a_name_without_addresses_is_an_error() {
    let url = url("http://nowhere.example.com/");
    assert_eq!(fault(client(EgressPolicy::Loopback), &url, &QUICK).await, HttpFault::NoAddress);
}
