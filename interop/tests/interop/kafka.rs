//! `follow --to kafka://…`: the topic has the records of the network, even if either side is killed; refusals.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use simnet::servers::{Server, Simulation, Spec};
use tokio::time::sleep;
use wireproof_interop::kafka::{Kafka, PASSWORD, USER};
use wireproof_interop::kit;
use wireproof_interop::postgres::Postgres;

use crate::certificates::Certificates;
use crate::delivery::Delivered;
use crate::queue::{
    Message, Queue, check_ends, dead_letters, holds_the_stream_back, lines_prove_again, small,
    survives_kills, wait_for_records,
};

impl Queue for Kafka {
    fn uri(&self) -> String {
        format!("kafka://{}/{TOPIC}", self.address())
    }

    fn kill(&mut self) {
        self.kill();
    }

    async fn run(&mut self) {
        self.run().await;
    }

    async fn messages(&self) -> Option<Vec<Message>> {
        let mut places = BTreeMap::new();
        let messages = self.records(TOPIC).await?.into_iter().map(|record| {
            let account = record.key_str().expect("a key").to_owned();
            let partition = *places.entry(account.clone()).or_insert(record.partition);
            assert_eq!(partition, record.partition, "{account} is in one partition");
            let id = record.header_str("id").expect("an id").to_owned();
            let line = serde_json::from_slice(&record.value.expect("a line")).expect("JSON");
            Message { account, id, line }
        });
        Some(messages.collect())
    }
}

async fn kafka_with_topic(kit: &wireproof_interop::program::Kit) -> Kafka {
    let kafka = Kafka::start(kit, "PLAINTEXT", "").await;
    kafka.create_topic(TOPIC, 3, &[]).await;
    kafka
}

#[tokio::test(flavor = "multi_thread")]
async fn after_kills_of_either_side_the_topic_has_every_record_in_order() {
    let kit = kit!(Kafka);
    let mut kafka = kafka_with_topic(&kit).await;
    let points = ["kafka/acknowledged@1", "kafka/acknowledged@3", "delivery/sent@2"];
    let messages = survives_kills(&mut kafka, &points).await;
    let ids: BTreeSet<&String> = messages.iter().map(|message| &message.id).collect();
    println!("{} records of {} events", messages.len(), ids.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_proves_again() {
    let kit = kit!(Kafka);
    lines_prove_again(&kafka_with_topic(&kit).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_broker_is_away_the_stream_waits_at_the_bound_of_the_outbox() {
    let kit = kit!(Kafka);
    holds_the_stream_back(&mut kafka_with_topic(&kit).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_takes_connections_long_before_it_answers_is_waited_for_at_the_start() {
    let kit = kit!(Kafka);
    let mut kafka = kafka_with_topic(&kit).await;
    let mut delivered = Delivered::new(&kafka.uri());
    kafka.pause(true);
    delivered.start(None);
    // Longer than a broker that is away is tried.
    sleep(Duration::from_secs(15)).await;
    assert!(!delivered.has_ended(), "{}", delivered.errors());
    kafka.pause(false);
    wait_for_records(&kafka, &mut delivered).await;
    delivered.interrupt();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_two_readers_that_rebalances_in_mid_stream_sees_every_event() {
    let kit = kit!(Kafka);
    let kafka = kafka_with_topic(&kit).await;
    let mut delivered = Delivered::new(&kafka.uri());
    delivered.start(None);
    let logs = ["first", "second"].map(|name| delivered.folder.path().join(name));
    let first = kafka.reader(TOPIC, "readers", &logs[0]);
    wait_for_lines(&mut delivered, &logs[0]).await;
    // The second one takes over partitions of the first, and then, after its death, all of them.
    let _second = kafka.reader(TOPIC, "readers", &logs[1]);
    wait_for_lines(&mut delivered, &logs[1]).await;
    first.kill();
    delivered.sim.write_commits(20);
    let expected = delivered.expected();
    let has_all = async || {
        let messages = kafka.messages().await.expect("messages");
        let seen: BTreeSet<String> = logs.iter().flat_map(|log| ids(log)).collect();
        crate::queue::records(&messages) == expected
            && messages.iter().all(|message| seen.contains(&message.id))
    };
    delivered.wait_until("every event at a reader", has_all).await;
    delivered.interrupt();
}

/// Writes until a reader has lines.
async fn wait_for_lines(delivered: &mut Delivered, log: &Path) {
    for _ in 0..600 {
        delivered.sim.write_commits(3);
        sleep(Duration::from_millis(100)).await;
        assert!(!delivered.has_ended(), "{}", delivered.errors());
        if ids(log).len() > 10 {
            return;
        }
    }
    panic!("the reader sees nothing: {}", delivered.errors());
}

/// The ids in the headers of the lines of a reader.
fn ids(log: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let ids = text.lines().filter_map(|line| line.strip_prefix("id:")?.split('\t').next());
    ids.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_refused_with_the_cure_and_without_the_password() {
    let kit = kit!(Kafka);
    let mut kafka = kafka_with_topic(&kit).await;
    let sasl = "sasl.enabled.mechanisms=SCRAM-SHA-512\n\
        listener.name.clients.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;\n";
    let guarded = Kafka::start(&kit, "SASL_PLAINTEXT", sasl).await;
    let far = Kafka::start_as(&kit, "queue.example", "PLAINTEXT", "").await;
    let file = |name: &str, text: &str| kafka.write_file(name, text).display().to_string();
    let (password, wrong) =
        (file("password", &format!("{PASSWORD}\n")), file("wrong", "wrong-one"));
    let open = format!("kafka://{}", kafka.address());
    let guarded = guarded.address();
    let far = far.address();
    let user = |file: &str| format!("kafka://{USER}@{guarded}/none?password_file={file}");
    let cases = [
        (format!("{open}/{TOPIC}"), 0, ""),
        (format!("{open}/{TOPIC}?broker=127.0.0.1:1"), 0, ""),
        (format!("{open}/none"), 4, "the topic none does not exist: create it"),
        // The user is accepted, and the topic is missing.
        (user(&password), 4, "the topic none does not exist"),
        (user(&wrong), 4, "uthentication"),
        (user("/nonexistent"), 4, "/nonexistent"),
        (format!("kafka://{guarded}/none"), 3, "kafka-127.0.0.1"),
        (format!("{open}/{TOPIC}?tls=true"), 3, "kafka-127.0.0.1"),
        (format!("kafka://{far}/{TOPIC}"), 4, "broker at queue.example"),
        (format!("kafka://{USER}@{guarded}/none?sasl=plain"), 2, "tls=true"),
        (format!("kafka://{USER}:secret@{guarded}/none"), 2, "password_file"),
        ("kafka://queue.example/events?tls=false".to_owned(), 2, "this machine only"),
        (format!("{open},127.0.0.1:1/{TOPIC}"), 2, "?broker=HOST:PORT"),
    ];
    check_ends(&cases, &["p%ss", "wrong-one", "secret"]);
    kafka.kill();
    check_ends(&[(format!("{open}/{TOPIC}"), 3, "kafka-127.0.0.1")], &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_too_large_is_set_aside_and_the_others_arrive() {
    let kit = kit!(Kafka);
    let kafka = Kafka::start(&kit, "PLAINTEXT", "").await;
    // Less than a batch of several records, so that batches are refused even if most of their records are small.
    kafka.create_topic(TOPIC, 1, &[("max.message.bytes", "900")]).await;
    let delivered = small(&kafka.uri());
    let sent = delivered.sim.sent_events(Server::Relay(0)).len();
    let output = delivered.output(&["--events", &sent.to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let refused = dead_letters(&delivered);
    let messages = kafka.messages().await.expect("messages");
    assert!(!refused.is_empty() && !messages.is_empty(), "{} of {sent}", refused.len());
    assert_eq!(messages.len() + refused.len(), sent);
    let largest = messages.iter().map(|message| message.line.to_string().len()).max();
    for letter in refused {
        assert!(letter.contains("MessageTooLarge"), "{letter}");
        let letter: serde_json::Value = serde_json::from_str(&letter).expect("JSON");
        assert!(Some(letter["event"].to_string().len()) > largest, "{letter}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_of_the_compose_file_delivers_into_kafka_and_postgresql() {
    let kit = kit!(Kafka, Postgres);
    let (kafka, postgres) =
        (kafka_with_topic(&kit).await, Postgres::start(&kit, &["fsync=off"]).await);
    postgres.create_database("wireproof").await;
    let compose = include_str!("../../../packaging/compose-queue.yaml");
    // The first service is ours. Its command is a list on one line, which is JSON too.
    let line = compose.lines().find_map(|line| line.trim().strip_prefix("command: "));
    let line = line.expect("a command");
    // Here the broker has another port, and the database no socket. Other tests may use the port of the endpoints.
    let line =
        line.replace("localhost:9092", &kafka.address()).replace("127.0.0.1:9464", "127.0.0.1:0");
    let socket = "postgres:///wireproof?host=/run/postgresql&user=wireproof";
    assert!(line.contains(socket), "{line}");
    let line = line.replace(socket, &postgres.uri("wireproof"));
    let args: Vec<String> = serde_json::from_str(&line).expect("a list");
    assert_eq!(args.first().map(String::as_str), Some("follow"));
    let spec =
        Spec { accounts: 3, records: 5, jetstreams: 0, initial_commits: 30, ..Spec::default() };
    let sim = Simulation::start(spec).expect("a network");
    let mut delivered = Delivered::with_args(sim, args.get(1..).unwrap_or_default());
    delivered.start(None);
    let has_all = async || {
        let Some(client) = postgres.try_connect("wireproof").await else { return false };
        let rows = client.query("SELECT id FROM event", &[]).await.unwrap_or_default();
        let rows: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
        let messages = kafka.messages().await.unwrap_or_default();
        rows.len() >= 30 && rows == messages.into_iter().map(|message| message.id).collect()
    };
    delivered.wait_until("the same events in both", has_all).await;
    delivered.interrupt();
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_verified() {
    let kit = kit!(Kafka);
    let (certificates, folder) = (Certificates::new(), tempfile::tempdir().expect("a folder"));
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let keystore = write("server.pem", &(certificates.server_key + &certificates.server));
    let roots = write("authority.pem", &certificates.authority);
    let tls = format!("ssl.keystore.type=PEM\nssl.keystore.location={keystore}\n");
    let kafka = Kafka::start_as(&kit, "localhost", "SSL", &tls).await;
    let localhost = kafka.address().replace("127.0.0.1", "localhost");
    let cases = [
        // The broker is reached, and the topic is missing.
        (format!("kafka://{localhost}/none?roots={roots}"), 4, "the topic none does not exist"),
        (format!("kafka://{localhost}/none?tls=true"), 3, "ertificate"),
        (format!("kafka://{}/none?roots={roots}", kafka.address()), 3, "ertificate"),
    ];
    check_ends(&cases, &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_takes_no_events_by_its_settings_is_refused_at_the_start() {
    let kit = kit!(Kafka);
    let kafka = Kafka::start(&kit, "PLAINTEXT", "").await;
    for (topic, setting) in [
        ("tiny", ("max.message.bytes", "100")),
        ("replicas", ("min.insync.replicas", "2")),
        ("compacted", ("cleanup.policy", "compact")),
        ("appended", ("message.timestamp.type", "LogAppendTime")),
    ] {
        kafka.create_topic(topic, 1, &[setting]).await;
    }
    let uri = |topic: &str| format!("kafka://{}/{topic}", kafka.address());
    let cases = [
        (uri("tiny"), 4, "max.message.bytes=100"),
        (uri("tiny"), 4, "(kafka/record-size)"),
        // This broker counts no more replicas than there are.
        (uri("replicas"), 0, ""),
        // Every record has a key.
        (uri("compacted"), 0, ""),
        (uri("appended"), 0, ""),
    ];
    check_ends(&cases, &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_is_named_where_the_broker_refuses_the_time_of_records_and_they_arrive_later() {
    let kit = kit!(Kafka);
    let kafka = Kafka::start(&kit, "PLAINTEXT", "").await;
    // By its own clock the broker gets every record after it was made.
    kafka.create_topic(TOPIC, 1, &[("message.timestamp.before.max.ms", "0")]).await;
    let mut delivered = Delivered::new(&kafka.uri());
    delivered.start(None);
    delivered.write(1);
    let errors = delivered.folder.path().join("errors");
    let reported = async || {
        let text = fs::read_to_string(&errors).unwrap_or_default();
        ["the clock of this machine", "before.max.ms=0", "(kafka/clock)", "it is retried"]
            .iter()
            .all(|part| text.contains(part))
    };
    delivered.wait_until("a report of the clock", reported).await;
    kafka.set_topic(TOPIC, "message.timestamp.before.max.ms", "3600000").await;
    crate::queue::wait_for_records(&kafka, &mut delivered).await;
    delivered.interrupt();
    assert_eq!(dead_letters(&delivered), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_changes_in_a_run_is_named_and_everything_arrives_once_it_is_mended() {
    let kit = kit!(Kafka);
    let kafka = kafka_with_topic(&kit).await;
    let mut delivered = Delivered::new(&kafka.uri());
    delivered.start(None);
    crate::queue::wait_for_records(&kafka, &mut delivered).await;
    kafka.set_topic(TOPIC, "max.message.bytes", "100").await;
    delivered.write(1);
    let errors = delivered.folder.path().join("errors");
    let reported = async || {
        let text = fs::read_to_string(&errors).unwrap_or_default();
        text.contains("(kafka/record-size); it is retried")
    };
    delivered.wait_until("a report of the setting", reported).await;
    kafka.set_topic(TOPIC, "max.message.bytes", "1000000").await;
    crate::queue::wait_for_records(&kafka, &mut delivered).await;
    delivered.interrupt();
    assert_eq!(dead_letters(&delivered), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn users_have_tokens_and_certificates() {
    let kit = kit!(Kafka);
    let sasl = "sasl.enabled.mechanisms=OAUTHBEARER\n\
        listener.name.clients.oauthbearer.sasl.jaas.config=\
        org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"broker\";\n";
    let by_token = Kafka::start(&kit, "SASL_PLAINTEXT", sasl).await;
    let file = |name: &str, text: &str| by_token.write_file(name, text).display().to_string();
    let token = file("token", &unsecured_token(3600));
    let expired = file("expired", &unsecured_token(-3600));
    let uri = format!("kafka://{}/none?sasl=oauthbearer", by_token.address());

    let certificates = Certificates::new();
    let roots = file("authority.pem", &certificates.authority);
    let certificate = file("client.pem", &certificates.client);
    let key = file("client.key", &certificates.client_key);
    let keystore = file("server.pem", &(certificates.server_key + &certificates.server));
    let tls = format!(
        "ssl.keystore.type=PEM\nssl.keystore.location={keystore}\nssl.truststore.type=PEM\n\
         ssl.truststore.location={roots}\nssl.client.auth=required\n"
    );
    let with_tls = Kafka::start_as(&kit, "localhost", "SSL", &tls).await;
    let address = with_tls.address().replace("127.0.0.1", "localhost");
    let with_tls = format!("kafka://{address}/none?roots={roots}");
    let missing = "the topic none does not exist";
    let cases = [
        // The user is accepted, and the topic is missing.
        (format!("{uri}&token_file={token}"), 4, missing),
        (format!("{uri}&token_file={expired}"), 4, "uthentication"),
        (format!("{uri}&token_file=/nonexistent"), 4, "/nonexistent"),
        (format!("{uri}&token=secret-token"), 2, "token_file"),
        (format!("{with_tls}&cert={certificate}&key={key}"), 4, missing),
        (with_tls.clone(), 3, "kafka-localhost"),
        (format!("{with_tls}&cert={certificate}"), 2, "cert and key together"),
        (format!("kafka://{address}/none?sasl=aws-msk-iam&tls=true"), 2, "region"),
        (
            format!("kafka://{address}/none?sasl=aws-msk-iam&region=eu-west-1&tls=true"),
            4,
            "AWS_ACCESS_KEY_ID",
        ),
    ];
    check_ends(&cases, &["secret-token", "eyJhbGciOiJub25lIn0"]);
}

/// A token without a signature, which Kafka's own handler accepts in tests.
pub(crate) fn unsecured_token(lifetime_seconds: i64) -> String {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_secs() as i64;
    let (issued, end) = (now.min(now + lifetime_seconds) - 10, now + lifetime_seconds);
    let claims = format!(r#"{{"sub":"ada","iat":{issued},"exp":{end}}}"#);
    let part = |text: &str| data_encoding::BASE64URL_NOPAD.encode(text.as_bytes());
    format!("{}.{}.", part(r#"{"alg":"none"}"#), part(&claims))
}

const TOPIC: &str = "events";
