//! Upgrades that are refused, connections that are cut, silent or too much.

use std::time::Duration;

use net::egress::{EgressError, EgressPolicy};
use net::http::{HttpFault, Url};
use net::websocket::{DialError, DialFault, Socket, SocketError, SocketMessage, SocketOptions};
use simnet::servers::{Fault, FaultSchedule, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::setup::{RELAY, dialer, options, sim, sim_with, url};

const STREAM: &str = "/xrpc/com.atproto.sync.subscribeRepos?cursor=0";

async fn dial(url: &Url, options: &SocketOptions<'_>) -> Result<Socket, DialError> {
    dialer(EgressPolicy::Loopback).dial(url, options).await
}

#[tokio::test]
async fn frames_come_whole() {
    let sim = sim(|_| ());
    let mut socket = dial(&url(&sim, RELAY, STREAM), &options().socket).await.unwrap();
    for _ in 0..40 {
        assert!(
            matches!(socket.next().await, Ok(SocketMessage::Binary(frame)) if frame.len() > 100)
        );
    }
}

#[tokio::test]
async fn a_refusal_says_who_what_and_when_to_come_back() {
    let refusals = [
        (Fault::UpgradeTooMany, 429, Some(7), false),
        (Fault::UpgradeUnavailable, 503, None, false),
        (Fault::UpgradeForbidden, 403, None, true),
        (Fault::UpgradeNotFound, 404, None, true),
        (Fault::UpgradeNotImplemented, 501, None, true),
    ];
    for (fault, status, seconds, is_refusal) in refusals {
        let sim = sim_with(fault, FaultSchedule::ONCE.with_amount(7));
        let url = url(&sim, RELAY, STREAM);
        let error = dial(&url, &options().socket).await.unwrap_err();
        assert_eq!((error.is_retryable(), error.is_refusal()), (true, is_refusal), "{error}");
        assert_eq!(error.retry_after(), seconds.map(Duration::from_secs), "{error}");
        assert!(matches!(&error.fault, DialFault::Refused(refusal) if refusal.status == status));
        assert!(error.to_string().starts_with("localhost: rejected with status"), "{error}");
        assert!(dial(&url, &options().socket).await.is_ok());
        assert_eq!(sim.faults().unfired(), []);
    }
}

#[tokio::test]
async fn what_is_no_stream_is_refused_with_its_status() {
    let sim = sim(|_| ());
    let error = dial(&url(&sim, RELAY, "/nothing"), &options().socket).await.unwrap_err();
    assert!(error.is_retryable() && error.is_refusal(), "{error}");
    assert!(error.to_string().contains("404: Not Found"), "{error}");
}

#[tokio::test]
async fn a_dropped_connection_and_a_closed_port_are_tried_again() {
    let sim = sim_with(Fault::Drop, FaultSchedule::ONCE);
    let url = url(&sim, RELAY, STREAM);
    let dropped = dial(&url, &options().socket).await.unwrap_err();
    sim.stop_server(RELAY);
    let closed = dial(&url, &options().socket).await.unwrap_err();
    assert!(dropped.is_retryable() && closed.is_retryable());
    assert!(matches!(closed.fault, DialFault::Http(HttpFault::Connect(_))), "{closed}");
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn an_upgrade_goes_only_where_requests_go() {
    let sim = sim(|_| ());
    let public = &dialer(EgressPolicy::Public);
    let dial_public = |url: String| async move {
        let url = url.parse().unwrap();
        public.dial(&url, &SocketOptions::default()).await.unwrap_err()
    };
    let inside = dial_public(format!("wss://localhost{STREAM}")).await;
    assert!(matches!(
        inside.fault,
        DialFault::Http(HttpFault::Egress(EgressError::SpecialAddress(address, _))) if address.is_loopback()
    ));
    let port = sim.port(RELAY);
    let by_port = dial_public(format!("wss://localhost:{port}{STREAM}")).await;
    assert_eq!(by_port.fault, DialFault::Http(HttpFault::Egress(EgressError::Port(port))));
    let plain = dial_public(url(&sim, RELAY, STREAM).to_string()).await;
    assert_eq!(plain.fault, DialFault::Http(HttpFault::Egress(EgressError::Scheme)));
    let elsewhere = dial(&"ws://10.0.0.1/".parse().unwrap(), &options().socket).await.unwrap_err();
    assert!(matches!(elsewhere.fault, DialFault::Http(HttpFault::Egress(_))), "{elsewhere}");
    assert!(!inside.is_retryable() && !plain.is_retryable() && !elsewhere.is_retryable());
    assert_eq!(sim.connection_count(), 0);
}

/// Answers one connection with these bytes, and then waits for its end.
async fn answer_with(answer: impl Into<Vec<u8>>) -> Url {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = answer.into();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
        let _ = stream.write_all(&answer).await;
        while stream.read(&mut request).await.is_ok_and(|len| len > 0) {}
    });
    format!("ws://{address}/").parse().unwrap()
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let away = "HTTP/1.1 302 Found\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n";
    let error = dial(&answer_with(away).await, &options().socket).await.unwrap_err();
    assert!(matches!(&error.fault, DialFault::Refused(refusal) if refusal.status == 302));
}

#[tokio::test]
async fn an_upgrade_that_does_not_follow_from_the_key_is_none() {
    let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n";
    let accept = "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    for upgrade in ["upgrade: websocket\r\n", "upgrade: h2c\r\n"] {
        let answer = format!("{head}{upgrade}{accept}");
        let error = dial(&answer_with(answer).await, &options().socket).await.unwrap_err();
        assert!(matches!(error.fault, DialFault::Handshake(_)), "{error}");
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn a_refusal_without_end_is_read_to_a_bound_and_tamed() {
    let head = "HTTP/1.1 500 Oh\r\ncontent-length: 100000000\r\n\r\n";
    let body = "\u{1b}[2J ".repeat(2000);
    let error =
        dial(&answer_with(format!("{head}{body}")).await, &options().socket).await.unwrap_err();
    let DialFault::Refused(refusal) = &error.fault else { panic!("{error}") };
    assert!(refusal.message.starts_with("\\u{1b}[2J \\u{1b}[2J"), "{}", refusal.message);
    // Escapes are longer than the at most 300 characters that they stand for.
    assert!(refusal.message.len() <= 300 * "\\u{1b}".len());
}

#[tokio::test]
async fn a_host_that_never_answers_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let limit = Duration::from_millis(200);
    let options = SocketOptions { handshake_timeout: limit, ..SocketOptions::default() };
    let error = dial(&url, &options).await.unwrap_err();
    assert_eq!(error.fault, DialFault::Http(HttpFault::Timeout(limit)));
}

/// All messages, and the end.
async fn drain(socket: &mut Socket) -> (usize, SocketError) {
    let mut messages = 0;
    loop {
        match socket.next().await {
            Ok(_) => messages += 1,
            Err(error) => return (messages, error),
        }
    }
}

#[tokio::test]
async fn a_cut_a_close_and_a_stall_end_a_connection_each_by_its_name() {
    let ends = [(Fault::Cut, 5_000), (Fault::Close, 0), (Fault::Stall, 0)];
    for (fault, amount) in ends {
        let sim = sim_with(
            fault,
            FaultSchedule::ONCE.after(if amount == 0 { 9 } else { 0 }).with_amount(amount),
        );
        let mut socket = dial(&url(&sim, RELAY, STREAM), &options().socket).await.unwrap();
        let (messages, end) = drain(&mut socket).await;
        match fault {
            Fault::Cut => assert!(matches!(end, SocketError::Broken(_)), "{end}"),
            Fault::Close => assert!(matches!(end, SocketError::Closed { .. }), "{end}"),
            _ => assert_eq!(end, SocketError::Idle(options().socket.idle_timeout)),
        }
        assert!(messages == 10 || fault == Fault::Cut);
        assert_eq!(sim.faults().unfired(), []);
    }
}

#[tokio::test]
async fn a_message_beyond_the_limit_ends_the_connection_before_it_is_read() {
    let sim = sim_with(Fault::OversizedFrame, FaultSchedule::ONCE.after(2).with_amount(100_001));
    let limits = SocketOptions { max_message_bytes: 100_000, ..options().socket };
    let mut socket = dial(&url(&sim, RELAY, STREAM), &limits).await.unwrap();
    assert_eq!(drain(&mut socket).await, (2, SocketError::TooLarge(100_000)));
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_quiet_server_is_pinged_and_stays() {
    let sim = sim(|_| ());
    let live = url(&sim, RELAY, "/xrpc/com.atproto.sync.subscribeRepos");
    let mut socket = dial(&live, &options().socket).await.unwrap();
    let silence = options().socket.idle_timeout;
    let waited = tokio::time::timeout(3 * silence, socket.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    sim.write_commits(1);
    assert!(matches!(socket.next().await, Ok(SocketMessage::Binary(_))));
}

#[tokio::test]
async fn calls_that_are_given_up_do_not_hide_a_silence() {
    let sim = sim_with(Fault::Stall, FaultSchedule::ONCE);
    let mut socket = dial(&url(&sim, RELAY, STREAM), &options().socket).await.unwrap();
    assert!(socket.next().await.is_ok());
    let moment = Duration::from_millis(20);
    for _ in 0..1000 {
        if let Ok(end) = tokio::time::timeout(moment, socket.next()).await {
            assert_eq!(end, Err(SocketError::Idle(options().socket.idle_timeout)));
            return;
        }
    }
    panic!("the silence was not seen");
}

#[tokio::test]
async fn a_paused_reader_gets_no_idle_timeout() {
    let sim = sim(|_| ());
    let live = url(&sim, Server::Pds(0), "/xrpc/com.atproto.sync.subscribeRepos?cursor=0");
    let mut socket = dial(&live, &options().socket).await.unwrap();
    assert!(socket.next().await.is_ok());
    tokio::time::sleep(2 * options().socket.idle_timeout).await;
    assert!(socket.next().await.is_ok());
}
