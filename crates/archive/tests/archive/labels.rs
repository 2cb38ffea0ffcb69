//! Labels: stored as they were received with the cursor of their service, proved again column by column, hidden, erased, merged.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use atproto::label::{Label, UnsignedLabel};
use crypto::{Curve, SecretKey};
use wireproof_archive::{
    Archive, ArchiveFault, ArchivedLabel, Finding, LabelRange, RowSelection, Sealed, Subject,
    Table, VerifyOptions, VerifyReport,
};

use crate::common::changed_file::{change_rows, flip};
use crate::common::{archive, files};

const LABELER: &str = "did:web:labels.test";
const OTHER: &str = "did:web:other.test";
const HOST: &str = "https://labels.test";
const ALICE: &str = "did:plc:aliceaaaaaaaaaaaaaaaaaaa";
const BOB: &str = "did:plc:bobbbbbbbbbbbbbbbbbbbbbb";

/// 2026-07-01 in microseconds.
const NOW: i64 = 1_782_864_000_000_000;
const HOUR: i64 = 3_600_000_000;

/// A label that was received, and its verdict.
struct Received {
    bytes: Vec<u8>,
    verdict: &'static str,
    key: Option<String>,
    seq: i64,
    idx: i16,
}

fn secret(src: &str) -> SecretKey {
    let curve = if src == LABELER { Curve::K256 } else { Curve::P256 };
    SecretKey::from_bytes(curve, &[src.len() as u8; 32]).unwrap()
}

fn unsigned<'a>(src: &'a str, uri: &'a str) -> UnsignedLabel<'a> {
    UnsignedLabel { src, uri, val: "spam", cts: "2026-06-30T00:00:00.000Z", ..Default::default() }
}

/// A verified label.
fn label(seq: i64, fields: &UnsignedLabel<'_>) -> Received {
    let secret = secret(fields.src);
    let bytes = fields.with_signature(&secret.sign(&fields.to_bytes()));
    let verdict = if fields.is_negation() { "verified/negation" } else { "verified" };
    let key = Some(secret.public_key().to_did_key());
    Received { bytes, verdict, key, seq, idx: 0 }
}

fn refused(seq: i64, verdict: &'static str, bytes: Vec<u8>) -> Received {
    Received { bytes, verdict, key: None, seq, idx: 0 }
}

fn archived(labels: &[Received], received: i64) -> Vec<ArchivedLabel<'_>> {
    let of = |label: &'_ Received| (label.seq, label.idx, label.verdict);
    let archived = labels.iter().map(|label| {
        let (seq, idx, verdict) = of(label);
        ArchivedLabel {
            service: LABELER,
            host: HOST,
            seq,
            idx,
            received,
            verdict,
            key: label.key.as_deref(),
            judge: "test",
            label: &label.bytes,
        }
    });
    archived.collect()
}

fn range(after: Option<i64>, up_to: i64) -> LabelRange {
    LabelRange { service: LABELER.to_owned(), host: HOST.to_owned(), after, up_to }
}

/// Stores labels, and the cursor after the last one.
async fn seal(archive: &Archive, labels: &[Received], received: i64) -> Sealed {
    let after = archive.label_cursor(LABELER, HOST).await.unwrap();
    let up_to = labels.last().map_or(0, |label| label.seq);
    archive.seal_labels(archived(labels, received), &[range(after, up_to)]).await.unwrap()
}

async fn verify(archive: &Archive, options: &VerifyOptions) -> (VerifyReport, Vec<Finding>) {
    let mut findings = Vec::new();
    let report = archive.verify(options, &mut |finding| findings.push(finding)).await.unwrap();
    (report, findings)
}

async fn codes(archive: &Archive) -> Vec<&'static str> {
    let (_, findings) = verify(archive, &VerifyOptions::default()).await;
    findings.iter().map(|finding| finding.code).collect()
}

async fn rows(archive: &Archive, selection: &RowSelection) -> Vec<RecordBatch> {
    let mut scan = archive.rows(Table::Labels, selection).await.unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = scan.next().await.unwrap() {
        batches.push(batch);
    }
    batches
}

async fn count(archive: &Archive, selection: &RowSelection) -> usize {
    rows(archive, selection).await.iter().map(RecordBatch::num_rows).sum()
}

/// The numbers of the messages of all rows that readers see.
async fn shown(archive: &Archive) -> BTreeSet<i64> {
    let rows = rows(archive, &RowSelection::default()).await;
    let of = |batch: &RecordBatch| {
        batch.column_by_name("seq").unwrap().as_primitive::<Int64Type>().values().to_vec()
    };
    rows.iter().flat_map(of).collect()
}

fn reopened(folder: &Path) -> Archive {
    Archive::open(folder.to_str().unwrap()).unwrap()
}

#[tokio::test]
async fn labels_are_stored_as_they_were_received_and_proved_again() {
    let (_folder, archive) = archive();
    let uri = format!("at://{ALICE}/app.bsky.feed.post/3k");
    let full = UnsignedLabel {
        cid: Some("bafyreidfayvfuwqa7qlnopdjiqrxzs6blmoeu4rujcjtnci5beludirz2a"),
        neg: Some(false),
        exp: Some("2027-01-01T00:00:00Z"),
        ..unsigned(LABELER, &uri)
    };
    let plain = label(2, &unsigned(LABELER, ALICE));
    // An entry that is not signed.
    let mut typed = plain.bytes.clone();
    typed[0] += 1;
    typed.splice(1..1, *b"\x62ty\x01");
    Label::parse(&typed).unwrap();
    let negation = UnsignedLabel { neg: Some(true), ..unsigned(OTHER, "https://a.test/") };
    let labels = [
        label(1, &full),
        plain,
        Received { bytes: typed, ..label(3, &unsigned(LABELER, ALICE)) },
        label(4, &negation),
        refused(5, "signature/wrong", unsigned(LABELER, BOB).with_signature(&[1; 64])),
        refused(6, "label/unsigned", unsigned(LABELER, BOB).to_bytes()),
        refused(7, "label/cbor", b"\x01".to_vec()),
        refused(8, "label/version", b"\xa1\x63ver\x02".to_vec()),
        refused(9, "label/field", b"\xa1\x63neg\xf6".to_vec()),
    ];
    let sealed = seal(&archive, &labels, NOW).await;
    assert_eq!((sealed.events, sealed.files), (9, 1));
    assert_eq!(archive.label_cursor(LABELER, HOST).await.unwrap(), Some(9));
    assert_eq!(archive.label_cursor(LABELER, "https://b.test").await.unwrap(), None);
    let (report, findings) = verify(&archive, &VerifyOptions::default()).await;
    assert_eq!(findings, []);
    assert_eq!((report.labels, report.proved_labels), (9, 4));
    assert_eq!(report.unverified.values().sum::<u64>(), 5);
    let rows = rows(&archive, &RowSelection::default()).await;
    let rows = concat_batches(&rows[0].schema(), &rows).unwrap();
    let bytes = |name: &str| rows.column_by_name(name).unwrap().as_binary::<i64>();
    let text = |name: &str| rows.column_by_name(name).unwrap().as_string::<i32>();
    let seqs = rows.column_by_name("seq").unwrap().as_primitive::<Int64Type>();
    for row in 0..rows.num_rows() {
        let received = &labels[seqs.value(row) as usize - 1];
        let stored = bytes("label").is_valid(row).then(|| bytes("label").value(row));
        // Bytes are stored only if the columns do not give them.
        let keeps_bytes = [3, 7, 9].contains(&received.seq);
        assert_eq!(stored, keeps_bytes.then_some(&received.bytes[..]), "{}", received.seq);
        assert_eq!(text("verdict").value(row), received.verdict);
        let Ok(label) = Label::parse(&received.bytes) else { continue };
        let optional = |name: &str| text(name).is_valid(row).then(|| text(name).value(row));
        let neg = rows.column_by_name("neg").unwrap().as_boolean();
        let stored = UnsignedLabel {
            src: text("src").value(row),
            uri: text("uri").value(row),
            cid: optional("cid"),
            val: text("val").value(row),
            neg: neg.is_valid(row).then(|| neg.value(row)),
            cts: text("cts").value(row),
            exp: optional("exp"),
        };
        assert_eq!((stored, bytes("sig").value(row)), (label.fields, &label.sig[..]));
    }
    let dids: Vec<Option<&str>> = text("did").iter().collect();
    assert!(dids.is_sorted(), "null first: {dids:?}");
    assert_eq!(dids.iter().flatten().count(), 5);
}

#[tokio::test]
async fn the_same_work_adds_nothing_and_another_process_for_the_same_service_is_refused() {
    let (_folder, archive) = archive();
    let first = [label(1, &unsigned(LABELER, ALICE)), label(2, &unsigned(LABELER, BOB))];
    let work = [range(None, 2)];
    archive.seal_labels(archived(&first, NOW), &work).await.unwrap();
    // The process has ended before it learned of the commit, or repeats it.
    let again = archive.seal_labels(archived(&first, NOW + 1), &work).await.unwrap();
    assert_eq!(again, Sealed::default());
    let late = [label(1, &unsigned(LABELER, ALICE)), label(3, &unsigned(LABELER, BOB))];
    let other = archive.seal_labels(archived(&late, NOW), &[range(None, 3)]).await.unwrap_err();
    assert!(matches!(other.fault, ArchiveFault::LabelsElsewhere(_)), "{other}");
    // Of two services, neither is stored.
    let both = [LabelRange { service: OTHER.to_owned(), ..range(None, 7) }, range(Some(1), 3)];
    archive.seal_labels(archived(&late, NOW), &both).await.unwrap_err();
    assert_eq!(archive.label_cursor(OTHER, HOST).await.unwrap(), None);
    assert_eq!(shown(&archive).await, BTreeSet::from([1, 2]));
    // A service that has begun its numbers again.
    let reset = [label(1, &unsigned(LABELER, "did:web:new.test"))];
    archive.seal_labels(archived(&reset, NOW), &[range(Some(2), 1)]).await.unwrap();
    assert_eq!(archive.label_cursor(LABELER, HOST).await.unwrap(), Some(1));
    // Messages without a label move the cursor.
    archive.seal_labels(Vec::new(), &[range(Some(1), 8)]).await.unwrap();
    assert_eq!(archive.label_cursor(LABELER, HOST).await.unwrap(), Some(8));
    assert_eq!(count(&archive, &RowSelection::default()).await, 3);
    assert_eq!(codes(&archive).await, [""; 0]);
}

/// A change of a column of one row.
type Edit = fn(&ArrayRef) -> ArrayRef;

/// Null in place of a value, or a value in place of null.
fn toggle_null(column: &ArrayRef) -> ArrayRef {
    let is_null = column.is_null(0);
    match column.data_type() {
        DataType::Utf8 => {
            Arc::new(StringArray::from(vec![is_null.then_some("2027-01-01T00:00:00Z")]))
        }
        DataType::Boolean => Arc::new(BooleanArray::from(vec![is_null.then_some(false)])),
        DataType::Int64 => Arc::new(Int64Array::from(vec![is_null.then_some(1)])),
        DataType::Binary => {
            Arc::new(BinaryArray::from(vec![is_null.then_some(&b"\xa1\x63neg\xf6"[..])]))
        }
        other => panic!("{other}"),
    }
}

fn text(text: &str) -> ArrayRef {
    Arc::new(StringArray::from(vec![text]))
}

fn appended(column: &ArrayRef) -> ArrayRef {
    text(&format!("{}x", column.as_string::<i32>().value(0)))
}

fn not(column: &ArrayRef) -> ArrayRef {
    Arc::new(BooleanArray::from(vec![!column.as_boolean().value(0)]))
}

const EDITS: [(&str, Edit, &str); 30] = [
    ("did", |_| text(BOB), "archive/account"),
    ("did", toggle_null, "archive/account"),
    (
        "received",
        |_| {
            Arc::new(
                TimestampMicrosecondArray::from(vec![NOW + 400 * 24 * HOUR]).with_timezone("UTC"),
            )
        },
        "archive/derived",
    ),
    ("src", |_| text(OTHER), "label/source"),
    ("src", toggle_null, "label/missing"),
    ("uri", appended, "signature/wrong"),
    ("uri", |_| text(BOB), "archive/account"),
    ("uri", toggle_null, "archive/account"),
    (
        "cid",
        |_| text("bafyreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq"),
        "signature/wrong",
    ),
    ("cid", toggle_null, "signature/wrong"),
    ("val", appended, "signature/wrong"),
    ("val", |_| text(""), "label/value"),
    ("val", toggle_null, "label/missing"),
    ("neg", not, "signature/wrong"),
    ("neg", toggle_null, "signature/wrong"),
    ("cts", |_| text("2026-06-30T00:00:00.001Z"), "signature/wrong"),
    ("cts", appended, "label/field"),
    ("cts", toggle_null, "label/missing"),
    ("exp", |_| text("2027-01-01T00:00:00.0Z"), "signature/wrong"),
    ("exp", toggle_null, "signature/wrong"),
    ("ver", |_| Arc::new(Int64Array::from(vec![2])), "label/version"),
    ("ver", toggle_null, "label/version"),
    ("sig", |column| flip(column.clone()), "signature/wrong"),
    ("sig", |_| Arc::new(BinaryArray::from_vec(vec![b"short"])), "label/signature-length"),
    ("sig", toggle_null, "label/unsigned"),
    ("key", |_| text(&secret(OTHER).public_key().to_did_key()), "signature/wrong"),
    ("key", |_| text("did:key:z"), "archive/value"),
    ("key", toggle_null, "archive/value"),
    ("verdict", |_| text("verified/negation"), "archive/derived"),
    ("label", toggle_null, "archive/derived"),
];

#[tokio::test]
async fn each_column_that_is_altered_alone_is_refused() {
    let uri = format!("at://{ALICE}/app.bsky.feed.post/3k");
    let fields = UnsignedLabel {
        cid: Some("bafyreidfayvfuwqa7qlnopdjiqrxzs6blmoeu4rujcjtnci5beludirz2a"),
        neg: Some(false),
        exp: Some("2027-01-01T00:00:00Z"),
        ..unsigned(LABELER, &uri)
    };
    for (column, edit, code) in EDITS {
        let (folder, archive) = archive();
        seal(&archive, &[label(1, &fields)], NOW).await;
        assert_eq!(codes(&archive).await, [""; 0]);
        change_rows(folder.path(), "labels", |rows| edited(&rows, column, edit));
        let (report, findings) = verify(&reopened(folder.path()), &VerifyOptions::default()).await;
        let found: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
        assert_eq!((found, report.proved_labels), (vec![code], 0), "{column}: {findings:?}");
    }
    let signed = ["src", "uri", "cid", "val", "neg", "cts", "exp", "ver", "sig", "key", "label"];
    for column in signed {
        assert!(EDITS.iter().any(|(edited, ..)| *edited == column), "{column}");
    }
}

fn edited(rows: &RecordBatch, column: &str, edit: Edit) -> RecordBatch {
    let mut columns = rows.columns().to_vec();
    let index = rows.schema().index_of(column).unwrap();
    columns[index] = edit(&columns[index]);
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

#[tokio::test]
async fn bytes_that_are_stored_prove_and_their_columns_cannot_say_otherwise() {
    let (folder, archive) = archive();
    let mut typed = label(1, &unsigned(LABELER, ALICE));
    typed.bytes[0] += 1;
    typed.bytes.splice(1..1, *b"\x62ty\x01");
    seal(&archive, &[typed], NOW).await;
    assert_eq!(codes(&archive).await, [""; 0]);
    change_rows(folder.path(), "labels", |rows| edited(&rows, "val", appended));
    assert_eq!(codes(&reopened(folder.path())).await, ["archive/derived"]);
    change_rows(folder.path(), "labels", |rows| {
        let changed = edited(&rows, "val", |_| text("spam"));
        edited(&changed, "label", |column| flip(column.clone()))
    });
    // A column shows the changed bit, or the signature does.
    assert_eq!(codes(&reopened(folder.path())).await.len(), 1);
}

#[tokio::test]
async fn a_row_that_is_there_twice_is_refused() {
    let (folder, archive) = archive();
    seal(&archive, &[label(1, &unsigned(LABELER, ALICE))], NOW).await;
    change_rows(folder.path(), "labels", |rows| {
        take_record_batch(&rows, &arrow_array::UInt32Array::from(vec![0, 0])).unwrap()
    });
    assert!(codes(&reopened(folder.path())).await.contains(&"archive/repeated"));
}

#[tokio::test]
async fn a_source_with_two_keys_is_proved_under_the_key_of_each_label() {
    let (_folder, archive) = archive();
    let earlier = SecretKey::from_bytes(Curve::K256, &[99; 32]).unwrap();
    let mut labels = Vec::new();
    for seq in 1..=400 {
        let uri = format!("did:web:a{seq}.test");
        let fields = unsigned(LABELER, &uri);
        let mut label = label(seq, &fields);
        if seq % 2 == 0 {
            label.bytes = fields.with_signature(&earlier.sign(&fields.to_bytes()));
            label.key = Some(earlier.public_key().to_did_key());
        }
        labels.push(label);
    }
    seal(&archive, &labels, NOW).await;
    let (report, findings) = verify(&archive, &VerifyOptions::default()).await;
    assert_eq!((findings, report.proved_labels), (vec![], 400));
}

/// Labels of and about accounts: the number of a message tells them apart.
pub(crate) async fn store_of_accounts(archive: &Archive) {
    let post = format!("at://{ALICE}/app.bsky.feed.post/3k");
    let labels = [
        label(1, &unsigned(LABELER, ALICE)),
        label(2, &unsigned(LABELER, &post)),
        label(3, &unsigned(LABELER, BOB)),
        label(4, &unsigned(OTHER, BOB)),
        label(5, &unsigned(LABELER, "https://a.test/")),
        refused(6, "label/unsigned", unsigned(LABELER, ALICE).to_bytes()),
        label(7, &unsigned(OTHER, "https://a.test/")),
    ];
    seal(archive, &labels, NOW).await;
    assert_eq!(shown(archive).await.len(), 7);
}

#[tokio::test]
async fn readers_leave_out_hidden_sources_and_subjects() {
    let (_folder, archive) = archive();
    store_of_accounts(&archive).await;
    let subject = |did: &str| Subject::Account(did.to_owned());
    archive.hide(&subject(ALICE), "deactivated", NOW).await.unwrap();
    assert_eq!(shown(&archive).await, BTreeSet::from([3, 4, 5, 7]));
    archive.hide(&subject(OTHER), "deactivated", NOW).await.unwrap();
    assert_eq!(shown(&archive).await, BTreeSet::from([3, 5]));
    archive.unhide(&subject(ALICE), "active", NOW).await.unwrap();
    assert_eq!(shown(&archive).await, BTreeSet::from([1, 2, 3, 5, 6]));
    assert_eq!(codes(&archive).await, [""; 0], "hidden rows are proved");
}

#[tokio::test]
async fn an_erasure_removes_the_labels_about_an_account_and_of_it() {
    let (folder, archive) = archive();
    store_of_accounts(&archive).await;
    assert_eq!(archive.erase(ALICE, "deleted", NOW).await.unwrap().rows, 3);
    assert_eq!(shown(&archive).await, BTreeSet::from([3, 4, 5, 7]));
    assert_eq!(archive.erase(OTHER, "deleted", NOW).await.unwrap().rows, 2);
    assert_eq!(shown(&archive).await, BTreeSet::from([3, 5]));
    let raw = |path: &std::path::PathBuf| std::fs::read(path).unwrap();
    let tables = files(&folder.path().join("labels").join("day=2026-07-01"));
    let has = |bytes: &[u8]| bytes.windows(ALICE.len()).any(|window| window == ALICE.as_bytes());
    assert!(!tables.iter().map(raw).any(|bytes| has(&bytes)));
    // What comes again is not stored, and the cursor moves.
    let again = [label(8, &unsigned(LABELER, ALICE)), label(9, &unsigned(OTHER, BOB))];
    assert_eq!(seal(&archive, &again, NOW).await.events, 0);
    assert_eq!(archive.label_cursor(LABELER, HOST).await.unwrap(), Some(9));
    assert_eq!(codes(&archive).await, [""; 0]);
}

#[tokio::test]
async fn a_row_of_an_erased_account_is_refused() {
    let (folder, archive) = archive();
    store_of_accounts(&archive).await;
    let day = folder.path().join("labels").join("day=2026-07-01");
    let [file] = &files(&day)[..] else { panic!("one file") };
    let before = std::fs::read(file).unwrap();
    let log = folder.path().join("labels").join("_delta_log").join("00000000000000000000.json");
    archive.erase(ALICE, "deleted", NOW).await.unwrap();
    // Somebody puts the table back.
    let entry = std::fs::read(&log).unwrap();
    std::fs::remove_dir_all(folder.path().join("labels")).unwrap();
    std::fs::remove_dir_all(folder.path().join("_heads").join("labels")).unwrap();
    std::fs::create_dir_all(&day).unwrap();
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    std::fs::write(file, before).unwrap();
    std::fs::write(&log, entry).unwrap();
    let reopened = reopened(folder.path());
    let reopened = reopened.with_erasure_key(Some(crate::common::erasure_key()));
    assert_eq!(codes(&reopened).await, ["archive/erased"; 3]);
}

#[tokio::test]
async fn files_of_past_days_are_merged_in_order_and_select_by_account_and_time() {
    let (_folder, archive) = archive();
    for round in 0..8 {
        let mut labels: Vec<Received> = Vec::new();
        for number in 0..50 {
            let seq = round * 100 + number / 2 + 1;
            let uri = format!("did:web:a{}.test", number * 7 % 50);
            let mut label = label(seq, &unsigned(if number == 9 { OTHER } else { LABELER }, &uri));
            label.idx = (number % 2) as i16;
            labels.push(label);
        }
        seal(&archive, &labels, NOW + round * HOUR).await;
    }
    assert_eq!(archive.table_stats(Table::Labels).await.unwrap().files, 8);
    archive.compact(NOW + 48 * HOUR).await.unwrap();
    let stats = archive.table_stats(Table::Labels).await.unwrap();
    assert_eq!((stats.files, stats.rows), (1, 400));
    let all = rows(&archive, &RowSelection::default()).await;
    let all = concat_batches(&all[0].schema(), &all).unwrap();
    let column = |name: &str| all.column_by_name(name).unwrap();
    let places: Vec<(&str, i64, i64, i16)> = (0..all.num_rows())
        .map(|row| {
            let received = column("received").as_primitive::<TimestampMicrosecondType>();
            let idx = column("idx").as_primitive::<Int16Type>();
            let seq = column("seq").as_primitive::<Int64Type>();
            let did = column("did").as_string::<i32>().value(row);
            (did, received.value(row), seq.value(row), idx.value(row))
        })
        .collect();
    assert!(places.is_sorted());
    let of = |did: &str| RowSelection { did: Some(did.to_owned()), ..RowSelection::default() };
    assert_eq!(count(&archive, &of("did:web:a7.test")).await, 8);
    assert_eq!(count(&archive, &of(OTHER)).await, 8, "the source");
    assert_eq!(count(&archive, &of("did:web:b.test")).await, 0);
    let late = RowSelection { since: Some(NOW + 6 * HOUR), ..RowSelection::default() };
    assert_eq!(count(&archive, &late).await, 100);
    let mut options = VerifyOptions::default();
    options.did = Some("did:web:a7.test".to_owned());
    assert_eq!(verify(&archive, &options).await.0.proved_labels, 8);
    options.did = Some(OTHER.to_owned());
    assert_eq!(verify(&archive, &options).await.0.proved_labels, 8);
    options.since = Some(NOW + 6 * HOUR);
    assert_eq!(verify(&archive, &options).await.0.proved_labels, 2);
    let report = verify(&archive, &VerifyOptions::default()).await.0;
    assert_eq!((report.proved_labels, report.is_refused()), (400, false));
}
