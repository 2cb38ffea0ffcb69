//! Bundles: written and read again, and files that differ from their index.

use std::fs;
use std::path::Path;

use atproto::plc::ExportLine;
use store::PlcMirror;
use tempfile::TempDir;

use super::made::Maker;
use super::support::TestMirror;
use crate::{BundleError, BundleFolder, write_bundles};

/// A mirror of more than a bundle of valid operations.
fn mirror() -> (TestMirror, Vec<ExportLine>) {
    let mirror = TestMirror::new();
    let lines: Vec<ExportLine> = Maker::accounts(10_300);
    for lines in lines.chunks(1000) {
        mirror.apply(lines);
    }
    (mirror, lines)
}

fn bundles() -> (TestMirror, TempDir) {
    let ((mirror, _), folder) = (mirror(), tempfile::tempdir().unwrap());
    assert_eq!(write_bundles(&mirror.reader(), folder.path(), 0).unwrap(), 1);
    (mirror, folder)
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn bundles_that_are_written_are_read_again_and_give_the_same_histories() {
    let (mirror, folder) = bundles();
    let bundles = BundleFolder::open(folder.path()).unwrap();
    assert_eq!((bundles.origin(), bundles.len()), ("https://plc.directory", 1));
    let lines = bundles.lines(0).unwrap();
    assert_eq!((lines.len(), lines[0].seq, lines[9_999].seq), (10_000, 1, 10_000));
    let again = TestMirror::new();
    let mut writer = PlcMirror::open(&again.path(), "bundles").unwrap();
    assert_eq!(writer.apply(&lines).unwrap().accepted, 10_000);
    let did = &lines[77].did;
    let of = |mirror: &TestMirror| mirror.reader().history(did.as_did()).unwrap().unwrap();
    assert_eq!(*of(&again), *of(&mirror));
    let error = write_bundles(&mirror.reader(), folder.path(), 0).unwrap_err();
    assert!(matches!(error, BundleError::Index(..)), "{error}");

    // A changed index or file is refused, with the rule.
    let (index, file) =
        (folder.path().join("plc_bundles.json"), folder.path().join("000001.jsonl.zst"));
    let whole = fs::read_to_string(&index).unwrap();
    let changes = [
        ("\"content_hash\": \"", "\"content_hash\": \"0", "hash of the chain"),
        ("\"parent\": \"\"", "\"parent\": \"x\"", "`parent`"),
        ("\"bundle_number\": 1", "\"bundle_number\": 2", "numbers"),
        ("\"version\": \"1.0\"", "\"version\": \"2.0\"", "version"),
        ("\"operation_count\": 10000", "\"operation_count\": 10001", "more than 10,000"),
    ];
    for (from, to, rule) in changes {
        edit(&index, from, to);
        let error = BundleFolder::open(folder.path()).unwrap_err();
        assert!(error.to_string().contains(rule), "{error}");
        fs::write(&index, &whole).unwrap();
    }
    edit(&index, "\"operation_count\": 10000", "\"operation_count\": 9999");
    let error = BundleFolder::open(folder.path()).unwrap().lines(0).unwrap_err();
    assert!(error.to_string().contains("operation_count"), "{error}");
    fs::write(&index, &whole).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let error = BundleFolder::open(folder.path()).unwrap().lines(0).unwrap_err();
    assert!(error.to_string().contains("compressed_hash"), "{error}");
    fs::remove_file(&file).unwrap();
    let error = BundleFolder::open(folder.path()).unwrap().lines(0).unwrap_err();
    assert!(matches!(error, BundleError::File(..)), "{error}");
}
