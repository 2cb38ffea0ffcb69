//! `follow --to postgres://…`: the tables are the records of the network, even if either side is killed; refusals.

use std::collections::BTreeMap;
use std::time::Duration;

use delivery::{
    DeadLetters, Delivery, DeliveryOptions, EventId, FailureKind, NewEvent, Options, Outbox,
    PostgresAddress, PostgresOptions, PostgresSink, SqliteOptions, SqliteSink, StartAt,
};
use net::firehose::StopSignal;
use simnet::servers::{Simulation, Spec};
use tokio::time::sleep;
use tokio_postgres::Client;
use wireproof_interop::kit;
use wireproof_interop::postgres::{PASSWORD, Postgres};

use crate::certificates::Certificates;
use crate::delivery::{Delivered, Records};

/// The records in the tables; `None` if they cannot be read.
async fn records(postgres: &Postgres, database: &str) -> Option<Records> {
    let client = postgres.try_connect(database).await?;
    let dids = client.query("SELECT did FROM account", &[]).await.ok()?;
    let mut records: Records =
        dids.iter().map(|row| (row.get::<_, String>(0), BTreeMap::new())).collect();
    let select = "SELECT did, collection || '/' || rkey, cid FROM record";
    for row in client.query(select, &[]).await.ok()? {
        records.entry(row.get(0)).or_default().insert(row.get(1), row.get(2));
    }
    Some(records)
}

async fn number(client: &Client, select: &str) -> i64 {
    client.query_one(select, &[]).await.expect("a number").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn after_kills_of_either_side_and_of_the_source_the_tables_have_every_record_and_each_commit_once()
 {
    let kit = kit!(Postgres);
    let mut postgres = Postgres::start(&kit, &[]).await;
    postgres.create_database("posts").await;
    let mut delivered = Delivered::new(&postgres.uri("posts"));
    let points = if cfg!(debug_assertions) {
        &["postgres/written@1", "postgres/committed@1", "delivery/sent@1"][..]
    } else {
        &[]
    };
    for (round, point) in points.iter().enumerate() {
        delivered.start(Some(*point));
        delivered.write(round);
        delivered.wait_for_end().await;
    }
    for round in 0..crate::scaled(6, 200) {
        delivered.start(None);
        delivered.write(round);
        sleep(crate::round_time(round)).await;
        match round % 4 {
            0 => delivered.kill(),
            1 => postgres.run().await,
            2 => delivered.restart_source().await,
            _ => {
                // The server is away when the process starts again.
                postgres.kill();
                delivered.kill();
                let output = delivered.output(&[]);
                assert_eq!(output.status.code(), Some(3), "a server that is away: {output:?}");
                postgres.run().await;
            }
        }
        delivered.kill();
    }
    delivered.start(None);
    delivered.write(1);
    // A server, and the source, that are restarted in mid-stream.
    postgres.run().await;
    delivered.restart_source().await;
    delivered.write(2);
    let has_all = async |expected| records(&postgres, "posts").await.as_ref() == Some(expected);
    let expected = delivered.expected();
    delivered.wait_until("every record", async || has_all(&expected).await).await;
    // No account has a gap now, so this comes as events.
    delivered.write(3);
    let expected = delivered.expected();
    delivered.wait_until("the last records", async || has_all(&expected).await).await;
    delivered.interrupt();
    assert!(records(&postgres, "posts").await == Some(expected), "the records after the end");
    let client = postgres.connect("posts").await;
    assert_eq!(number(&client, "SELECT count(*) FROM account WHERE NOT complete").await, 0);
    let verified = "FROM event WHERE live AND verdict = 'verified'";
    let live = number(&client, &format!("SELECT count(*) {verified}")).await;
    let ids = number(&client, &format!("SELECT count(DISTINCT id) {verified}")).await;
    assert!(live > 0 && live == ids, "{live} rows of {ids} events");
    assert_eq!(number(&client, "SELECT count(*) FROM record WHERE record IS NULL").await, 0);
    let page = include_str!("../../../docs/guide/into-a-database.md");
    let statement = page.split("```").filter_map(|block| block.strip_prefix("sql\n")).nth(1);
    let statement = statement.expect("the statement of the guide").trim().trim_end_matches(';');
    let texts = client.query(statement, &[]).await.expect("rows");
    assert!(texts.iter().any(|row| row.get::<_, Option<&str>>(1).is_some()), "texts of posts");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_in_another_encoding_is_refused_at_the_start_with_the_remedy() {
    let kit = kit!(Postgres);
    let postgres = Postgres::start(&kit, &[]).await;
    let client = postgres.connect("postgres").await;
    let create =
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0";
    client.batch_execute(create).await.expect("a database");
    let dir = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default());
    let identity = outbox.expect("an outbox").identity();
    let address = PostgresAddress::parse(&postgres.uri("latin")).expect("an address");
    let opened = PostgresSink::open(address, identity, PostgresOptions::default()).await;
    let failure = opened.expect_err("refused");
    assert_eq!(failure.kind, FailureKind::Fatal);
    assert!(failure.reason.contains("LATIN1") && failure.reason.contains("UTF8"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_the_first_version_are_brought_to_the_present_one() {
    let kit = kit!(Postgres);
    let postgres = Postgres::start(&kit, &[]).await;
    postgres.create_database("first").await;
    let dir = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default());
    let identity = outbox.expect("an outbox").identity();
    let open = async || {
        let address = PostgresAddress::parse(&postgres.uri("first")).expect("an address");
        drop(
            PostgresSink::open(address, identity, PostgresOptions::default()).await.expect("open"),
        );
    };
    open().await;
    let client = postgres.connect("first").await;
    let first = "ALTER TABLE account DROP COLUMN complete_in;
        COMMENT ON TABLE cursor IS 'wireproof tables, version 1';
        INSERT INTO account (did, active, complete, generation) VALUES ('did:web:a.test', true, true, 1)";
    client.batch_execute(first).await.expect("tables of version 1");
    open().await;
    open().await;
    let select = "SELECT count(*) FROM account WHERE complete AND complete_in = '{}'";
    assert_eq!(number(&client, select).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_the_server_refuses_is_set_aside_and_the_others_are_stored() {
    let kit = kit!(Postgres);
    let postgres = Postgres::start(&kit, &[]).await;
    postgres.create_database("posts").await;
    let dir = tempfile::tempdir().expect("a folder");
    let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default());
    let outbox = outbox.expect("an outbox");
    outbox.register("postgres", StartAt::Oldest).expect("a consumer");
    let address = PostgresAddress::parse(&postgres.uri("posts")).expect("an address");
    let sink = PostgresSink::open(address, outbox.identity(), PostgresOptions::default()).await;
    let sink = sink.expect("PostgreSQL");
    let client = postgres.connect("posts").await;
    let constraint = "ALTER TABLE event ADD CONSTRAINT mine CHECK (id NOT LIKE '%\u{202e}3%')";
    client.batch_execute(constraint).await.expect("a constraint");
    let events = (1..=6).map(|number| {
        let did = "did:web:a.test";
        let rev = format!("\u{202e}{number}");
        let line = serde_json::json!({
            "v": 1, "id": format!("{did}/{rev}"), "live": true, "host": "https://a.test", "seq": number,
            "kind": "identity", "did": did, "verdict": "unchecked", "code": "unchecked",
        });
        NewEvent::new(EventId::of_commit(did, &rev), did, line.to_string()).expect("an event")
    });
    outbox.append_all(events).expect("stored");
    let path = dir.path().join("refused.ndjson");
    let letters = DeadLetters::open(&path, "postgres", 1 << 20).expect("a file");
    let mut options = DeliveryOptions::default();
    options.max_refusals = 2;
    let consumer = outbox.consumer("postgres").expect("a consumer");
    let delivery = Delivery::new(consumer, sink, Some(letters), options);
    let (metrics, stop) = (delivery.metrics(), StopSignal::new());
    let running = tokio::spawn(delivery.run(stop.clone()));
    while metrics.accepted() + metrics.set_aside() < 6 {
        sleep(Duration::from_millis(20)).await;
    }
    stop.request();
    running.await.expect("no panic").expect("delivered");
    assert_eq!((metrics.accepted(), metrics.set_aside()), (5, 1));
    assert_eq!(number(&client, "SELECT count(*) FROM event").await, 5);
    let letters = std::fs::read_to_string(&path).expect("the letters");
    assert!(letters.contains("mine"), "the reason: {letters}");
    let reason = letters.split("\"reason\":").nth(1).expect("a reason");
    let reason = reason.split("\"event\":").next().expect("a reason");
    assert!(!reason.contains('\u{202e}'), "texts of strangers are escaped: {reason}");
    // A new run goes on behind it.
    let address = PostgresAddress::parse(&postgres.uri("posts")).expect("an address");
    let sink = PostgresSink::open(address, outbox.identity(), PostgresOptions::default()).await;
    assert_eq!(sink.expect("PostgreSQL").position().await, Ok(Some(6)));
}

/// Delivers lines to both kinds of tables.
async fn deliver(outbox: &Outbox, postgres: &PostgresAddress, sqlite: &std::path::Path) {
    let (stop, mut running) = (StopSignal::new(), Vec::new());
    let sink = PostgresSink::open(postgres.clone(), outbox.identity(), PostgresOptions::default());
    let sink = sink.await.expect("PostgreSQL");
    let consumer = outbox.consumer("postgres").expect("a consumer");
    let delivery = Delivery::new(consumer, sink, None, DeliveryOptions::default());
    running.push(tokio::spawn(delivery.run(stop.clone())));
    let sink = SqliteSink::open(sqlite, outbox.identity(), SqliteOptions::default());
    let consumer = outbox.consumer("sqlite").expect("a consumer");
    let delivery = Delivery::new(consumer, sink.expect("a file"), None, DeliveryOptions::default());
    running.push(tokio::spawn(delivery.run(stop.clone())));
    while outbox.status().consumers.iter().any(|consumer| consumer.behind > 0) {
        sleep(Duration::from_millis(20)).await;
    }
    stop.request();
    for delivery in running {
        delivery.await.expect("no panic").expect("delivered");
    }
}

/// A line about one of three accounts, from a few bits of `seed`.
fn line(number: u64, seed: u64) -> (EventId, String, String) {
    let pick = |at: u32, of: u64| (seed >> at) % of;
    let did = format!("did:web:{}.test", pick(0, 3));
    let rev = format!("3{number:08}");
    let op = |bits: u32| match pick(bits, 5) {
        0 => {
            format!(r#"{{"action":"delete","collection":"a.b.c","rkey":"{}"}}"#, pick(bits + 2, 5))
        }
        _ => format!(
            r#"{{"action":"create","collection":"a.b.c","rkey":"{}","cid":"c{}","record":{{"n":{}}}}}"#,
            pick(bits + 2, 5),
            pick(bits + 4, 3),
            pick(bits + 4, 3)
        ),
    };
    let ops = [op(4), op(9), op(14)][..pick(20, 4) as usize].join(",");
    let names = [r#""a.b.c""#, r#""a.b.*","x.y.z""#, ""][pick(28, 3) as usize];
    let complete = format!(r#","complete":[{names}]"#);
    let (kind, verdict, code, more) = match pick(24, 14) {
        0 => (
            "account",
            "unchecked",
            "unchecked",
            r#","active":false,"status":"deleted""#.to_owned(),
        ),
        1 => (
            "status",
            "unchecked",
            "status/confirmed",
            r#","active":false,"status":"deleted""#.to_owned(),
        ),
        2 => ("identity", "unchecked", "unchecked", r#","handle":"a\u0000.test""#.to_owned()),
        3 => ("sync", "verified", "verified/broken", String::new()),
        at @ (4 | 5) => (
            "resync",
            "verified",
            "verified",
            format!(
                r#"{REPOSITORY}{complete},"piece":0,"whole":true,"last":{},"ops":[{ops}]"#,
                at == 4
            ),
        ),
        at @ (12 | 13) => {
            let code = if at == 12 { "history/outdated" } else { "history/narrowed" };
            ("history", "unchecked", code, complete)
        }
        6 => (
            "resync",
            "verified",
            "verified",
            format!(r#"{REPOSITORY},"piece":1,"whole":true,"last":true,"ops":[{ops}]"#),
        ),
        _ => ("commit", "verified", "verified", format!(r#","ops":[{ops}]"#)),
    };
    let text = format!(
        r#"{{"v":1,"id":"{number}","live":true,"host":"https://a.test","kind":"{kind}","did":"{did}","rev":"{rev}","verdict":"{verdict}","code":"{code}"{more}}}"#
    );
    (EventId::of_message(&did, "relay.test", number), did, text)
}

/// Keys that every line of a repository has.
const REPOSITORY: &str = r#","commit":"c","records":9,"invalid_records":0,"bytes":9"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_same_lines_give_the_same_tables_in_both_databases_in_batches_of_any_size() {
    let kit = kit!(Postgres);
    let postgres = Postgres::start(&kit, &["fsync=off"]).await;
    postgres.create_database("same").await;
    let address = PostgresAddress::parse(&postgres.uri("same")).expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let outbox =
        Outbox::open(&folder.path().join("outbox.sqlite"), Options::default()).expect("new");
    for name in ["postgres", "sqlite"] {
        outbox.register(name, StartAt::Oldest).expect("a consumer");
    }
    let file = folder.path().join("tables.db");
    let (mut seed, mut number) = (0x9e37_79b9_7f4a_7c15_u64, 0);
    for count in [1, 2, 7, 40, 300, 1_000] {
        for _ in 0..count {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            number += 1;
            let (id, did, text) = line(number, seed >> 20);
            outbox.append(NewEvent::new(id, &did, text).expect("an event"), |_| {});
        }
        outbox.flush().expect("stored");
        deliver(&outbox, &address, &file).await;
        let client = postgres.connect("same").await;
        let sqlite = rusqlite::Connection::open(&file).expect("a file");
        for (columns, table) in [
            (
                "did || ' ' || collection || rkey || cid || rev || ' ' || generation || ' ' || live",
                "record",
            ),
            (
                "did || rev || coalesce(status, '-') || generation || coalesce(next_piece, -1) || complete || coalesce(complete_in, '-')",
                "account",
            ),
            (
                "id || kind || did || coalesce(rev, '-') || verdict || code || coalesce(line, '-')",
                "event",
            ),
        ] {
            let of_postgres = columns
                .replace("|| live", "|| live::int")
                .replace("|| complete ", "|| complete::int ")
                .replace("complete_in", "array_to_json(complete_in)::text");
            let select = format!("SELECT {of_postgres} FROM {table} ORDER BY 1");
            let rows = client.query(&select, &[]).await.expect("rows");
            let rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            let select = format!("SELECT {columns} FROM {table} ORDER BY 1");
            let mut select = sqlite.prepare(&select).expect("a statement");
            let others = select.query_map([], |row| row.get::<_, String>(0)).expect("rows");
            let others: Vec<String> = others.map(|row| row.expect("a row")).collect();
            assert!(!rows.is_empty() || count < 7, "{table}");
            assert_eq!(rows, others, "{table} after {number} events");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_jsonb_cannot_hold_are_kept_as_text_beside_the_others() {
    let kit = kit!(Postgres);
    let postgres = Postgres::start(&kit, &["fsync=off"]).await;
    postgres.create_database("odd").await;
    let address = PostgresAddress::parse(&postgres.uri("odd")).expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let outbox =
        Outbox::open(&folder.path().join("outbox.sqlite"), Options::default()).expect("new");
    for name in ["postgres", "sqlite"] {
        outbox.register(name, StartAt::Oldest).expect("a consumer");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let odd = [
        (r#"{"text":"a\u0000b"}"#.to_owned(), false),
        (r#"{"text":"a\\u0000b"}"#.to_owned(), true),
        (r#"{"n":1e999999}"#.to_owned(), false),
        (deep, false),
        (r#"{"n":-9223372036854775808,"f":1.5e300}"#.to_owned(), true),
    ];
    for number in 0..200_u64 {
        let record = odd.get(number as usize / 7).filter(|_| number % 7 == 3);
        let record = record.map_or(r#"{"text":"plain"}"#, |(record, _)| record);
        let text = format!(
            r#"{{"v":1,"host":"https://a.test","kind":"commit","live":true,"did":"did:web:a.test","rev":"3{number:06}","verdict":"verified","code":"verified","ops":[{{"action":"create","collection":"a.b.c","rkey":"{number}","cid":"c{number}","record":{record}}}]}}"#
        );
        let id = EventId::of_message("did:web:a.test", "relay.test", number);
        let event = NewEvent::new(id, "did:web:a.test", text).expect("an event");
        outbox.append(event, |_| {});
    }
    outbox.flush().expect("stored");
    deliver(&outbox, &address, &folder.path().join("tables.db")).await;
    let client = postgres.connect("odd").await;
    assert_eq!(number(&client, "SELECT count(*) FROM record").await, 200);
    assert_eq!(number(&client, "SELECT count(*) FROM record WHERE record IS NULL").await, 3);
    for (at, (text, is_json)) in odd.iter().enumerate() {
        let select = "SELECT record IS NOT NULL, record_text FROM record WHERE rkey = $1";
        let row = client.query_one(select, &[&(at * 7 + 3).to_string()]).await.expect("a record");
        assert_eq!(row.get::<_, bool>(0), *is_json, "{at}");
        let stored: Option<&str> = row.get(1);
        assert!(stored == (!is_json).then_some(text.as_str()), "{at}: the same text");
    }
}

/// A follower of a small network, to `uri`.
fn small(uri: &str) -> Delivered {
    let spec =
        Spec { accounts: 3, records: 5, jetstreams: 0, initial_commits: 10, ..Spec::default() };
    let sim = Simulation::start(spec).expect("a network");
    Delivered::with_args(sim, &["--to".to_owned(), uri.to_owned()])
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_of_the_table_of_events_proves_again() {
    let kit = kit!(Postgres);
    let postgres = Postgres::start(&kit, &["fsync=off"]).await;
    postgres.create_database("proofs").await;
    let mut delivered = small(&postgres.uri("proofs"));
    delivered.add_args(&["--proof", "frame"]);
    let (code, message) = ended(&delivered);
    assert_eq!(code, Some(0), "{message}");
    let rows = postgres.connect("proofs").await.query("SELECT line FROM event", &[]).await;
    let lines: Vec<String> = rows.expect("rows").iter().map(|row| row.get(0)).collect();
    delivered.assert_proved(&lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_refused_with_the_cure_and_without_the_password() {
    let kit = kit!(Postgres);
    let mut postgres = Postgres::start(&kit, &["fsync=off"]).await;
    let prepare = async |name: &str, statements: &str| {
        postgres.create_database(name).await;
        postgres.connect(name).await.batch_execute(statements).await.expect("prepared");
        postgres.uri(name)
    };
    let foreign = prepare("foreign", "CREATE TABLE event (id int)").await;
    let read_only =
        prepare("read_only", "ALTER DATABASE read_only SET default_transaction_read_only = on")
            .await;
    let empty = prepare("empty", "").await;
    let (code, message) = ended(&small(&empty));
    assert_eq!(code, Some(0), "{message}");
    let later = prepare(
        "later",
        "CREATE TABLE cursor (a int); COMMENT ON TABLE cursor IS 'wireproof tables, version 3'",
    )
    .await;
    let in_use = prepare("in_use", "").await;
    let mut first = small(&in_use);
    first.start(None);
    let filled = async || records(&postgres, "in_use").await.is_some_and(|all| !all.is_empty());
    first.wait_until("records", filled).await;

    let wrong = first.folder.path().join("wrong");
    std::fs::write(&wrong, "wrong-password").expect("a file");
    let plain = postgres.uri_without_password("empty");
    let wrong = format!("{plain}?password_file={}", wrong.display());
    for (uri, code, expected) in [
        (foreign, 4, "other tables or views"),
        (later, 4, "tables of version 3"),
        (read_only, 3, "read-only transaction"),
        (in_use, 3, "another process writes"),
        (wrong, 4, "password authentication failed"),
        (plain.clone(), 4, "password missing"),
        (postgres.uri("missing"), 4, "does not exist"),
        (format!("{plain}?password_file=/nonexistent"), 4, "/nonexistent"),
        (plain.replace("ada@", "ada:secret@"), 2, "password_file"),
        (plain.replace("127.0.0.1", "db.example") + "?sslmode=disable", 2, "this machine only"),
    ] {
        let (found, message) = ended(&small(&uri));
        assert!(
            found == Some(code) && message.contains(expected),
            "{expected}: {found:?} {message}"
        );
        let texts = [PASSWORD, "wrong-password", "secret"];
        assert!(!texts.iter().any(|text| message.contains(text)), "{message}");
    }
    first.interrupt();

    // Errors of the server that pass by themselves, such as a full disk, hold the events back until they have passed.
    let client = postgres.connect("in_use").await;
    let trigger = "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE 'No space left on device' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER no_space BEFORE INSERT ON event EXECUTE FUNCTION no_space()";
    client.batch_execute(trigger).await.expect("a trigger");
    first.start(None);
    first.sim.write_commits(5);
    let reports = first.folder.path().join("errors");
    let reported =
        async || std::fs::read_to_string(&reports).is_ok_and(|text| text.contains("No space left"));
    first.wait_until("a report", reported).await;
    client.batch_execute("DROP FUNCTION no_space CASCADE").await.expect("space");
    let sent = first.sim.sent_events(simnet::servers::Server::Relay(0)).len() as i64;
    let all = async || number(&client, "SELECT count(*) FROM event").await >= sent;
    first.wait_until("all events", all).await;
    first.interrupt();
    postgres.kill();
    let (code, message) = ended(&small(&empty));
    assert!(code == Some(3) && message.contains("postgres-127.0.0.1"), "{code:?} {message}");
}

/// The exit code and the messages of a run of all events of a network.
fn ended(delivered: &Delivered) -> (Option<i32>, String) {
    let output = delivered.output(&["--events", "10"]);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_verified() {
    let kit = kit!(Postgres);
    let (postgres, certificates) = with_tls(&kit).await;
    let roots = postgres.write_file("authority.pem", &certificates.authority);
    let uri = postgres.uri("tls").replace("127.0.0.1", "localhost");
    let trusted = format!("{uri}&sslmode=verify-full&sslrootcert={}", roots.display());
    let (code, message) = ended(&small(&trusted));
    assert_eq!(code, Some(0), "{message}");
    for (uri, expected) in [
        (format!("{uri}&sslmode=verify-full"), "certificate"),
        (trusted.replace("localhost", "127.0.0.1"), "certificate"),
    ] {
        let (code, message) = ended(&small(&uri));
        assert!(code == Some(3) && message.contains(expected), "{code:?} {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn less_of_a_certificate_is_verified_only_where_the_uri_says_so() {
    let kit = kit!(Postgres);
    let (postgres, certificates) = with_tls(&kit).await;
    let roots = postgres.write_file("authority.pem", &certificates.authority);
    let other = postgres.write_file("other.pem", &Certificates::new().authority);
    // The certificate is for `localhost`.
    let uri = postgres.uri("tls");
    let rooted = |mode: &str| format!("{uri}&sslmode={mode}&sslrootcert={}", roots.display());
    for (uri, code, expected) in [
        (format!("{uri}&sslmode=require"), 0, "sslmode=require verifies no certificate"),
        (rooted("require"), 0, ""),
        (rooted("verify-ca"), 0, ""),
        (rooted("verify-full"), 3, "certificate"),
        (format!("{uri}&sslmode=require&sslrootcert={}", other.display()), 3, "certificate"),
        (format!("{uri}&sslmode=verify-full&sslrootcert=system"), 3, "certificate"),
        (format!("{uri}&sslmode=verify-ca"), 2, "sslrootcert"),
        (format!("{uri}&sslmode=require&sslrootcert=system"), 2, "sslmode=verify-full"),
        (format!("{uri}&sslmode=prefer"), 2, "sslmode"),
    ] {
        let (found, message) = ended(&small(&uri));
        assert!(found == Some(code) && message.contains(expected), "{uri}: {found:?} {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_can_be_known_by_a_certificate() {
    let kit = kit!(Postgres);
    let (mut postgres, certificates) = with_tls(&kit).await;
    let roots = postgres.write_file("authority.pem", &certificates.authority);
    let certificate = postgres.write_file("client.crt", &certificates.client);
    let key = postgres.write_file("client.key", &certificates.client_key);
    let client = postgres.connect("tls").await;
    let ca = format!("ALTER SYSTEM SET ssl_ca_file = '{}'", roots.display());
    client.batch_execute(&ca).await.expect("a setting");
    // The checks of the test itself have a password.
    let rules = "hostnossl all all 127.0.0.1/32 scram-sha-256\nhostssl all all 127.0.0.1/32 cert\n";
    postgres.write_file("pg_hba.conf", rules);
    postgres.run().await;
    let uri = postgres.uri_without_password("tls").replace("127.0.0.1", "localhost");
    let rooted = format!("{uri}?sslrootcert={}", roots.display());
    let known = format!("{rooted}&sslcert={}&sslkey={}", certificate.display(), key.display());
    for (uri, code, expected) in [
        (known.clone(), 0, ""),
        (rooted.clone(), 4, "certificate"),
        (format!("{rooted}&sslcert={}", certificate.display()), 2, "sslcert and sslkey together"),
        (known.replace("client.key", "none.key"), 4, "none.key"),
        (known.replace("client.key", "client.crt"), 4, "no private key"),
        (format!("{known}&sslpassword=secret"), 2, "without a passphrase"),
    ] {
        let (found, message) = ended(&small(&uri));
        assert!(found == Some(code) && message.contains(expected), "{uri}: {found:?} {message}");
        assert!(!message.contains("secret"), "{message}");
    }
}

/// A server with TLS, whose certificate is for `localhost`, and a database.
async fn with_tls(kit: &wireproof_interop::program::Kit) -> (Postgres, Certificates) {
    let mut postgres = Postgres::start(kit, &["fsync=off"]).await;
    postgres.create_database("tls").await;
    let certificates = Certificates::new();
    postgres.write_file("server.crt", &certificates.server);
    postgres.write_file("server.key", &certificates.server_key);
    let client = postgres.connect("tls").await;
    client.batch_execute("ALTER SYSTEM SET ssl = on").await.expect("a setting");
    postgres.run().await;
    (postgres, certificates)
}
