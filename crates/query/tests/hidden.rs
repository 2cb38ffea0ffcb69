//! Statements see nothing of hidden accounts and records, wherever an expression stands.

use archive::{Archive, ArchivedEvent, ArchivedLabel, JUDGE, LabelRange, Subject, WorkId, kind};
use atproto::label::UnsignedLabel;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use simnet::unsigned_commits::{Spec, UnsignedCommit};

use wireproof_query::{Options, QueryError, Session};

/// The archive of some commits; the first account is hidden, and a record of the second.
struct Hiding {
    _folder: tempfile::TempDir,
    archive: Archive,
    /// All accounts, of which the first is hidden.
    accounts: Vec<String>,
    account: String,
    /// The account, collection and record key.
    record: [String; 3],
}

impl Hiding {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
        let spec = Spec { seed: 7, accounts: 4, commits: 1, operations: 20 };
        let commits: Vec<UnsignedCommit> = spec.generate().collect();
        let events = (0..).zip(&commits).map(|(number, commit)| ArchivedEvent {
            did: Some(&commit.did),
            arrival: commit.micros as i64,
            host: "relay.test",
            seq: Some(number),
            kind: kind(&commit.frame),
            received: commit.micros as i64,
            verdict: "verified",
            key: None,
            judge: JUDGE,
            frame: &commit.frame,
        });
        let work = WorkId { writer: "test".to_owned(), number: 0 };
        archive.seal(events.collect(), &work).await.unwrap();
        let accounts: Vec<String> = commits.iter().map(|commit| commit.did.clone()).collect();
        let account = commits[0].did.clone();
        let of_second = format!("WHERE did = '{}' AND action = 'create'", commits[1].did);
        let place = format!("SELECT did, collection, rkey FROM ops {of_second} LIMIT 1");
        let rows = answer(&archive, &place).await.unwrap();
        let record: [String; 3] =
            rows.trim().split('|').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap();
        let [did, collection, rkey] = record.clone();
        let of_record = Subject::Record { did, collection, rkey };
        for subject in [Subject::Account(account.clone()), of_record] {
            archive.hide(&subject, "test", 1).await.unwrap();
        }
        Self { _folder: folder, archive, accounts, account, record }
    }

    /// The answer, or the message of the error.
    async fn query(&self, sql: &str) -> Result<String, String> {
        answer(&self.archive, sql).await
    }
}

/// The rows of an answer, one per line, or the message of the error.
async fn answer(archive: &Archive, sql: &str) -> Result<String, String> {
    let text = |error: QueryError| format!("{error} {error:?}");
    let session = Session::open(archive, &Options::default()).await.map_err(text)?;
    let (mut rows, mut lines) = (session.sql(sql).await.map_err(text)?, String::new());
    while let Some(batch) = rows.next().await.map_err(text)? {
        let options = FormatOptions::default();
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let values: Vec<String> =
                columns.iter().map(|column| column.value(row).to_string()).collect();
            lines += &format!("{}\n", values.join("|"));
        }
    }
    Ok(lines)
}

#[tokio::test]
async fn no_expression_sees_a_hidden_account_whatever_its_place_in_the_statement() {
    let hiding = Hiding::new().await;
    let suffix = &hiding.account[hiding.account.len() - 12..];
    for sql in STATEMENTS {
        let (Ok(text) | Err(text)) = hiding.query(sql).await;
        assert!(!text.contains(suffix), "{sql}: {text}");
    }
    let counted = hiding.query("SELECT count(*) FROM events").await.unwrap();
    assert_eq!(counted.trim(), "3", "it is not counted from the statistics of files");
    let of = |condition: &str| format!("SELECT count(*) FROM events WHERE {condition}");
    let account = format!("did = '{}'", hiding.account);
    assert_eq!(hiding.query(&of(&account)).await.unwrap().trim(), "0");
    assert_eq!(hiding.query(&of(&format!("NOT ({account})"))).await.unwrap().trim(), "3");
}

#[tokio::test]
async fn no_function_reads_a_hidden_record_from_its_frame() {
    let hiding = Hiding::new().await;
    let [did, collection, rkey] = &hiding.record;
    let place = format!("did = '{did}' AND collection = '{collection}' AND rkey = '{rkey}'");
    assert_eq!(
        hiding.query(&format!("SELECT json(record) FROM ops WHERE {place}")).await.unwrap(),
        ""
    );
    let arguments = format!("NULL, NULL, 'create', '{did}', arrival, '{collection}', '{rkey}'");
    let sql = format!("SELECT stored_record({arguments}) FROM events WHERE did = '{did}'");
    let error = hiding.query(&sql).await.unwrap_err();
    assert!(error.contains("stored_record"), "it is no function of statements: {error}");
    let frames = format!("SELECT count(frame), count(*) FROM events WHERE did = '{did}'");
    assert_eq!(hiding.query(&frames).await.unwrap().trim(), "0|1");
    let others = "SELECT count(json(record)) FROM ops WHERE action <> 'delete'";
    let shown: u64 = hiding.query(others).await.unwrap().trim().parse().unwrap();
    assert!(shown > 5, "the other records are there: {shown}");
    for rule in ["shows_account(did)", "shows_record(did, did, did)", "shows_frame(did, frame)"] {
        assert!(hiding.query(&format!("SELECT {rule} FROM events")).await.is_err());
    }
}

#[tokio::test]
async fn no_expression_is_evaluated_on_hidden_rows() {
    let hiding = Hiding::new().await;
    for account in &hiding.accounts {
        hiding.archive.hide(&Subject::Account(account.clone()), "test", 2).await.unwrap();
    }
    for sql in STATEMENTS {
        let text = hiding.query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        for account in &hiding.accounts {
            assert!(!text.contains(&account[account.len() - 12..]), "{sql}: {text}");
        }
    }
}

/// Statements whose expressions fail on a DID, and the error of a cast has its value, or that could show one otherwise.
const STATEMENTS: [&str; 13] = [
    // An error of a cast has its value.
    "SELECT count(*) FROM events WHERE CAST(did AS BIGINT) > 0",
    "SELECT CAST(did AS BIGINT) FROM ops",
    "SELECT count(*) FROM ops WHERE CAST(rkey AS BIGINT) > 0 AND did <> 'x'",
    "SELECT min(did), max(did), count(*) FROM events",
    "SELECT CAST(d AS DATE) FROM (SELECT did AS d FROM ops LIMIT 1000)",
    "SELECT e.did FROM events e JOIN ops o ON CAST(e.did AS BIGINT) = o.arrival",
    "SELECT did FROM events ORDER BY CAST(did AS INT)",
    "SELECT sum(CAST(did AS INT)) OVER () FROM snapshots",
    "SELECT did FROM events WHERE did LIKE 'did:%' OR CAST(did AS INT) = 1",
    "SELECT DISTINCT did FROM ops",
    "EXPLAIN VERBOSE SELECT did FROM events",
    "EXPLAIN ANALYZE SELECT count(did) FROM ops",
    "SELECT did FROM current_records",
];

#[tokio::test]
async fn labels_of_a_hidden_source_and_about_a_hidden_account_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let labels = [
        ("did:web:l.test", "at://did:web:a.test/app.bsky.feed.post/1", "one"),
        ("did:web:l.test", "did:web:b.test", "two"),
        ("did:web:m.test", "did:web:b.test", "three"),
        ("did:web:l.test", "https://a.test/", "four"),
        ("did:web:m.test", "https://a.test/", "five"),
    ];
    let bytes = labels.map(|(src, uri, val)| {
        UnsignedLabel { src, uri, val, cts: "2026-07-01T00:00:00Z", ..UnsignedLabel::default() }
            .with_signature(&[1; 64])
    });
    let (service, host) = ("did:web:l.test", "https://l.test");
    let archived = (0..).zip(&bytes).map(|(idx, label)| ArchivedLabel {
        service,
        host,
        seq: 1,
        idx,
        received: 1,
        verdict: "signature/wrong",
        key: None,
        judge: JUDGE,
        label,
    });
    let (service, host) = (service.to_owned(), host.to_owned());
    let range = LabelRange { service, host, after: None, up_to: 1 };
    archive.seal_labels(archived.collect(), &[range]).await.unwrap();
    let values = "SELECT val FROM labels ORDER BY idx";
    assert_eq!(answer(&archive, values).await.unwrap(), "one\ntwo\nthree\nfour\nfive\n");
    let hide = |did: &str| Subject::Account(did.to_owned());
    archive.hide(&hide("did:web:a.test"), "test", 1).await.unwrap();
    assert_eq!(answer(&archive, values).await.unwrap(), "two\nthree\nfour\nfive\n");
    archive.hide(&hide("did:web:m.test"), "test", 1).await.unwrap();
    assert_eq!(answer(&archive, values).await.unwrap(), "two\nfour\n");
    let count = "SELECT count(*), max(val) FROM labels WHERE val > 'a'";
    assert_eq!(answer(&archive, count).await.unwrap(), "2|two\n");
}
