//! The server of an archive: every client has every event, whatever the others do and whatever becomes of the files.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use atproto::event::{Account, Decoder, Event};
use base::StopSignal;
use futures_util::StreamExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use wireproof_archive::{
    Archive, ArchiveError, ArchiveServer, ArchivedEvent, JUDGE, ServeMetrics, ServeOptions, WorkId,
};

use crate::common::archive;
use crate::common::writers::{Writers, after, received};

/// A server on a thread pool.
struct Serving {
    address: SocketAddr,
    metrics: Arc<ServeMetrics>,
    stop: StopSignal,
    run: JoinHandle<Result<(), ArchiveError>>,
}

impl Serving {
    async fn start(archive: Archive, options: ServeOptions) -> Self {
        let address = "127.0.0.1:0".parse().unwrap();
        let server = ArchiveServer::bind(archive, address, options).await.unwrap();
        let address = server.address();
        let metrics = server.metrics();
        let stop = StopSignal::new();
        let run = tokio::spawn(server.run(stop.clone()));
        Self { address, metrics, stop, run }
    }

    /// A client of all events that takes up to these bytes before it reads.
    async fn connect(&self, receive_buffer_bytes: u32) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(receive_buffer_bytes).unwrap();
        let stream = socket.connect(self.address).await.unwrap();
        Client(client_async(self.url(), stream).await.unwrap().0)
    }

    fn url(&self) -> String {
        format!("ws://{}/xrpc/com.atproto.sync.subscribeRepos?cursor=0", self.address)
    }

    /// A client of all events, which connects until there is a place for it.
    async fn connect_in_time(&self) -> Client {
        let connected = async {
            loop {
                let stream = TcpStream::connect(self.address).await.unwrap();
                match client_async(self.url(), stream).await {
                    Ok((socket, _)) => return Client(socket),
                    Err(Error::Http(response)) => {
                        assert_eq!(response.status(), 503);
                        assert!(response.headers().contains_key("retry-after"));
                    }
                    Err(other) => panic!("{other}"),
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LIMIT, connected).await.expect("a place")
    }

    async fn end(self) {
        self.stop.request();
        timeout(LIMIT, self.run).await.unwrap().unwrap().unwrap();
    }
}

struct Client(WebSocketStream<TcpStream>);

impl Client {
    /// The next frame; `None` at the end.
    async fn next(&mut self) -> Option<Vec<u8>> {
        let frame = async {
            loop {
                match self.0.next().await? {
                    Ok(Message::Binary(frame)) => return Some(frame.to_vec()),
                    Ok(_) => {}
                    Err(_) => return None,
                }
            }
        };
        // Pings do not prolong it.
        timeout(LIMIT, frame).await.expect("an event, or the end")
    }

    /// Reads to the end of the stream, and so answers pings.
    async fn answer_pings(&mut self) {
        while let Some(Ok(_)) = self.0.next().await {}
    }

    async fn take(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        for _ in 0..count {
            frames.push(self.next().await.expect("the stream goes on"));
        }
        frames
    }
}

/// Accounts of large events: the first one has the odd ones.
const LARGE: [&str; 2] = ["did:web:odd.test", "did:web:even.test"];

/// The account of a large event.
fn large_account(seq: i64) -> &'static str {
    LARGE[usize::from(seq % 2 == 0)]
}

/// Stores events of 48 KiB.
async fn seal_large_events(archive: &Archive, count: i64) {
    let status = "x".repeat(48 << 10);
    let frame = |seq| {
        let (did, time) = (large_account(seq), "2026-07-01T00:00:00Z");
        Event::Account(Account { seq, did, time, active: false, status: Some(&status) }).to_frame()
    };
    let frames: Vec<Vec<u8>> = (1..=count).map(frame).collect();
    let events = (1..).zip(&frames).map(|(seq, frame)| ArchivedEvent {
        did: Some(large_account(seq)),
        arrival: received(0) + seq,
        host: "relay.test",
        seq: Some(seq),
        kind: "#account",
        received: received(0),
        verdict: "unchecked",
        key: None,
        judge: JUDGE,
        frame,
    });
    let work = WorkId { writer: "test".to_owned(), number: 1 };
    archive.seal(events.collect(), &work).await.unwrap();
}

/// Revision of a commit.
fn rev(frame: &[u8]) -> String {
    match Decoder::new(Default::default()).decode(frame).unwrap() {
        Event::Commit(commit) => commit.rev.to_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_is_dropped_and_the_others_get_every_event() {
    let (_folder, archive) = archive();
    seal_large_events(&archive, 600).await;
    let mut options = ServeOptions::default();
    // Long enough that a busy machine does not keep the other client from its pings.
    options.idle_timeout = Duration::from_secs(2);
    let serving = Serving::start(archive, options).await;
    let stuck = serving.connect(32 << 10).await;
    let mut reading = serving.connect(32 << 10).await;
    assert_eq!(reading.take(600).await.len(), 600);
    // Its connection ends after the attempt to say why.
    let dropped = async {
        while serving.metrics.open.load(Relaxed) > 1 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        dropped = timeout(LIMIT, dropped) => dropped.expect("the client that takes nothing is dropped"),
        () = reading.answer_pings() => panic!("the client that has everything is dropped"),
    }
    // Events that it had not taken were not sent, except for the sockets' buffers.
    let sent = serving.metrics.sent.load(Relaxed);
    assert!((600..1_000).contains(&sent), "{sent}");
    // One that has everything and answers pings stays.
    assert!(timeout(LIMIT, reading.0.next()).await.is_ok(), "a ping");
    assert_eq!(serving.metrics.open.load(Relaxed), 1);
    assert_eq!(serving.metrics.dropped.load(Relaxed), 1);
    drop(stuck);
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_only_answer_pings_keep_no_other_client_out_for_good() {
    let (mut writers, (_folder, archive)) = (Writers::new(2, 24), archive());
    let frames = writers.commits(20);
    writers.import(&archive, &frames, "stream", 0).await;
    let mut options = ServeOptions::default();
    options.min_idle = Duration::from_millis(300);
    let serving = Serving::start(archive, options).await;
    let mut pinging = Vec::new();
    for _ in 0..16 {
        let mut client = serving.connect(1 << 20).await;
        client.take(20).await;
        // It reads, and so answers pings.
        pinging.push(tokio::spawn(async move {
            loop {
                match client.0.next().await {
                    Some(Ok(Message::Close(frame))) => return frame.map(|of| u16::from(of.code)),
                    Some(Ok(_)) => {}
                    _ => return None,
                }
            }
        }));
    }
    let mut other = serving.connect_in_time().await;
    assert_eq!(other.take(20).await.len(), 20);
    assert_eq!(serving.metrics.gave_way.load(Relaxed), 1);
    let (ended, ..) = futures_util::future::select_all(pinging).await;
    assert_eq!(ended.unwrap(), Some(1013), "it may connect again");
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_get_every_event_while_the_files_are_replaced() {
    let (mut writers, (folder, archive)) = (Writers::new(3, 21), archive());
    let mut expected = Vec::new();
    for part in 0..8 {
        let frames = writers.commits(25);
        writers.import(&archive, &frames, &format!("part {part}"), part / 4).await;
        expected.extend(frames.iter().map(|frame| rev(frame)));
    }
    let served = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let mut options = ServeOptions::default();
    (options.rate, options.poll_interval) = (NonZeroU32::new(200), Duration::from_millis(20));
    let serving = Serving::start(served, options).await;
    let mut clients = [serving.connect(1 << 20).await, serving.connect(1 << 20).await];
    let mut received = clients.each_mut().map(|_| Vec::new());
    for taken in [30, 90, 80] {
        for (client, received) in clients.iter_mut().zip(&mut received) {
            received.extend(client.take(taken).await.iter().map(|frame| rev(frame)));
        }
        archive.compact(after(i64::from(taken > 30))).await.unwrap();
    }
    for received in received {
        assert_eq!(received, expected);
    }
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_get_nothing_more_of_an_account_that_is_erased() {
    let (folder, archive) = archive();
    seal_large_events(&archive, 600).await;
    let served = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let mut options = ServeOptions::default();
    options.poll_interval = Duration::from_millis(20);
    // No client is disconnected for events that it does not take meanwhile.
    options.idle_timeout = LIMIT * 10;
    let serving = Serving::start(served, options).await;
    let mut client = serving.connect(32 << 10).await;
    assert_eq!(accounts(&client.take(20).await), LARGE.repeat(10));
    archive.erase(LARGE[0], "deleted", received(1)).await.unwrap();
    let is_known = async {
        while accounts(&serving.connect(32 << 10).await.take(2).await) != [LARGE[1]; 2] {}
    };
    timeout(LIMIT, is_known).await.expect("new clients get nothing of it");
    // The sockets hold fewer than 400 events that were sent before.
    let mut rest = Vec::new();
    while rest.iter().filter(|did| **did == LARGE[1]).count() < 290 {
        rest.extend(accounts(&client.take(1).await));
    }
    assert_eq!(rest[rest.len() - 90..], [LARGE[1]; 90]);
    serving.end().await;
}

/// The accounts of large events.
fn accounts(frames: &[Vec<u8>]) -> Vec<&'static str> {
    let account = |frame: &Vec<u8>| match Decoder::new(Default::default()).decode(frame).unwrap() {
        Event::Account(account) => LARGE[usize::from(account.did == LARGE[1])],
        other => panic!("{other:?}"),
    };
    frames.iter().map(account).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_served_in_order_of_arrival_once_every_writer_has_sealed_within_the_delay() {
    let (mut writers, (folder, archive)) = (Writers::new(2, 23), archive());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = now.as_micros() as i64;
    let frames = writers.commits(20);
    let of = |writer: usize| {
        let frames = frames.iter().enumerate().filter(move |(number, _)| number % 2 == writer);
        let events = frames.map(|(number, frame)| ArchivedEvent {
            did: Some("did:web:account0.test"),
            arrival: now + number as i64,
            host: "relay.test",
            seq: Some(number as i64),
            kind: "#commit",
            received: now,
            verdict: "verified",
            key: None,
            judge: JUDGE,
            frame,
        });
        (events.collect(), WorkId { writer: format!("writer {writer}"), number: 1 })
    };
    let served = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let mut options = ServeOptions::default();
    (options.delay, options.poll_interval) = (Duration::from_secs(3), Duration::from_millis(20));
    let serving = Serving::start(served, options).await;
    let mut client = serving.connect(1 << 20).await;
    for writer in [1, 0] {
        let (events, work) = of(writer);
        archive.seal(events, &work).await.unwrap();
        sleep(Duration::from_millis(200)).await;
        assert_eq!(serving.metrics.sent.load(Relaxed), 0, "sent within the delay");
    }
    let received: Vec<String> = client.take(20).await.iter().map(|frame| rev(frame)).collect();
    assert_eq!(received, frames.iter().map(|frame| rev(frame)).collect::<Vec<_>>());
    serving.end().await;
}

/// Maximum wait of a test on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
