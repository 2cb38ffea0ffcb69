//! `follow --to nats://…`: the stream has the records of the network, even if either side is killed;
//! refusals.

use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Source};
use futures_util::StreamExt;
use simnet::servers::Server;
use tokio::time::timeout;
use wireproof_interop::kit;
use wireproof_interop::nats::Nats;
use wireproof_interop::nats_users::Operator;

use crate::certificates::Certificates;
use crate::delivery::Delivered;
use crate::queue::{
    Message, Queue, check_ends, dead_letters, holds_the_stream_back, lines_prove_again, records,
    small, survives_kills, wait_for_records,
};

impl Queue for Nats {
    fn uri(&self) -> String {
        format!("nats://{}/at.events", self.address())
    }

    fn kill(&mut self) {
        self.kill();
    }

    async fn run(&mut self) {
        self.run().await;
    }

    async fn messages(&self) -> Option<Vec<Message>> {
        let context = jetstream::new(self.try_connect().await?);
        let stream = context.get_stream("at_events").await.ok()?;
        let count = stream.cached_info().state.messages as usize;
        let consumer = stream.create_consumer(OrderedConfig::default()).await.ok()?;
        let messages = consumer.messages().await.ok()?.take(count).map(|message| {
            let message = message.ok()?;
            let account = message.subject.strip_prefix("at.events.")?.replace("%2E", ".");
            let id = message.headers.as_ref()?.get("Nats-Msg-Id")?.to_string();
            Some(Message { account, id, line: serde_json::from_slice(&message.payload).ok()? })
        });
        let messages = timeout(Duration::from_secs(10), messages.collect::<Vec<_>>()).await.ok()?;
        messages.into_iter().collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_kills_of_either_side_the_stream_has_every_record_and_no_id_twice() {
    let kit = kit!(Nats);
    let mut nats = Nats::start(&kit, "").await;
    let points = ["nats/acknowledged@1", "nats/acknowledged@3", "delivery/sent@2"];
    let messages = survives_kills(&mut nats, &points).await;
    let mut ids: Vec<&String> = messages.iter().map(|message| &message.id).collect();
    ids.sort_unstable();
    // All of it is within the duplicate window.
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "an id is in the stream twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_proves_again() {
    let kit = kit!(Nats);
    lines_prove_again(&Nats::start(&kit, "").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_server_is_away_the_stream_waits_at_the_bound_of_the_outbox() {
    let kit = kit!(Nats);
    holds_the_stream_back(&mut Nats::start(&kit, "").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_refused_with_the_cure_and_without_the_password() {
    let kit = kit!(Nats);
    let mut nats = Nats::start(&kit, "").await;
    let context = jetstream::new(nats.try_connect().await.expect("a client"));
    for (name, subject) in [("taken", "taken.>"), ("other", "else.*")] {
        let subjects = vec![subject.to_owned()];
        let config = Config { name: name.to_owned(), subjects, ..Config::default() };
        context.create_stream(config).await.expect("a stream");
    }
    let users = "authorization: { users: [{ user: ada, password: \"p%ss/w:rd@\" }] }\n";
    let guarded = Nats::start(&kit, users).await;
    let file = |name: &str, text: &str| nats.write_file(name, text).display().to_string();
    let (password, wrong) = (file("password", "p%ss/w:rd@\n"), file("wrong", "wrong-password"));
    let (open, guarded) = (format!("nats://{}", nats.address()), guarded.address());
    let cases = [
        (format!("{open}/posts"), 0, ""),
        (format!("{open}/taken.events?stream=taken"), 0, ""),
        (format!("{open}/taken.events"), 4, "overlap"),
        (format!("{open}/events?stream=other"), 4, "does not take the subjects events.*"),
        (format!("nats://ada@{guarded}/events?password_file={password}"), 0, ""),
        (
            format!("nats://ada@{guarded}/events?password_file={wrong}"),
            4,
            "authorization violation",
        ),
        (format!("nats://{guarded}/events"), 4, "authorization violation"),
        (format!("nats://ada@{guarded}/events?password_file=/nonexistent"), 4, "/nonexistent"),
        (format!("{open}/events?tls=true"), 3, "nats-127.0.0.1"),
        (format!("nats://ada:secret@{guarded}/events"), 2, "password_file"),
        ("nats://queue.example/events?tls=false".to_owned(), 2, "this machine only"),
        (format!("{open},127.0.0.1:1/events"), 2, "?server=HOST:PORT"),
    ];
    check_ends(&cases, &["p%ss", "wrong-password", "secret"]);
    nats.kill();
    check_ends(&[(format!("{open}/posts"), 3, "nats-127.0.0.1")], &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_too_large_is_set_aside_and_the_others_arrive() {
    let kit = kit!(Nats);
    let nats = Nats::start(&kit, "").await;
    let context = jetstream::new(nats.try_connect().await.expect("a client"));
    let subjects = vec!["at.events.*".to_owned()];
    // Commits have some 500 bytes, and those with several operations more.
    let config = Config {
        name: "at_events".to_owned(),
        subjects,
        max_message_size: 700,
        ..Config::default()
    };
    context.create_stream(config).await.expect("a stream");
    let delivered = small(&nats.uri());
    let sent = delivered.sim.sent_events(Server::Relay(0)).len();
    let output = delivered.output(&["--events", &sent.to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let refused = dead_letters(&delivered);
    assert!(refused.iter().all(|letter| letter.contains("exceeds maximum")), "{refused:?}");
    let messages = nats.messages().await.expect("messages");
    assert!(!refused.is_empty() && !messages.is_empty(), "{} of {sent}", refused.len());
    assert_eq!(messages.len() + refused.len(), sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_stream_holds_events_back_and_gets_them_when_it_has_room() {
    let kit = kit!(Nats);
    let nats = Nats::start(&kit, "").await;
    let context = jetstream::new(nats.try_connect().await.expect("a client"));
    let subjects = vec!["at.events.*".to_owned()];
    // Some of the events of the network.
    let mut config = Config {
        name: "at_events".to_owned(),
        subjects,
        max_bytes: 30_000,
        discard: DiscardPolicy::New,
        ..Config::default()
    };
    context.create_stream(config.clone()).await.expect("a stream");
    // Histories fit, and the commits after them do not.
    let mut delivered = Delivered::with_history(&nats.uri(), 5);
    delivered.start(None);
    (0..8).for_each(|round| delivered.write(round));
    let errors = delivered.folder.path().join("errors");
    let reported = async || {
        let text = std::fs::read_to_string(&errors).unwrap_or_default();
        text.contains("maximum bytes exceeded") && text.contains("it is retried")
    };
    delivered.wait_until("a report of the full stream", reported).await;
    let held = nats.messages().await.expect("messages");
    assert!(!held.is_empty() && records(&held) != delivered.expected(), "{} messages", held.len());
    // The process is killed meanwhile, and nothing was set aside.
    delivered.kill();
    delivered.start(None);
    delivered.write(1);
    config.max_bytes = -1;
    context.update_stream(config).await.expect("a larger stream");
    wait_for_records(&nats, &mut delivered).await;
    delivered.interrupt();
    assert_eq!(dead_letters(&delivered), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_verified() {
    let kit = kit!(Nats);
    let (certificates, folder) = (Certificates::new(), tempfile::tempdir().expect("a folder"));
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let certificate = write("server.pem", &certificates.server);
    let key = write("server.key", &certificates.server_key);
    let roots = write("authority.pem", &certificates.authority);
    let tls = format!("tls: {{ cert_file: {certificate:?}, key_file: {key:?} }}\n");
    let nats = Nats::start(&kit, &tls).await;
    let localhost = nats.address().replace("127.0.0.1", "localhost");
    let cases = [
        (format!("nats://{localhost}/events?roots={roots}"), 0, ""),
        (format!("nats://{localhost}/events"), 3, "certificate"),
        (format!("nats://{}/events?roots={roots}", nats.address()), 3, "certificate"),
    ];
    check_ends(&cases, &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_takes_or_acknowledges_nothing_by_its_settings_is_refused_at_the_start() {
    let kit = kit!(Nats);
    let nats = Nats::start(&kit, "").await;
    let context = jetstream::new(nats.try_connect().await.expect("a client"));
    let create = async |name: &str, change: &dyn Fn(&mut Config)| {
        let subjects = vec![format!("{name}.*")];
        let mut config = Config { name: name.to_owned(), subjects, ..Config::default() };
        change(&mut config);
        context.create_stream(config.clone()).await.expect("a stream");
        config
    };
    create("kept", &|config| (config.deny_delete, config.deny_purge) = (true, true)).await;
    create("unacknowledged", &|config| config.no_ack = true).await;
    create("counter", &|config| config.allow_message_counter = true).await;
    let sealed = create("sealed", &|_| ()).await;
    let sealed = Config { sealed: true, ..sealed };
    context.update_stream(sealed).await.expect("a sealed stream");
    create("copy", &|config| {
        config.subjects = Vec::new();
        config.mirror = Some(Source { name: "kept".to_owned(), ..Source::default() });
    })
    .await;
    let uri = |prefix: &str| format!("nats://{}/{prefix}", nats.address());
    let cases = [
        (uri("kept"), 0, ""),
        (uri("unacknowledged"), 4, "no_ack=true"),
        (uri("unacknowledged"), 4, "(nats/no-ack)"),
        (uri("sealed"), 4, "sealed=true"),
        (uri("sealed"), 4, "?stream=NAME (nats/sealed)"),
        (uri("copy"), 4, "mirror=kept"),
        (uri("counter"), 4, "(nats/counter)"),
        (uri("other") + "?stream=kept", 4, "(nats/subjects)"),
    ];
    check_ends(&cases, &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_settings_change_in_a_run_is_named_and_gets_everything_once_they_are_mended()
{
    let kit = kit!(Nats);
    let nats = Nats::start(&kit, "").await;
    let mut delivered = Delivered::new(&nats.uri());
    delivered.start(None);
    wait_for_records(&nats, &mut delivered).await;
    let context = jetstream::new(nats.try_connect().await.expect("a client"));
    let stream = context.get_stream("at_events").await.expect("a stream");
    let config = stream.cached_info().config.clone();
    let silent = Config { no_ack: true, ..config.clone() };
    context.update_stream(silent).await.expect("another setting");
    delivered.write(1);
    let errors = delivered.folder.path().join("errors");
    let reported = async || {
        let text = std::fs::read_to_string(&errors).unwrap_or_default();
        text.contains("no_ack=true") && text.contains("it is retried")
    };
    delivered.wait_until("a report of the setting", reported).await;
    context.update_stream(config).await.expect("the first settings");
    wait_for_records(&nats, &mut delivered).await;
    delivered.interrupt();
    assert_eq!(dead_letters(&delivered), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn users_have_credentials_files_keys_and_certificates() {
    let kit = kit!(Nats);
    let (certificates, operator) = (Certificates::new(), Operator::default());
    let nats = Nats::start(&kit, &operator.config()).await;
    let file = |name: &str, text: &str| nats.write_file(name, text).display().to_string();
    let credentials = file("ada.creds", &operator.credentials(&[]));
    let silent = file("silent.creds", &operator.credentials(&["at.>"]));
    let stranger = file("stranger.creds", &Operator::default().credentials(&[]));
    let damaged = file("damaged.creds", "secret-text");
    let uri = format!("nats://{}/at.events", nats.address());

    let user = nkeys::KeyPair::new_user();
    let seed = user.seed().expect("a seed");
    let seed_file = file("ada.nk", &seed);
    let users = format!("authorization: {{ users: [{{ nkey: {} }}] }}\n", user.public_key());
    let by_key = Nats::start(&kit, &users).await;
    let by_key = format!("nats://{}/at.events", by_key.address());

    let path = |name: &str, text: &str| format!("{:?}", file(name, text));
    let tls = format!(
        "tls: {{ cert_file: {}, key_file: {}, ca_file: {}, verify: true }}\n",
        path("server.pem", &certificates.server),
        path("server.key", &certificates.server_key),
        path("authority.pem", &certificates.authority),
    );
    let with_tls = Nats::start(&kit, &tls).await;
    let (roots, key) =
        (file("authority.pem", &certificates.authority), file("key.pem", &certificates.client_key));
    let certificate = file("client.pem", &certificates.client);
    let address = with_tls.address().replace("127.0.0.1", "localhost");
    let with_tls = format!("nats://{address}/at.events?roots={roots}");
    let cases = [
        (format!("{uri}?creds_file={credentials}"), 0, ""),
        (uri.clone(), 4, "authorization violation"),
        (format!("{uri}?creds_file={stranger}"), 4, "uthorization"),
        (format!("{uri}?creds_file={damaged}"), 4, "creds_file"),
        (format!("{uri}?creds_file=/nonexistent"), 4, "/nonexistent"),
        (format!("{by_key}?nkey_file={seed_file}"), 0, ""),
        (by_key, 4, "uthorization"),
        (format!("{with_tls}&cert={certificate}&key={key}"), 0, ""),
        (with_tls.clone(), 3, "nats-localhost"),
        (format!("{with_tls}&cert={certificate}&key=/nonexistent"), 4, "/nonexistent"),
    ];
    check_ends(&cases, &["secret-text", &seed]);

    // The rights of a user are named where they are the cause.
    let mut delivered = small(&format!("{uri}?creds_file={silent}"));
    delivered.start(None);
    let errors = delivered.folder.path().join("errors");
    let reported = async || {
        let text = std::fs::read_to_string(&errors).unwrap_or_default();
        text.contains("ermissions") && text.contains("(nats/permission)")
    };
    delivered.wait_until("a report of the right", reported).await;
    delivered.interrupt();
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_end_in_a_run_are_named_and_new_ones_are_used() {
    let kit = kit!(Nats);
    let operator = Operator::default();
    let mut nats = Nats::start(&kit, &operator.config()).await;
    let credentials = nats.write_file("ada.creds", &operator.credentials(&[]));
    let uri = format!("nats://{}/at.events?creds_file={}", nats.address(), credentials.display());
    let mut delivered = small(&uri);
    delivered.start(None);
    let folder = delivered.folder.path().to_owned();
    let text = || std::fs::read_to_string(folder.join("errors")).unwrap_or_default();
    delivered.wait_until("a connection", async || text().contains("connected")).await;
    nats.write_file("ada.creds", &Operator::default().credentials(&[]));
    nats.run().await;
    delivered.sim.write_commits(5);
    let reported = async || {
        let text = text();
        text.contains("uthorization") && text.contains("it is retried")
    };
    delivered.wait_until("a report of the credentials", reported).await;
    let renewed = operator.credentials(&[]);
    nats.write_file("ada.creds", &renewed);
    let client = async_nats::ConnectOptions::with_credentials(&renewed).expect("credentials");
    let client = client.connect(nats.address()).await.expect("a client");
    let context = jetstream::new(client);
    let sent = delivered.sim.sent_events(Server::Relay(0)).len() as u64;
    let has_all = async || match context.get_stream("at_events").await {
        Ok(stream) => stream.cached_info().state.messages >= sent,
        Err(_) => false,
    };
    delivered.wait_until("every event", has_all).await;
    delivered.interrupt();
}
