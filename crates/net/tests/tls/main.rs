//! Connections over TLS: valid certificates are accepted, invalid ones rejected.

#![forbid(unsafe_code)]

mod server;

use std::sync::Arc;

use atproto::event::{Event, Identity};
use atproto::syntax::Did;
use tokio_tungstenite::tungstenite::Message;
use wireproof_net::dns::LoopbackDns;
use wireproof_net::firehose::{Feed, FeedItem, FeedOptions, Notice, Upstream};
use wireproof_net::hosts::Jitter;
use wireproof_net::http::{CertificateFault, Client, HttpError, HttpFault, Limits, Url};
use wireproof_net::jetstream::{self, Filter, Version};
use wireproof_net::websocket::{DialError, DialFault, Dialer, SocketOptions};
use wireproof_net::{identity, xrpc};

use server::{Authority, NOW, Speaks, serve, serve_as};

const DID: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";

/// A client that trusts this authority alone.
fn trusting(authority: &Authority) -> Client {
    Client::on_loopback_trusting_only(&authority.pem(), Arc::new(LoopbackDns)).unwrap()
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn origin(port: u16) -> [Upstream; 1] {
    [Upstream::new(url(&format!("wss://localhost:{port}")))]
}

fn frame(seq: i64) -> Vec<u8> {
    let time = "2026-01-01T00:00:00Z";
    Event::Identity(Identity { seq, did: DID, time, handle: None }).to_frame()
}

fn two_frames() -> Speaks {
    Speaks::Messages((1..=2).map(|seq| Message::binary(frame(seq))).collect())
}

/// Why no WebSocket to this host of a server is opened by one who trusts `trusted`.
async fn refused(trusted: &Authority, host: &str, port: u16) -> DialError {
    let dialer = Dialer::new(trusting(trusted));
    let (url, options) = (url(&format!("wss://{host}:{port}")), SocketOptions::default());
    dialer.dial(&url, &options).await.unwrap_err()
}

fn untaken(host: &str, fault: CertificateFault) -> DialError {
    let fault = DialFault::Http(HttpFault::Certificate(fault));
    DialError { host: host.to_owned(), fault }
}

#[tokio::test]
async fn a_firehose_over_tls_is_heard() {
    let authority = Authority::named("known");
    let port = serve(&authority, two_frames()).await;
    let dialer = Dialer::new(trusting(&authority));
    let mut feed = Feed::new(dialer, &origin(port), FeedOptions::default(), Jitter::new());
    let mut seqs = Vec::new();
    while seqs.len() < 2 {
        match feed.next().await.unwrap() {
            FeedItem::Frame(arrival) => {
                assert_eq!(arrival.frame, frame(arrival.seq.unwrap() as i64));
                seqs.extend(arrival.seq);
            }
            FeedItem::Notice(Notice::Connected { .. } | Notice::RetryScheduled { .. }) => {}
            FeedItem::Notice(notice) => panic!("{notice:?}"),
        }
    }
    assert_eq!(seqs, [1, 2]);
}

#[tokio::test]
async fn a_jetstream_over_tls_is_heard() {
    let authority = Authority::named("known");
    let said = format!(
        r#"{{"did":"{DID}","time_us":1782864000000001,"kind":"identity","identity":{{"did":"{DID}","seq":1,"time":"2026-07-01T00:00:00Z"}}}}"#
    );
    let port = serve(&authority, Speaks::Messages(vec![Message::text(said)])).await;
    let (dialer, chance) = (Dialer::new(trusting(&authority)), Jitter::new());
    let mut options = jetstream::Options::default();
    options.version = Version::V1;
    let client = jetstream::Client::new(dialer, &origin(port), Filter::default(), options, chance);
    let mut client = client.unwrap();
    let event = loop {
        match client.next().await.unwrap() {
            jetstream::JetstreamItem::Event(event) => break event,
            jetstream::JetstreamItem::Notice(
                Notice::Connected { .. } | Notice::RetryScheduled { .. },
            ) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((event.did.as_str(), event.cursor), (DID, 1_782_864_000_000_001));
}

#[tokio::test]
async fn a_certificate_of_an_untrusted_authority_is_refused_with_the_host() {
    let (known, unknown) = (Authority::named("known"), Authority::named("another"));
    let port = serve(&unknown, two_frames()).await;
    let error = refused(&known, "localhost", port).await;
    assert_eq!(error, untaken("localhost", CertificateFault::UnknownIssuer));
    let text = "localhost: invalid certificate: no trusted authority issued it";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn an_authority_that_has_only_the_name_of_a_trusted_one_is_refused() {
    let (known, impostor) = (Authority::named("known"), Authority::named("known"));
    let port = serve(&impostor, two_frames()).await;
    let error = refused(&known, "localhost", port).await;
    assert_eq!(error, untaken("localhost", CertificateFault::BadSignature));
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let authority = Authority::named("known");
    let port = serve(&authority, two_frames()).await;
    let error = refused(&authority, "relay.localhost", port).await;
    assert_eq!(error, untaken("relay.localhost", CertificateFault::OtherName));
    // Nor is the address behind the name as good as the name.
    let error = refused(&authority, "127.0.0.1", port).await;
    assert_eq!(error, untaken("127.0.0.1", CertificateFault::OtherName));
}

#[tokio::test]
async fn a_certificate_of_another_time_is_refused() {
    let authority = Authority::named("known");
    for years in [[2000, 2001], [3000, 3001]] {
        let port = serve_as(&authority, "localhost", years, two_frames()).await;
        let error = refused(&authority, "localhost", port).await;
        assert_eq!(error, untaken("localhost", CertificateFault::NotNow));
    }
}

#[tokio::test]
async fn a_feed_says_why_a_certificate_is_not_taken_and_tries_again() {
    let (known, unknown) = (Authority::named("known"), Authority::named("another"));
    let port = serve(&unknown, two_frames()).await;
    let dialer = Dialer::new(trusting(&known));
    let mut feed = Feed::new(dialer, &origin(port), FeedOptions::default(), Jitter::new());
    let FeedItem::Notice(Notice::ConnectFailed { error, .. }) = feed.next().await.unwrap() else {
        panic!("it was let in")
    };
    assert_eq!(error, untaken("localhost", CertificateFault::UnknownIssuer));
    // Certificates are renewed.
    assert!(error.is_retryable());
    assert!(matches!(feed.next().await, Ok(FeedItem::Notice(Notice::RetryScheduled { .. }))));
}

#[tokio::test]
async fn documents_and_answers_come_over_tls_and_not_from_an_impostor() {
    let (authority, other) = (Authority::named("known"), Authority::named("another"));
    let document = format!(r#"{{"id":"{DID}","alsoKnownAs":["at://ada.test"]}}"#);
    let port = serve_as(&authority, "plc.localhost", NOW, Speaks::Json(document)).await;
    let directory = url(&format!("https://plc.localhost:{port}"));
    let resolver = |http| {
        let mut options = identity::Options::default();
        options.directory = directory.clone();
        identity::Resolver::new(http, Arc::new(LoopbackDns), options)
    };
    let did = Did::parse(DID).unwrap();
    let found = resolver(trusting(&authority)).account(did).await.unwrap();
    assert_eq!(found.did(), did);
    let error = resolver(trusting(&other)).account(did).await.unwrap_err();
    assert!(error.is_outage());
    assert!(error.to_string().contains("plc.localhost"), "{error}");
    assert!(error.to_string().contains("no trusted authority"), "{error}");

    let error = xrpc::Client::new(trusting(&other)).get_latest_commit(&directory, did).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("plc.localhost") && error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn what_is_to_be_trusted_must_hold_a_certificate() {
    let names = || Arc::new(LoopbackDns);
    for nothing in [&b""[..], b"not PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n"] {
        let error = Client::on_loopback_trusting_only(nothing, names()).unwrap_err();
        let expected = HttpError { host: "this machine".into(), fault: HttpFault::NoAuthority };
        assert_eq!(error, expected);
    }
}

#[tokio::test]
async fn whoever_trusts_an_authority_of_a_test_stays_on_this_machine() {
    let client = trusting(&Authority::named("known"));
    let fault = client.get(&url("https://10.0.0.1/"), &Limits::DOCUMENT).await.unwrap_err().fault;
    assert!(matches!(fault, HttpFault::Egress(_)), "{fault}");
}
