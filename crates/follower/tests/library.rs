//! The follower as a library call, on a simulated network.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use delivery::{
    Event, OpenFailure, SendFailure, Sink, SinkAddress, SinkLimits, SinkOptions, Sinks,
};
use net::firehose::StopSignal;
use simnet::servers::{Server, Simulation, Spec};
use wireproof_follower::{FollowedLine, Follower, FollowerBuilder, Start, VerifyLevel};

fn network() -> Simulation {
    let spec =
        Spec { accounts: 4, records: 3, initial_commits: 20, jetstreams: 0, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn builder(network: &Simulation, state: &Path) -> FollowerBuilder {
    Follower::builder()
        .host(network.url(Server::Relay(0)))
        .plc(network.url(Server::Plc).parse().unwrap())
        .development(Some(network.port(Server::Pds(0))))
        .state(state)
        .start(Start::After(0))
}

fn count_records(file: &Path) -> i64 {
    let database = rusqlite::Connection::open(file).unwrap();
    database.query_row("SELECT count(*) FROM record", (), |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_delivers_into_sqlite_and_the_next_one_goes_on() {
    let (network, folder) = (network(), tempfile::tempdir().unwrap());
    let (state, file) = (folder.path().join("state"), folder.path().join("records.db"));
    let to = format!("sqlite:{}", file.display());
    let events = network.sent_count(Server::Relay(0));
    let follower = builder(&network, &state).events(events).to(&to).unwrap().build().unwrap();
    let counts = follower.run().await.unwrap();
    assert_eq!(counts.delivered, events);
    let first = count_records(&file);
    assert!(first > 0);

    network.write_commits(30);
    let follower = builder(&network, &state).events(30).to(&to).unwrap().build().unwrap();
    let counts = follower.run().await.unwrap();
    assert_eq!(counts.delivered, 30, "the second run resumes after the first one");
    assert!(count_records(&file) > first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_gets_each_line_with_its_verdict_until_a_stop_is_requested() {
    let (network, folder) = (network(), tempfile::tempdir().unwrap());
    let follower = builder(&network, folder.path()).build().unwrap();
    let stop: StopSignal = follower.stop_signal();
    let (ids, events) =
        (Arc::new(Mutex::new(BTreeSet::new())), network.sent_count(Server::Relay(0)));
    let seen = ids.clone();
    let counts = follower
        .run_into(move |line| {
            let id = line.parse().unwrap().id.unwrap().to_string();
            assert!(line.text().contains(r#""verdict":""#));
            let mut seen = seen.lock().unwrap();
            assert!(seen.insert(id), "each line once");
            if seen.len() as u64 == events {
                stop.request();
            }
            line.acknowledge();
        })
        .await
        .unwrap();
    assert_eq!((counts.delivered, ids.lock().unwrap().len() as u64), (events, events));
}

#[tokio::test]
async fn an_acknowledgement_that_is_dropped_ends_the_run_and_the_event_comes_again() {
    let (network, folder) = (network(), tempfile::tempdir().unwrap());
    let follower = builder(&network, folder.path()).build().unwrap();
    follower.run_into(|line| drop(line)).await.unwrap_err();
    let lines = Arc::new(Mutex::new(0));
    let (counted, events) = (lines.clone(), network.sent_count(Server::Relay(0)));
    let follower = builder(&network, folder.path()).events(events).build().unwrap();
    let handler = move |line: FollowedLine<'_>| {
        *counted.lock().unwrap() += 1;
        line.acknowledge();
    };
    follower.run_into(handler).await.unwrap();
    assert_eq!(*lines.lock().unwrap(), events, "nothing was acknowledged before");
}

/// The events of the sinks of the scheme `memory`.
static MEMORY: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct MemoryAddress;

struct MemorySink;

impl SinkAddress for MemoryAddress {
    const SCHEMES: &'static [&'static str] = &["memory"];
    const FORM: &'static str = "memory:";
    type Sink = MemorySink;

    fn from_uri(_: &str) -> Result<Self, String> {
        Ok(Self)
    }

    fn consumer(&self) -> String {
        "memory".to_owned()
    }

    async fn open(&self, _: &SinkOptions) -> Result<MemorySink, OpenFailure> {
        Ok(MemorySink)
    }
}

impl Sink for MemorySink {
    fn limits(&self) -> SinkLimits {
        SinkLimits::new(10, 1 << 20)
    }

    async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
        MEMORY.lock().unwrap().extend(events.iter().map(|event| event.id().to_owned()));
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_of_the_embedder_gets_the_events_by_its_scheme() {
    let (network, folder) = (network(), tempfile::tempdir().unwrap());
    let events = network.sent_count(Server::Relay(0));
    let builder = builder(&network, folder.path()).events(events);
    let builder = builder.sinks(Sinks::built_in().with::<MemoryAddress>());
    builder.to("memory:").unwrap().build().unwrap().run().await.unwrap();
    let ids: BTreeSet<String> = MEMORY.lock().unwrap().iter().cloned().collect();
    assert_eq!(ids.len() as u64, events);
}

#[tokio::test]
async fn options_that_do_not_fit_are_refused_before_anything_is_opened() {
    let refused =
        |builder: FollowerBuilder| builder.build().unwrap_err().message().map(str::to_owned);
    let text = refused(Follower::builder().backfill()).unwrap();
    assert!(text.starts_with("--backfill"), "{text}");
    let text = refused(Follower::builder().resync().verify(VerifyLevel::None)).unwrap();
    assert!(text.contains("--resync"), "{text}");
    let fault = Follower::builder().to("carrier-pigeon://loft").unwrap_err();
    let text = fault.message().unwrap();
    assert!(text.contains("sqlite:///FILE") && !text.contains("loft"), "{text}");
    Follower::builder().build().unwrap().run().await.unwrap_err();
}
