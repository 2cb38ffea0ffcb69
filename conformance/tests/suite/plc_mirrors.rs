//! Mirrors of a directory: the operations of an export that are stored, in pages of any size, and the refused ones.

use std::path::Path;

use atproto::plc::{
    AccountData, ExportLine, Limits, Operation, StatedOperation, UnsignedOperation, Update,
};
use atproto::syntax::{DatetimeBuf, Did, DidBuf};
use codec::Cid;
use crypto::{Curve, SecretKey};
use serde_json::{Value as Json, json};
use store::{PlcMirror, PlcMirrorReader, StoreFault};
use tempfile::TempDir;
use verify::plc::{GrowingHistory, Options, verify};
use wireproof_conformance::{Folder, fixtures};

const DIRECTORY: &str = "https://plc.directory";

/// A mirror in a folder of its own.
struct TestMirror {
    folder: TempDir,
}

impl TestMirror {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("plc.sqlite")
    }

    /// Applies the lines in pages of this many, one process per page. The numbers and codes of the refused ones.
    fn apply(&self, lines: &[ExportLine], page: usize) -> Vec<(u64, String)> {
        let mut refused = Vec::new();
        for lines in lines.chunks(page) {
            let mut mirror = PlcMirror::open(&self.path(), DIRECTORY).unwrap();
            let applied = mirror.apply(lines).unwrap();
            assert_eq!(applied.accepted as usize + applied.refused.len(), lines.len());
            refused.extend(applied.refused.into_iter().map(|refused| (refused.seq, refused.code)));
        }
        refused
    }

    fn reader(&self) -> PlcMirrorReader {
        PlcMirrorReader::open(&self.path()).unwrap()
    }

    /// Number of operations of an account, and the indexes of the nullified ones.
    fn history(&self, did: &DidBuf) -> (usize, Vec<usize>) {
        let history = self.reader().history(did.as_did()).unwrap().unwrap();
        let nullified = (0..).zip(history.operations()).filter(|(_, accepted)| accepted.nullified);
        (history.operations().len(), nullified.map(|(index, _)| index).collect())
    }
}

/// The entries of an audit log as lines of an export, numbered from `first` on.
fn lines_of(log: &Json, first: u64) -> Vec<ExportLine> {
    let line = |(seq, entry): (u64, &Json)| {
        let mut line = entry.clone();
        line.as_object_mut().unwrap().remove("nullified");
        (line["seq"], line["type"]) = (seq.into(), "sequenced_op".into());
        ExportLine::parse(line.to_string().as_bytes()).unwrap()
    };
    (first..).zip(log.as_array().unwrap()).map(line).collect()
}

fn logs(data: &Folder) -> Vec<Json> {
    let files = data.files("atproto/plc", ".json");
    files.iter().map(|path| serde_json::from_slice(&data.bytes(path)).unwrap()).collect()
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn each_real_log_has_the_same_verdict_line_by_line_as_in_a_whole() {
    let logs = logs(&fixtures!(Captures));
    let (mut valid, mut invalid) = (0, 0);
    for log in &logs {
        let (mirror, lines) = (TestMirror::new(), lines_of(log, 1));
        let refused = mirror.apply(&lines, 1);
        match verify(log.to_string().as_bytes(), &Options::default()) {
            Ok(history) => {
                valid += 1;
                assert_eq!(refused, []);
                let stored = mirror.reader().history(history.did()).unwrap().unwrap();
                assert_eq!(*stored, *history);
            }
            Err(rejection) => {
                invalid += 1;
                let first = (rejection.index as u64 + 1, rejection.code().to_owned());
                assert_eq!(refused.first(), Some(&first));
                let totals = mirror.reader().totals().unwrap();
                assert_eq!(totals.operations, rejection.index as u64);
            }
        }
    }
    assert_eq!((valid, invalid), (7, 3));
}

#[test]
fn the_mirror_of_all_real_logs_does_not_depend_on_the_size_of_its_pages() {
    let logs = logs(&fixtures!(Captures));
    // Two files have the log of one account, the shorter one is the beginning of the other.
    let mut by_account = std::collections::BTreeMap::new();
    for log in &logs {
        let longest = by_account.entry(log[0]["did"].as_str().unwrap()).or_insert(log);
        if log.as_array().unwrap().len() > longest.as_array().unwrap().len() {
            *longest = log;
        }
    }
    let mut lines = Vec::new();
    for log in by_account.values() {
        lines.extend(lines_of(log, lines.len() as u64 + 1));
    }
    let whole = TestMirror::new();
    let refused = whole.apply(&lines, lines.len());
    assert_eq!(refused.len(), 3, "{refused:?}");
    for page in [1, 2, 5] {
        let other = TestMirror::new();
        assert_eq!(other.apply(&lines, page), refused);
        assert_eq!(other.reader().totals(), whole.reader().totals());
        for did in by_account.keys().map(|did| Did::parse(did).unwrap()) {
            let [a, b] = [&whole, &other].map(|mirror| mirror.reader().history(did).unwrap());
            assert_eq!(a.as_deref(), b.as_deref());
            let [a, b] = [&whole, &other].map(|mirror| mirror.reader().refused(did).unwrap());
            assert_eq!(a, b);
        }
    }
}

/// The key of this number.
fn key(number: u8) -> SecretKey {
    SecretKey::from_bytes(Curve::K256, &[number + 1; 32]).unwrap()
}

fn update(keys: &[u8], prev: Option<Cid>, by: u8) -> Operation {
    let rotation_keys = keys.iter().map(|number| key(*number).public_key().to_did_key()).collect();
    let data = AccountData { rotation_keys, ..AccountData::default() };
    let unsigned = UnsignedOperation::Update(Update { data, prev });
    let sig = key(by).sign(&unsigned.to_bytes());
    unsigned.with_signature(sig)
}

/// A line with an operation of `did`, accepted `hours` after the first one.
fn line(seq: u64, did: &DidBuf, operation: &Operation, hours: i64) -> ExportLine {
    let created_at = DatetimeBuf::from_unix_micros((1_700_000_000 + hours * 3600) * 1_000_000);
    let stated = StatedOperation {
        did: did.clone(),
        cid: operation.cid(),
        operation: operation.clone(),
        created_at: created_at.unwrap(),
    };
    ExportLine { seq, did: did.clone(), stated: Ok(stated) }
}

#[test]
fn a_key_of_higher_priority_nullifies_stored_operations_within_72_hours_and_not_after_that() {
    for (hours, code) in [(72, None), (73, Some("plc/window"))] {
        let mirror = TestMirror::new();
        let genesis = update(&[0, 1], None, 0);
        let did = genesis.did().unwrap();
        let second = update(&[0, 1], Some(genesis.cid()), 1);
        let third = update(&[1], Some(second.cid()), 1);
        let recovery = update(&[0], Some(genesis.cid()), 0);
        let lines = [
            line(1, &did, &genesis, 0),
            line(2, &did, &second, 1),
            line(3, &did, &third, 2),
            line(4, &did, &recovery, 1 + hours),
            // Its predecessor is in force only if the recovery was refused.
            line(5, &did, &update(&[1], Some(third.cid()), 1), 2 + hours),
        ];
        let refused = mirror.apply(&lines, 1);
        let expected = match code {
            None => (5, "plc/prev-nullified"),
            Some(code) => (4, code),
        };
        assert_eq!(refused, [(expected.0, expected.1.to_owned())]);
        let nullified = if code.is_none() { vec![1, 2] } else { vec![] };
        assert_eq!(mirror.history(&did), (4, nullified));
        assert_eq!(mirror.reader().refused(did.as_did()).unwrap().len(), 1);
    }
}

#[test]
fn operations_of_other_accounts_without_predecessor_or_of_other_keys_are_refused_alone() {
    let mirror = TestMirror::new();
    let genesis = update(&[0, 1], None, 0);
    let (did, other) = (genesis.did().unwrap(), update(&[2], None, 2).did().unwrap());
    let second = update(&[0], Some(genesis.cid()), 1);
    let mut wrong_cid = line(8, &did, &second, 8);
    wrong_cid.stated.as_mut().unwrap().cid = genesis.cid();
    let mut lines = vec![
        // Before the first operation there is none to follow, and the DID is the hash of that one.
        line(1, &did, &second, 1),
        line(2, &other, &genesis, 2),
        line(3, &did, &genesis, 3),
        line(4, &did, &genesis, 4),
        line(5, &did, &update(&[0], Some(genesis.cid()), 2), 5),
        line(6, &did, &second, 2),
        line(7, &did, &second, 3),
        wrong_cid,
    ];
    let malformed = json!({"seq": 9, "did": did, "operation": {"type": "plc_operation"}, "cid": "", "createdAt": ""});
    lines.push(ExportLine::parse(malformed.to_string().as_bytes()).unwrap());
    lines.push(line(10, &did, &second, 10));
    let codes = [
        (1, "plc/genesis"),
        (2, "plc/did"),
        (4, "plc/prev"),
        (5, "signature/wrong"),
        (6, "plc/created-at"),
        (7, "plc/created-at"),
        (8, "plc/cid"),
        (9, "plc/field"),
    ];
    let codes = codes.map(|(seq, code)| (seq, code.to_owned()));
    assert_eq!(mirror.apply(&lines, 3), codes);
    assert_eq!(mirror.history(&did), (2, vec![]));
    assert_eq!(mirror.reader().history(other.as_did()).unwrap().as_deref(), None);
    let totals = mirror.reader().totals().unwrap();
    assert_eq!((totals.cursor, totals.operations, totals.refused), (10, 2, 8));
}

#[test]
fn a_page_that_comes_again_changes_nothing() {
    let mirror = TestMirror::new();
    let genesis = update(&[0], None, 0);
    let did = genesis.did().unwrap();
    let lines =
        [line(3, &did, &genesis, 0), line(4, &did, &update(&[0], Some(genesis.cid()), 0), 1)];
    assert_eq!(mirror.apply(&lines, 2), []);
    let before = mirror.reader().totals();
    let mut again = PlcMirror::open(&mirror.path(), DIRECTORY).unwrap();
    assert_eq!(again.apply(&lines).unwrap(), Default::default());
    assert_eq!((mirror.reader().totals(), mirror.history(&did)), (before, (2, vec![])));
}

#[test]
fn a_file_of_another_directory_or_in_use_and_a_changed_row_are_errors() {
    let mirror = TestMirror::new();
    let genesis = update(&[0], None, 0);
    let did = genesis.did().unwrap();
    mirror.apply(&[line(1, &did, &genesis, 0)], 1);
    let open = |directory| PlcMirror::open(&mirror.path(), directory).map(drop);
    let fault = open("https://plc.example.com").unwrap_err().fault;
    assert_eq!(fault, StoreFault::OtherDirectory(DIRECTORY.to_owned()));
    let in_use = PlcMirror::open(&mirror.path(), DIRECTORY).unwrap();
    assert_eq!(open(DIRECTORY).unwrap_err().fault, StoreFault::InUse);
    drop(in_use);

    let mut bytes = read(&mirror.path());
    let json = genesis.to_json();
    let at = bytes.windows(json.len()).position(|window| window == json.as_bytes());
    // Within the text of a rotation key, so that it stays JSON.
    let at = at.expect("the row is in the file, whose log was merged")
        + json.find("did:key:").unwrap()
        + 20;
    bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
    std::fs::write(mirror.path(), bytes).unwrap();
    let fault = mirror.reader().history(did.as_did()).unwrap_err().fault;
    assert!(matches!(&fault, StoreFault::Damaged(what) if what.contains(did.as_str())), "{fault}");
    let mut writer = PlcMirror::open(&mirror.path(), DIRECTORY).unwrap();
    let next = line(2, &did, &update(&[0], Some(genesis.cid()), 0), 1);
    assert!(matches!(writer.apply(&[next]).unwrap_err().fault, StoreFault::Damaged(_)));
    assert_eq!(writer.totals().cursor, 1);
}

#[test]
fn a_history_has_no_more_operations_than_the_limit() {
    let mut limits = Limits::default();
    limits.operations = 2;
    let genesis = update(&[0], None, 0);
    let did = genesis.did().unwrap();
    let mut history = GrowingHistory::new(&limits);
    let mut prev = genesis.clone();
    for hours in 0..3 {
        let ExportLine { stated, .. } = line(1, &did, &prev, hours);
        let appended = history.append(stated.unwrap());
        match hours {
            2 => assert_eq!(appended.unwrap_err().code(), "plc/limit"),
            _ => assert_eq!(appended, Ok(vec![])),
        }
        prev = update(&[0], Some(prev.cid()), 0);
    }
    assert_eq!(history.operations().len(), 2);
}
