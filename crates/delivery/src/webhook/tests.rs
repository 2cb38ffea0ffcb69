//! Requests to a server on loopback, and the consequences of its responses.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::StopSignal;
use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::hosts::BackoffOptions;
use net::http::Limits;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::options::{InvalidSecret, WebhookBody};
use super::*;
use crate::event::{EventId, NewEvent};
use crate::{Delivery, DeliveryOptions, Options, Outbox, StartAt};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A request as a server received it.
#[derive(Clone, Debug, Default)]
struct Request {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        &found.unwrap_or_else(|| panic!("no header {name}")).1
    }
}

/// A server that responds to the requests in their order, to the later ones as to the last.
async fn serve(responses: &'static [&'static str]) -> (SocketAddr, Arc<Mutex<Vec<Request>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, requests) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<_>>>::default());
    let seen = requests.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(respond(stream, responses, seen.clone()));
        }
    });
    (address, requests)
}

async fn respond(
    stream: TcpStream,
    responses: &[&str],
    seen: Arc<Mutex<Vec<Request>>>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut request = Request::default();
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if !line.starts_with("POST /hook HTTP/1.1") {
            return Ok(());
        }
        loop {
            line.clear();
            stream.read_line(&mut line).await?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            request.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        request.body = vec![0; request.header("content-length").parse().unwrap()];
        stream.read_exact(&mut request.body).await?;
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            seen.len()
        };
        let response = responses[number.min(responses.len()) - 1];
        stream.get_mut().write_all(response.as_bytes()).await?;
    }
}

fn sink(address: SocketAddr, options: WebhookOptions) -> WebhookSink {
    let client = http::Client::new(EgressPolicy::Unrestricted, Arc::new(LoopbackDns)).unwrap();
    let url = format!("http://{address}/hook").parse().unwrap();
    WebhookSink::new(client, url, WebhookSecret::parse(SECRET).unwrap(), options)
}

fn new_event(number: u64) -> NewEvent {
    let did = format!("did:web:{}.test", number % 3);
    let id = EventId::of_commit(&did, &number.to_string());
    NewEvent::new(id, &did, format!("{{\"n\":{number}}}")).unwrap()
}

fn events(numbers: std::ops::RangeInclusive<u64>) -> Vec<Event> {
    numbers.map(|number| Event::stored(number, &new_event(number))).collect()
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[test]
fn a_signature_is_that_of_standard_webhooks() {
    let secret = WebhookSecret::parse(SECRET).unwrap();
    let signed =
        secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b"{\"test\": 2432232314}");
    assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert!(!format!("{secret:?}").contains("49"), "{secret:?}");
}

#[test]
fn a_secret_that_is_short_long_or_not_base64_is_refused() {
    let error = |text: &str| WebhookSecret::parse(text).unwrap_err();
    assert_eq!(error("whsec_!"), InvalidSecret::Base64);
    assert_eq!(error("password"), InvalidSecret::Length(8));
    assert_eq!(error(&"x".repeat(65)), InvalidSecret::Length(65));
    assert!(WebhookSecret::parse(&"x".repeat(24)).is_ok());
}

#[tokio::test]
async fn a_request_has_the_lines_and_a_signature_over_id_timestamp_and_body() {
    let (address, requests) = serve(&[OK]).await;
    let sink = sink(address, WebhookOptions::default());
    sink.send(&events(1..=2)).await.unwrap();
    sink.send(&events(1..=2)).await.unwrap();
    sink.send(&events(1..=3)).await.unwrap();
    let requests = requests.lock().unwrap();
    let request = &requests[0];
    assert_eq!(request.body, b"[{\"n\":1},{\"n\":2}]");
    assert_eq!(request.header("content-type"), "application/json");
    let (id, timestamp) = (request.header("webhook-id"), request.header("webhook-timestamp"));
    let signed = sink.secret.sign(id, timestamp.parse().unwrap(), &request.body);
    assert_eq!(request.header("webhook-signature"), signed);
    assert_eq!(request.header("idempotency-key"), id);
    let ids: Vec<_> = requests.iter().map(|request| request.header("webhook-id")).collect();
    assert!(ids[0] == ids[1] && ids[1] != ids[2], "{ids:?}");
}

#[tokio::test]
async fn a_body_of_lines_has_a_line_feed_after_each() {
    let (address, requests) = serve(&[OK]).await;
    let options = WebhookOptions { body: WebhookBody::Ndjson, ..WebhookOptions::default() };
    sink(address, options).send(&events(1..=2)).await.unwrap();
    let requests = requests.lock().unwrap();
    assert_eq!(requests[0].body, b"{\"n\":1}\n{\"n\":2}\n");
    assert_eq!(requests[0].header("content-type"), "application/x-ndjson");
}

#[tokio::test]
async fn a_status_of_success_is_enough_whatever_the_body() {
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{}", "x".repeat(100_000));
    for response in [
        &*long,
        "HTTP/1.1 202 OK\r\ncontent-length: 1000000000000\r\n\r\nx",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
        "HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\nxx",
    ] {
        let response: &'static str = Box::leak(response.to_owned().into_boxed_str());
        let (address, _) = serve(Box::leak(Box::new([response]))).await;
        let limits = WebhookOptions::default().response;
        let response = Limits { max_time: Duration::from_millis(500), ..limits };
        let options = WebhookOptions { response, ..WebhookOptions::default() };
        sink(address, options).send(&events(1..=2)).await.unwrap();
    }
}

/// The failure of a request with this response.
async fn failure(response: &'static str) -> SendFailure {
    let (address, _) = serve(Box::leak(Box::new([response]))).await;
    let response =
        Limits { max_time: Duration::from_millis(500), ..WebhookOptions::default().response };
    let options = WebhookOptions { response, ..WebhookOptions::default() };
    sink(address, options).send(&events(1..=2)).await.unwrap_err()
}

#[tokio::test]
async fn each_response_has_its_consequence() {
    let temporary = |seconds| FailureKind::Temporary(Duration::from_secs(seconds));
    for (response, kind, reason) in [
        ("HTTP/1.1 408 Timeout\r\ncontent-length: 0\r\n\r\n", temporary(0), "status 408"),
        (
            "HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n",
            temporary(7),
            "status 429",
        ),
        (
            "HTTP/1.1 503 Away\r\nretry-after: 9\r\ncontent-length: 0\r\n\r\n",
            temporary(9),
            "status 503",
        ),
        ("HTTP/1.1 500 Oh\r\ncontent-length: 3\r\n\r\na\nb", temporary(0), "status 500: a b"),
        (
            "HTTP/1.1 422 No\r\ncontent-length: 8\r\n\r\nbad \u{1b}[2J",
            FailureKind::Declined,
            "status 422: bad \\u{1b}[2J",
        ),
        (
            "HTTP/1.1 307 Over\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n",
            temporary(0),
            "status 307: redirects are not followed, name the address that it leads to",
        ),
    ] {
        let failure = failure(response).await;
        assert_eq!((failure.kind, &*failure.reason), (kind, reason));
        assert!(failure.accepted.is_empty());
    }
}

#[tokio::test]
async fn no_response_is_a_temporary_failure() {
    for (response, reason) in
        [("", "no complete response"), ("nonsense\r\n\r\n", "the connection failed")]
    {
        let failure = failure(response).await;
        assert_eq!(failure.kind, FailureKind::Temporary(Duration::ZERO), "{failure}");
        assert!(failure.reason.contains(reason), "{failure}");
    }
}

#[tokio::test]
async fn an_outage_of_the_receiver_loses_no_event_and_each_attempt_has_the_same_id() {
    const AWAY: &str = "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n";
    let dir = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default()).unwrap();
    outbox.register("hook", StartAt::Oldest).unwrap();
    outbox.append_all((1..=300).map(new_event)).unwrap();
    let (address, requests) = serve(&[AWAY, AWAY, AWAY, OK]).await;
    let batches = SinkLimits::new(64, 1 << 20);
    let body = WebhookBody::Ndjson;
    let sink = sink(address, WebhookOptions { batches, body, ..WebhookOptions::default() });
    let ms = Duration::from_millis(1);
    let backoff = BackoffOptions { initial: ms, max: 4 * ms, ..BackoffOptions::default() };
    let options = DeliveryOptions { backoff, ..DeliveryOptions::default() };
    let delivery = Delivery::new(outbox.consumer("hook").unwrap(), sink, None, options);
    let (metrics, stop) = (delivery.metrics(), StopSignal::new());
    let running = tokio::spawn(delivery.run(stop.clone()));
    while metrics.accepted() < 300 {
        tokio::time::sleep(ms).await;
    }
    stop.request();
    assert_eq!(running.await.unwrap().unwrap().cursor, 300);
    assert_eq!((metrics.failed_batches(), metrics.last_failure()), (3, None));
    let requests = requests.lock().unwrap();
    let lines: Vec<u8> = requests[3..].iter().flat_map(|request| request.body.clone()).collect();
    let expected: String = (1..=300).map(|number| format!("{{\"n\":{number}}}\n")).collect();
    assert_eq!(String::from_utf8(lines).unwrap(), expected);
    let id = requests[0].header("webhook-id");
    assert!(requests[..4].iter().all(|request| request.header("webhook-id") == id));
}

/// Delivers events to a receiver until the metrics are as wanted, and returns them.
async fn delivered(
    responses: &'static [&'static str],
    batch: usize,
    is_done: impl Fn(&crate::DeliveryMetrics) -> bool,
) -> (Arc<crate::DeliveryMetrics>, usize) {
    let dir = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default()).unwrap();
    outbox.register("hook", StartAt::Oldest).unwrap();
    outbox.append_all((1..=60).map(new_event)).unwrap();
    let (address, requests) = serve(responses).await;
    let batches = SinkLimits::new(batch, 1 << 20);
    let sink = sink(address, WebhookOptions { batches, ..WebhookOptions::default() });
    let ms = Duration::from_millis(1);
    let backoff = BackoffOptions { initial: ms, max: 4 * ms, ..BackoffOptions::default() };
    let options = DeliveryOptions { backoff, ..DeliveryOptions::default() };
    let letters = crate::DeadLetters::open(&dir.path().join("letters"), "hook", 1 << 20).unwrap();
    let delivery = Delivery::new(outbox.consumer("hook").unwrap(), sink, Some(letters), options);
    let (metrics, stop) = (delivery.metrics(), StopSignal::new());
    let running = tokio::spawn(delivery.run(stop.clone()));
    while !is_done(&metrics) {
        tokio::time::sleep(ms).await;
    }
    stop.request();
    running.await.unwrap().unwrap();
    let count = requests.lock().unwrap().len();
    (metrics, count)
}

#[tokio::test]
async fn a_status_of_the_address_sets_no_event_aside() {
    const OF_ADDRESS: [&str; 40] = ["HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"; 40];
    static RESPONSES: [&str; 41] = {
        let mut all = [OK; 41];
        let mut at = 0;
        while at < 40 {
            all[at] = OF_ADDRESS[at];
            at += 1;
        }
        all
    };
    let (metrics, _) = delivered(&RESPONSES, 16, |metrics| metrics.accepted() == 60).await;
    assert_eq!(metrics.set_aside(), 0);
}

#[tokio::test]
async fn refusals_of_everything_are_of_the_address_and_no_event_is_set_aside() {
    const NO: &str = "HTTP/1.1 400 No\r\ncontent-length: 0\r\n\r\n";
    let (metrics, requests) = delivered(&[NO], 16, |metrics| metrics.failed_batches() > 30).await;
    assert_eq!((metrics.set_aside(), metrics.accepted()), (0, 0));
    assert!(requests > 30, "it is asked again");
}
