//! Clients of a scripted relay on loopback.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use nostr::Filter;
use nostr::negentropy::{self, Item, Items};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::{Authenticator, Client, Gap, Options, Reason, RelayError, RelayItem, RelayNotice};
use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::hosts::{BackoffOptions, Jitter};
use net::http;
use net::websocket::{Dialer, SocketError};

/// A relay that takes one connection at a time, and the messages that a test sends and receives through it.
struct Relay {
    port: u16,
    connections: UnboundedReceiver<Connection>,
}

struct Connection {
    heard: UnboundedReceiver<Value>,
    say: UnboundedSender<Message>,
}

impl Relay {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (open, connections) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(socket) = tokio_tungstenite::accept_async(stream).await else { continue };
                let ((heard_by, heard), (say, said)) = (unbounded_channel(), unbounded_channel());
                if open.send(Connection { heard, say }).is_err() {
                    return;
                }
                tokio::spawn(serve(socket, heard_by, said));
            }
        });
        Self { port, connections }
    }

    fn client(&self, filter: Filter, change: impl FnOnce(&mut Options)) -> Client {
        let http = http::Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
        let mut options = Options::default();
        let short = Duration::from_millis(1);
        options.backoff =
            BackoffOptions { initial: short, max: short, ..BackoffOptions::default() };
        change(&mut options);
        let url = format!("ws://127.0.0.1:{}/", self.port).parse().unwrap();
        Client::new(Dialer::new(http), url, filter, options, Jitter::seeded(7))
    }

    async fn connection(&mut self) -> Connection {
        self.connections.recv().await.unwrap()
    }
}

/// Passes messages on until the test drops the connection.
async fn serve(
    mut socket: WebSocketStream<TcpStream>,
    heard: UnboundedSender<Value>,
    mut said: UnboundedReceiver<Message>,
) {
    loop {
        tokio::select! {
            message = said.recv() => match message {
                Some(message) => socket.send(message).await.unwrap_or_default(),
                None => return,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    let _ = heard.send(serde_json::from_str(&text).unwrap());
                }
                Some(Ok(_)) => {}
                _ => return,
            },
        }
    }
}

impl Connection {
    fn say(&self, message: &Value) {
        self.say.send(Message::text(message.to_string())).unwrap();
    }

    fn say_event(&self, subscription: &Value, created_at: i64) {
        self.say(&json!(["EVENT", subscription, {
            "id": format!("{created_at:064x}"), "created_at": created_at,
        }]));
    }

    /// Says a page of events, and its end.
    fn say_page(&self, subscription: &str, times: &[i64]) {
        times.iter().for_each(|time| self.say_event(&json!(subscription), *time));
        self.say(&json!(["EOSE", subscription]));
    }

    /// Answers requests with pages, or with the answer of `answer` to a filter, until one of another kind, which is
    /// returned.
    async fn answer(&mut self, mut answer: impl FnMut(&Value) -> Vec<i64>) -> Value {
        loop {
            let request = self.hear().await;
            match request[0].as_str() {
                Some("REQ") => self.say_page(request[1].as_str().unwrap(), &answer(&request[2])),
                Some("CLOSE") => {}
                _ => return request,
            }
        }
    }

    async fn hear(&mut self) -> Value {
        self.heard.recv().await.unwrap()
    }
}

/// Runs a client together with a relay. The items of the client, until its end, the end of the play, or the notice of
/// [`settle`].
async fn run(mut client: Client, play: impl Future<Output = ()>) -> (Received, Option<RelayError>) {
    let (mut items, mut end) = (Received::default(), None);
    let receive = async {
        loop {
            match client.next().await {
                Ok(RelayItem::Event(event)) => {
                    let json: Value = serde_json::from_str(event.text.as_str()).unwrap();
                    items.events.push((json["created_at"].as_i64().unwrap(), event.resume));
                }
                Ok(RelayItem::Notice(RelayNotice::Message(text))) if text == SETTLED => return,
                Ok(RelayItem::Notice(notice)) => items.notices.push(notice),
                Err(error) => {
                    end = Some(error);
                    return;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = receive => {}
        () = play => {}
    }
    (items, end)
}

/// Ends the run once the client has received everything.
async fn settle(connection: &Connection) {
    connection.say(&json!(["NOTICE", SETTLED]));
    std::future::pending().await
}

const SETTLED: &str = "settled";

/// The items that a client returned.
#[derive(Debug, Default)]
struct Received {
    /// Creation times, with the times up to which events are received.
    events: Vec<(i64, Option<u64>)>,
    notices: Vec<RelayNotice>,
}

impl Received {
    fn has(&self, notice: &RelayNotice) -> bool {
        self.notices.contains(notice)
    }

    fn count(&self, name: &str) -> usize {
        self.notices.iter().filter(|notice| notice.name() == name).count()
    }
}

fn kind_1() -> Filter {
    Filter { kinds: vec![1], ..Filter::default() }
}

#[tokio::test]
async fn stored_events_are_requested_until_there_are_no_older_ones() {
    let mut relay = Relay::start().await;
    let client = relay.client(kind_1(), |_| {});
    let play = async {
        let mut connection = relay.connection().await;
        let request = json!(["REQ", "w1", { "kinds": [1], "limit": 500 }]);
        assert_eq!(connection.hear().await, request);
        connection.say_page("w1", &[150, 200, 151]);
        // Whether newer ones were left out of the first page.
        let request = json!(["REQ", "w2", { "kinds": [1], "since": 200, "limit": 500 }]);
        assert_eq!(connection.hear().await, request);
        // A new event arrives meanwhile.
        connection.say_event(&json!("w1"), 300);
        connection.say_page("w2", &[200]);
        assert_eq!(connection.hear().await, json!(["CLOSE", "w2"]));
        let request = json!(["REQ", "w3", { "kinds": [1], "until": 150, "limit": 500 }]);
        assert_eq!(connection.hear().await, request);
        connection.say_page("w3", &[100, 150, 120]);
        assert_eq!(connection.hear().await, json!(["CLOSE", "w3"]));
        // Whether others within the first page were left out, as the relay has cut it off.
        assert_eq!(connection.hear().await[2]["until"], 100);
        connection.say_page("w4", &[100]);
        assert_eq!(connection.hear().await, json!(["CLOSE", "w4"]));
        assert_eq!(connection.hear().await[2]["until"], 99);
        connection.say_page("w5", &[]);
        assert_eq!(connection.hear().await, json!(["CLOSE", "w5"]));
        let filter = json!({ "kinds": [1], "since": 151, "until": 151, "limit": 500 });
        assert_eq!(connection.hear().await, json!(["REQ", "w6", filter]));
        connection.say_page("w6", &[151]);
        assert_eq!(connection.hear().await, json!(["CLOSE", "w6"]));
        connection.say_event(&json!("w1"), 400);
        connection.say_event(&json!("w1"), i64::MAX);
        connection.say(&json!(["EOSE", "w1"]));
        settle(&connection).await;
    };
    let (items, end) = run(client, play).await;
    let times: Vec<i64> = items.events.iter().map(|(time, _)| *time).collect();
    let stored = [150, 200, 151, 300, 200, 100, 150, 120, 100, 151];
    assert_eq!(times[..10], stored);
    assert_eq!(times[10..], [400, i64::MAX]);
    assert!(items.events[..10].iter().all(|(_, resume)| resume.is_none()), "{items:?}");
    assert_eq!(items.events[10].1, Some(400));
    let now = base::now_micros() / 1_000_000;
    assert!(items.events[11].1.is_some_and(|resume| resume > 400 && resume <= now), "{items:?}");
    assert!(items.has(&RelayNotice::EndOfStored { resume: Some(300), gap: None }));
    assert_eq!(end, None);
}

#[tokio::test]
async fn a_lost_connection_is_resumed_before_the_last_event_and_one_within_stored_events_anew() {
    let mut relay = Relay::start().await;
    let client = relay.client(kind_1(), |options| options.resume = Some(500));
    let play = async {
        let mut connection = relay.connection().await;
        assert_eq!(connection.hear().await[2]["since"], 440);
        connection.say_event(&json!("w1"), 900);
        drop(connection);
        let mut connection = relay.connection().await;
        let request = json!(["REQ", "w2", { "kinds": [1], "since": 440, "limit": 500 }]);
        assert_eq!(connection.hear().await, request);
        connection.say(&json!(["EOSE", "w2"]));
        connection.say_event(&json!("w2"), 1_000);
        // Not one of this connection.
        connection.say_event(&json!("w1"), 2_000);
        connection.say_event(&json!("w3"), 2_000);
        drop(connection);
        let mut connection = relay.connection().await;
        assert_eq!(connection.hear().await[2]["since"], 940);
        settle(&connection).await;
    };
    let (items, end) = run(client, play).await;
    assert_eq!(items.events, [(900, None), (1_000, Some(1_000))]);
    assert_eq!((items.count("disconnected"), items.count("unknown-subscription")), (2, 2));
    assert_eq!(end, None);
}

#[tokio::test]
async fn a_limit_bounds_the_stored_events_and_requests_no_older_ones() {
    let mut relay = Relay::start().await;
    let client = relay.client(Filter { limit: Some(2), ..Filter::default() }, |_| {});
    let play = async {
        let mut connection = relay.connection().await;
        assert_eq!(connection.hear().await, json!(["REQ", "w1", { "limit": 2 }]));
        [30, 20, 10].into_iter().for_each(|time| connection.say_event(&json!("w1"), time));
        connection.say(&json!(["EOSE", "w1"]));
        connection.say_event(&json!("w1"), 40);
        settle(&connection).await;
    };
    let (items, _) = run(client, play).await;
    assert_eq!(items.events, [(30, None), (20, None), (40, Some(40))]);
    assert_eq!(items.count("unrequested"), 1);
}

#[tokio::test]
async fn a_relay_that_ignores_the_end_of_a_page_is_not_asked_again_and_again() {
    let mut relay = Relay::start().await;
    let client = relay.client(Filter::default(), |_| {});
    let play = async {
        let mut connection = relay.connection().await;
        let mut requests = 0;
        let mut answer = |_: &Value| {
            requests += 1;
            vec![if requests == 1 { 10 } else { 20 }]
        };
        loop {
            let other = connection.answer(&mut answer).await;
            connection.say(&json!(["NEG-ERR", other[1], "blocked: no"]));
        }
    };
    let items = run_until(client, play, is_end_of_stored).await;
    let is_gap = |notice: &RelayNotice| {
        matches!(notice, RelayNotice::EndOfStored { resume: None, gap: Some(_) })
    };
    assert!(items.notices.iter().any(is_gap), "{items:?}");
}

/// The items that a client returns up to a notice.
async fn run_until(
    mut client: Client,
    play: impl Future<Output = ()>,
    is_last: impl Fn(&RelayNotice) -> bool,
) -> Received {
    let mut items = Received::default();
    let receive = async {
        loop {
            match client.next().await.unwrap() {
                RelayItem::Event(event) => {
                    let json: Value = serde_json::from_str(event.text.as_str()).unwrap();
                    items.events.push((json["created_at"].as_i64().unwrap(), event.resume));
                }
                RelayItem::Notice(notice) => {
                    items.notices.push(notice.clone());
                    if is_last(&notice) {
                        return;
                    }
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = receive => {}
        () = play => panic!("the play has ended"),
    }
    items
}

fn is_end_of_stored(notice: &RelayNotice) -> bool {
    matches!(notice, RelayNotice::EndOfStored { .. })
}

#[tokio::test]
async fn a_relay_that_says_it_has_finished_is_asked_once() {
    let mut relay = Relay::start().await;
    let client = relay.client(Filter::default(), |_| {});
    let play = async {
        let mut connection = relay.connection().await;
        connection.hear().await;
        connection.say_event(&json!("w1"), 10);
        connection.say(&json!(["EOSE", "w1", ["unknown", "finish"]]));
        panic!("{}", connection.hear().await);
    };
    let items = run_until(client, play, is_end_of_stored).await;
    assert!(items.has(&RelayNotice::EndOfStored { resume: Some(10), gap: None }));
}

#[tokio::test]
async fn events_with_further_items_are_read_and_unreadable_messages_leave_a_gap() {
    let mut relay = Relay::start().await;
    let event = |time: i64| json!({ "id": format!("{time:064x}"), "created_at": time });
    for (message, gap, events) in [
        (json!(["EVENT", "w1", event(7), { "x": 1 }]), None, 1),
        (json!(["EVENT", "w1", event(7), 1, null]), None, 1),
        (json!(["EVENT", "w1", 7]), Some(Gap::Unreadable(1)), 0),
        (json!({ "EVENT": event(7) }), Some(Gap::Unreadable(1)), 0),
        (json!(["UNKNOWN", "w1", 7]), None, 0),
    ] {
        let client = relay.client(Filter::default(), |_| {});
        let play = async {
            let mut connection = relay.connection().await;
            connection.hear().await;
            connection.say(&message);
            connection.say(&json!(["EOSE", "w1", ["finish"], 1]));
            std::future::pending::<()>().await;
        };
        let items = run_until(client, play, is_end_of_stored).await;
        let resume = (events > 0).then_some(7);
        assert!(items.has(&RelayNotice::EndOfStored { resume, gap }), "{message}: {items:?}");
        assert_eq!(items.events.len(), events, "{message}");
    }
}

#[tokio::test]
async fn where_a_relay_allows_one_subscription_the_lasting_one_comes_after_the_pages() {
    // The second one is refused, or the first one is ended for it, or the connection is.
    for way in ["refused", "ended", "cut"] {
        let mut relay = Relay::start().await;
        let client = relay.client(Filter::default(), |_| {});
        let times = [40, 30, 20, 10];
        let play = async {
            let mut connection = relay.connection().await;
            let mut open: Vec<String> = Vec::new();
            loop {
                let request = connection.hear().await;
                let subscription = request[1].as_str().unwrap().to_owned();
                if request[0] == "CLOSE" {
                    open.retain(|other| *other != subscription);
                    continue;
                }
                if let Some(other) = open.pop() {
                    match way {
                        "refused" => {
                            let reason = "error: too many subscriptions";
                            connection.say(&json!(["CLOSED", subscription, reason]));
                            open.push(other);
                            continue;
                        }
                        "ended" => connection.say(&json!(["CLOSED", other, "error: replaced"])),
                        _ => {
                            // Its end is the end of the connection.
                            connection.say = unbounded_channel().0;
                            connection = relay.connection().await;
                            continue;
                        }
                    }
                }
                let until = request[2]["until"].as_i64().unwrap_or(i64::MAX);
                let since = request[2]["since"].as_i64().unwrap_or(0);
                let matching = times.iter().filter(|time| (since..=until).contains(*time));
                let page: Vec<i64> = matching.take(2).copied().collect();
                connection.say_page(&subscription, &page);
                open.push(subscription);
            }
        };
        let items = run_until(client, play, is_end_of_stored).await;
        let end = RelayNotice::EndOfStored { resume: Some(40), gap: None };
        assert!(items.has(&end), "{way}: {items:?}");
        assert!(times.iter().all(|time| items.events.contains(&(*time, None))), "{way}: {items:?}");
    }
}

#[tokio::test]
async fn a_full_second_is_compared_and_only_what_is_missing_is_requested() {
    let mut relay = Relay::start().await;
    let client = relay.client(Filter::default(), |_| {});
    let id = |number: u8| [number; 32];
    let play = async {
        let mut connection = relay.connection().await;
        let say = |connection: &Connection, subscription: &Value, number: u8| {
            let id = kernels::hex::encode(&id(number));
            connection.say(&json!(["EVENT", subscription, { "id": id, "created_at": 50 }]));
        };
        loop {
            let mut request = connection.hear().await;
            match request[0].as_str().unwrap() {
                "REQ" if request[2]["ids"].is_array() => {
                    let ids = request[2]["ids"].as_array().unwrap();
                    assert_eq!(ids.len(), 2);
                    [3, 4].into_iter().for_each(|number| say(&connection, &request[1], number));
                    connection.say(&json!(["EOSE", request[1]]));
                }
                "REQ" => {
                    let since = request[2]["since"].as_i64().unwrap_or(0);
                    if since <= 50 && request[2]["until"].as_i64().is_none_or(|until| until >= 50) {
                        [1, 2].into_iter().for_each(|number| say(&connection, &request[1], number));
                    }
                    connection.say(&json!(["EOSE", request[1]]));
                }
                "NEG-OPEN" => {
                    let theirs: Items =
                        (1..=4).map(|number| Item { created_at: 50, id: id(number) }).collect();
                    let mut message = request[3].as_str().unwrap().to_owned();
                    while request[0] != "NEG-CLOSE" {
                        let mut bytes = Vec::new();
                        assert!(kernels::hex::decode_into(message.as_bytes(), &mut bytes));
                        let reply = negentropy::answer(&theirs, &bytes, 60_000).unwrap();
                        let reply = kernels::hex::encode(&reply);
                        connection.say(&json!(["NEG-MSG", request[1], reply]));
                        request = connection.hear().await;
                        message = request[2].as_str().unwrap_or_default().to_owned();
                    }
                }
                _ => {}
            }
        }
    };
    let items = run_until(client, play, is_end_of_stored).await;
    assert!(items.has(&RelayNotice::EndOfStored { resume: Some(50), gap: None }), "{items:?}");
    assert!(items.events.len() >= 4);
}

#[tokio::test]
async fn a_reason_decides_if_the_relay_is_given_up_or_asked_again() {
    for (reason, connections) in [
        ("blocked: no", 1),
        ("pow: 20", 1),
        ("mute: you", 1),
        ("payment-required: pay", 1),
        ("invalid: filter", 1),
        ("restricted: members only", 3),
        ("auth-required: who", 3),
    ] {
        let mut relay = Relay::start().await;
        let client = relay.client(Filter::default(), |_| {});
        let play = async {
            loop {
                let mut connection = relay.connection().await;
                let request = connection.hear().await;
                connection.say(&json!(["CLOSED", request[1], reason]));
                while connection.heard.recv().await.is_some() {}
            }
        };
        let (items, end) = run(client, play).await;
        assert_eq!(end, Some(RelayError::Refused(Reason::parse(reason))));
        assert_eq!(items.count("connected"), connections, "{reason}");
    }
    // Requests answered before are repeated.
    let mut relay = Relay::start().await;
    let client = relay.client(Filter::default(), |_| {});
    let play = async {
        let mut connection = relay.connection().await;
        connection.hear().await;
        connection.say(&json!(["EOSE", "w1", ["finish"]]));
        connection.say(&json!(["CLOSED", "w1", "restricted: not for long"]));
        let mut connection = relay.connection().await;
        connection.hear().await;
        connection.say(&json!(["EOSE", "w2", ["finish"]]));
        settle(&connection).await;
    };
    let (items, end) = run(client, play).await;
    assert_eq!((items.count("end-of-stored"), end), (2, None));
}

#[tokio::test]
async fn a_relay_that_asks_who_it_is_has_an_answer_with_its_challenge() {
    for is_early in [true, false] {
        let mut relay = Relay::start().await;
        let client = relay.client(Filter::default(), |options| {
            options.authenticator = Some(Authenticator::new(&[7; 32]).unwrap());
        });
        let play = async {
            let mut connection = relay.connection().await;
            connection.hear().await;
            let challenge = json!(["AUTH", "a \"b\""]);
            if is_early {
                connection.say(&challenge);
            }
            connection.say(&json!(["CLOSED", "w1", "auth-required: who"]));
            if !is_early {
                connection.say(&challenge);
            }
            let mut answer = connection.hear().await;
            while answer[0] != "AUTH" {
                answer = connection.hear().await;
            }
            assert_eq!(answer[1]["tags"][1], json!(["challenge", "a \"b\""]));
            connection.say(&json!(["OK", answer[1]["id"], true, ""]));
            let request = connection.hear().await;
            assert_eq!(request[0], "REQ");
            connection.say(&json!(["EOSE", request[1], ["finish"]]));
            settle(&connection).await;
        };
        let (items, end) = run(client, play).await;
        assert_eq!((items.count("authenticated"), items.count("end-of-stored")), (1, 1));
        assert_eq!(end, None);
    }
    let mut relay = Relay::start().await;
    let client = relay.client(Filter::default(), |options| {
        options.authenticator = Some(Authenticator::new(&[7; 32]).unwrap());
    });
    let play = async {
        let mut connection = relay.connection().await;
        connection.hear().await;
        connection.say(&json!(["AUTH", "challenge"]));
        connection.say(&json!(["CLOSED", "w1", "auth-required: who"]));
        let answer = connection.hear().await;
        connection.say(&json!(["OK", answer[1]["id"], false, "restricted: not you"]));
        std::future::pending::<()>().await;
    };
    let (_, end) = run(client, play).await;
    assert_eq!(end, Some(RelayError::Refused(Reason::parse("restricted: not you"))));
}

#[tokio::test]
async fn a_rate_limit_is_retried_and_a_missing_permission_ends_the_client() {
    let mut relay = Relay::start().await;
    let client = relay.client(Filter::default(), |_| {});
    let play = async {
        let mut connection = relay.connection().await;
        connection.hear().await;
        connection.say(&json!(["NOTICE", "be\nslow"]));
        connection.say(&json!(["CLOSED", "other", "error: not ours"]));
        connection.say(&json!(["CLOSED", "w1", "rate-limited: slow down"]));
        let mut connection = relay.connection().await;
        connection.hear().await;
        connection.say(&json!(["AUTH", "challenge"]));
        connection.say(&json!(["CLOSED", "w2", "blocked: not you"]));
        std::future::pending::<()>().await
    };
    let (items, end) = run(client, play).await;
    let reason = |text: &str| Reason::parse(text);
    assert!(items.has(&RelayNotice::Message("be slow".to_owned())));
    assert!(items.has(&RelayNotice::Closed(reason("rate-limited: slow down"))));
    assert!(items.has(&RelayNotice::Disconnected(SocketError::Ended("CLOSED".to_owned()))));
    assert!(items.has(&RelayNotice::AuthRequested { challenge: "challenge".to_owned() }));
    assert_eq!(items.count("unknown-subscription"), 1);
    assert_eq!(end, Some(RelayError::Refused(reason("blocked: not you"))));
}

#[tokio::test]
async fn silence_while_an_answer_is_awaited_ends_the_connection_and_silence_after_it_does_not() {
    let mut relay = Relay::start().await;
    let limit = Duration::from_millis(300);
    let client = relay.client(Filter::default(), |options| options.answer_timeout = limit);
    let play = async {
        let mut connection = relay.connection().await;
        connection.hear().await;
        let mut next = relay.connection().await;
        next.hear().await;
        next.say(&json!(["EOSE", "w2"]));
        tokio::time::sleep(4 * limit).await;
    };
    let (items, _) = run(client, play).await;
    assert!(items.has(&RelayNotice::Disconnected(SocketError::NoMessage(limit))));
    assert_eq!((items.count("disconnected"), items.count("end-of-stored")), (1, 1));
}

#[tokio::test]
async fn what_is_no_message_is_reported_and_what_is_too_long_ends_the_connection() {
    let mut relay = Relay::start().await;
    let client =
        relay.client(Filter::default(), |options| options.socket.max_message_bytes = 1_000);
    let play = async {
        let mut connection = relay.connection().await;
        connection.hear().await;
        connection.say.send(Message::text("garbage")).unwrap();
        connection.say.send(Message::binary(vec![0; 10])).unwrap();
        connection.say(&json!(["EVENT", "w1", 7]));
        connection.say(&json!(["OK", "", true, ""]));
        connection.say(&json!(["NOTICE", "x".repeat(1_001)]));
        relay.connection().await.hear().await;
    };
    let (items, _) = run(client, play).await;
    assert_eq!((items.count("unrecognized"), items.count("notice")), (3, 0));
    assert!(items.has(&RelayNotice::Disconnected(SocketError::TooLarge(1_000))), "{items:?}");
}

fn known(numbers: std::ops::Range<i64>) -> Items {
    let id = |number: i64| {
        let mut id = [0; 32];
        id[24..].copy_from_slice(&number.to_be_bytes());
        id
    };
    numbers.map(|number| Item { created_at: number as u64, id: id(number) }).collect()
}

/// Plays the relay's side of a comparison.
async fn compare(connection: &mut Connection, theirs: &Items) {
    let open = connection.hear().await;
    assert_eq!((&open[0], &open[2]), (&json!("NEG-OPEN"), &json!({ "kinds": [1] })));
    let mut message = open[3].as_str().unwrap().to_owned();
    loop {
        let mut bytes = Vec::new();
        assert!(kernels::hex::decode_into(message.as_bytes(), &mut bytes));
        let reply = negentropy::answer(theirs, &bytes, 60_000).unwrap();
        connection.say(&json!(["NEG-MSG", open[1], kernels::hex::encode(&reply)]));
        let next = connection.hear().await;
        if next[0] == "NEG-CLOSE" {
            return;
        }
        message = next[2].as_str().unwrap().to_owned();
    }
}

#[tokio::test]
async fn only_missing_events_are_requested_and_those_since_the_comparison() {
    let mut relay = Relay::start().await;
    let client = relay.client(kind_1(), |options| options.known = Some(Arc::new(known(0..700))));
    let play = async {
        let mut connection = relay.connection().await;
        compare(&mut connection, &known(300..1_000)).await;
        let request = connection.hear().await;
        assert_eq!(request[2]["ids"].as_array().unwrap().len(), 250);
        // It sends one of them, then the connection is lost.
        let id = request[2]["ids"][0].as_str().unwrap();
        connection.say_event(&request[1], i64::from_str_radix(id, 16).unwrap());
        drop(connection);
        let mut connection = relay.connection().await;
        let mut requested = 0;
        loop {
            let request = connection.hear().await;
            let Some(ids) = request[2]["ids"].as_array() else { break };
            requested += ids.len();
            for id in &ids[..ids.len() - 1] {
                let created_at = i64::from_str_radix(id.as_str().unwrap(), 16).unwrap();
                connection.say_event(&request[1], created_at);
            }
            // Known, and not requested.
            connection.say_event(&request[1], 5);
            connection.say(&json!(["EOSE", request[1]]));
            let end = connection.hear().await;
            assert_eq!(end[0], "CLOSE");
        }
        // The last one of every group is requested again, until it comes alone.
        assert_eq!(requested, 301);
        settle(&connection).await;
    };
    let (items, end) = run(client, play).await;
    let mut times: Vec<i64> = items.events.iter().map(|(time, _)| *time).collect();
    times.sort_unstable();
    times.dedup();
    assert!(times.len() == 299 && times.iter().all(|time| (700..1_000).contains(time)));
    assert!(
        items
            .notices
            .iter()
            .any(|notice| matches!(notice, RelayNotice::Compared { rounds: 1.., missing: 300 }))
    );
    assert!(items.has(&RelayNotice::Fetched { withheld: 1 }), "{:?}", items.notices);
    assert_eq!((items.count("unrequested"), end), (3, None));
}

#[tokio::test]
async fn a_relay_that_cannot_compare_ids_ends_the_client_with_its_reason() {
    for answer in ["NEG-ERR", "CLOSED", "NEG-MSG", "nothing"] {
        let mut relay = Relay::start().await;
        let client = relay.client(Filter::default(), |options| {
            options.known = Some(Arc::default());
            options.answer_timeout = Duration::from_millis(500);
        });
        let play = async {
            let mut connection = relay.connection().await;
            connection.hear().await;
            match answer {
                "nothing" => {}
                "NEG-MSG" => connection.say(&json!(["NEG-MSG", "w1", "62"])),
                name => connection.say(&json!([name, "w1", "blocked: too many"])),
            }
            std::future::pending::<()>().await
        };
        let (_, end) = run(client, play).await;
        let expected = match answer {
            "nothing" => "no answer to NEG-OPEN",
            "NEG-MSG" => "message 1, at byte 0: unsupported version 98",
            _ => "blocked: too many",
        };
        assert_eq!(end, Some(RelayError::NotCompared(expected.to_owned())), "{answer}");
    }
}
