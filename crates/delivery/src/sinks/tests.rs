//! Sinks by their schemes: the schemes of this crate, and one that a test registers.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use base::StopSignal;

use super::*;
use crate::delivery::{Delivery, DeliveryOptions};
use crate::event::{Event, EventId, NewEvent};
use crate::outbox::{Outbox, StartAt};
use crate::outbox_options::Options;
use crate::sink::{SendFailure, Sink, SinkLimits};
use crate::sink_address::{consumer_name, local_path};

/// A file to which payloads are appended: the address, and the sink.
#[derive(Clone, Debug)]
struct Log(PathBuf);

impl Sink for Log {
    fn limits(&self) -> SinkLimits {
        SinkLimits::new(2, 1 << 20)
    }

    async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
        let lines = events.iter().flat_map(|event| [event.payload(), b"\n"].concat());
        let file = File::options().append(true).create(true).open(&self.0);
        file.and_then(|mut file| file.write_all(&lines.collect::<Vec<u8>>()))
            .map_err(SendFailure::temporary)
    }
}

impl SinkAddress for Log {
    const SCHEMES: &'static [&'static str] = &["log"];
    const FORM: &'static str = "log:///FILE";
    type Sink = Self;

    fn from_uri(uri: &str) -> Result<Self, String> {
        local_path(uri).map(Self)
    }

    fn consumer(&self) -> String {
        consumer_name("log", "file", self.0.as_os_str().as_encoded_bytes())
    }

    async fn open(&self, _: &SinkOptions) -> Result<Self, OpenFailure> {
        Ok(self.clone())
    }
}

#[tokio::test]
async fn a_registered_sink_is_opened_by_its_scheme_and_gets_the_events() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events");
    let sinks = Sinks::built_in().with::<Log>();
    assert_eq!(sinks.forms().next(), Some("log:///FILE"));
    let address = sinks.address(&format!("log://{}", path.display())).unwrap();
    assert!(address.consumer.starts_with("log-file-"), "{}", address.consumer);

    let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default()).unwrap();
    outbox.register(&address.consumer, StartAt::Oldest).unwrap();
    let event = |number: u64| {
        let id = EventId::of_commit("did:web:a.test", &number.to_string());
        NewEvent::new(id, "did:web:a.test", format!("{{\"n\":{number}}}")).unwrap()
    };
    outbox.append_all((1..=5).map(event)).unwrap();

    let sink = address.open(&SinkOptions::new(outbox.identity())).await.unwrap();
    let consumer = outbox.consumer(&address.consumer).unwrap();
    let delivery = Delivery::new(consumer, sink, None, DeliveryOptions::default());
    let (stop, metrics) = (StopSignal::new(), delivery.metrics());
    let running = tokio::spawn(delivery.run(stop.clone()));
    while metrics.accepted() < 5 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.request();
    assert_eq!(running.await.unwrap().unwrap().cursor, 5);
    let expected: String = (1..=5).map(|number| format!("{{\"n\":{number}}}\n")).collect();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn the_last_registered_sink_has_a_scheme() {
    #[derive(Clone, Debug)]
    struct OtherFiles(Log);

    impl SinkAddress for OtherFiles {
        const SCHEMES: &'static [&'static str] = &["file"];
        const FORM: &'static str = "file:///FOLDER";
        type Sink = Log;

        fn from_uri(uri: &str) -> Result<Self, String> {
            Log::from_uri(uri).map(Self)
        }

        fn consumer(&self) -> String {
            "other".to_owned()
        }

        async fn open(&self, _: &SinkOptions) -> Result<Log, OpenFailure> {
            Ok(self.0.clone())
        }
    }

    let sinks = Sinks::built_in().with::<OtherFiles>();
    assert_eq!(sinks.address("file:///a").unwrap().consumer, "other");
}

#[test]
fn a_scheme_that_is_not_there_is_unknown_or_of_a_feature() {
    let sinks = Sinks::built_in();
    for unknown in ["", "events", "FILE:///a", "ftp://me:secret@a.test/"] {
        assert_eq!(sinks.address(unknown).unwrap_err(), UriError::UnknownScheme, "{unknown}");
    }
    for (uri, feature, is_built_in) in [
        ("postgresql://a/b", "postgres", cfg!(feature = "postgres")),
        ("kafka://localhost/a", "kafka", cfg!(feature = "kafka")),
        ("nats://localhost/a", "nats", cfg!(feature = "nats")),
    ] {
        let error = sinks.address(uri).err();
        let missing =
            matches!(error, Some(UriError::MissingFeature { feature: of, .. }) if of == feature);
        assert_eq!((missing, error.is_none()), (!is_built_in, is_built_in), "{uri}");
    }
}

#[test]
fn no_error_repeats_a_password() {
    for uri in ["https://me:secret@hook.test/", "postgres://me:secret@a/b", "kafka://me:secret@a/b"]
    {
        let error = Sinks::built_in().address(uri).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn a_consumer_has_the_same_name_in_every_run_and_no_two_addresses_share_one() {
    let name = |uri: &str| Sinks::built_in().address(uri).unwrap().consumer;
    // Outboxes of earlier runs have consumers of these names.
    assert_eq!(name("file:///var/events"), "file-events-e3bd9e35");
    assert_eq!(name("sqlite:///var/Posts of ada.db"), "sqlite-posts_of_ada.db-1d7d3ed6");
    assert_eq!(name("https://hook.test/in"), "webhook-hook.test-abcaddaf");
    let current = std::env::current_dir().unwrap();
    assert_eq!(name("sqlite:a.db"), name(&format!("sqlite://{}/a.db", current.display())));
    let long = "x".repeat(300);
    let names = [
        name("sqlite:///a/posts.db"),
        name("sqlite:///b/posts.db"),
        name("file:///b/posts.db"),
        name(&format!("file:///{long}")),
        name(&format!("https://hook.test/{long}")),
    ];
    assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
    let different: BTreeSet<&String> = names.iter().collect();
    assert_eq!(different.len(), names.len());
}

#[test]
fn addresses_say_what_their_sinks_need_before_they_are_opened() {
    let address = |uri: &str| Sinks::built_in().address(uri).unwrap();
    let [files, tables, webhook] = ["file:///a", "sqlite:///a", "https://hook.test/"].map(address);
    let stores = [&files, &tables, &webhook].map(|of| of.stores_positions);
    assert_eq!(stores, [false, true, false]);
    let signs = [&files, &tables, &webhook].map(|of| of.signs_requests);
    assert_eq!(signs, [false, false, true]);
    let dir = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default()).unwrap();
    let mut options = SinkOptions::new(outbox.identity());
    assert!(!files.can_refuse(&options) && webhook.can_refuse(&options));
    options.form = crate::line_form::LineForm::Operations;
    assert!(files.can_refuse(&options));
}

#[tokio::test]
async fn a_webhook_without_a_client_or_a_secret_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default()).unwrap();
    let address = Sinks::built_in().address("https://hook.test/").unwrap();
    let failure = address.open(&SinkOptions::new(outbox.identity())).await.unwrap_err();
    assert!(matches!(failure, OpenFailure::Local(_)), "{failure}");
}
