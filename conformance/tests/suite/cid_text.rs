//! CIDs as text. Our reading is stricter than the official syntax, which takes any multibase text.

use wireproof::codec::Cid;
use wireproof_conformance::{Folder, fixtures};

#[test]
fn official_cid_texts_are_refused_or_listed() {
    let data = fixtures!(Captures);
    assert_valid_are_blessed_or_listed(&data, "atproto/interop/syntax/cid_syntax_valid.txt");
    assert_invalid_are_refused(&data, "atproto/interop/syntax/cid_syntax_invalid.txt");
}

#[test]
fn cid_texts_of_the_indigo_module_are_refused_or_listed() {
    let data = fixtures!(Indigo);
    assert_valid_are_blessed_or_listed(&data, "atproto/syntax/testdata/cid_syntax_valid.txt");
    assert_invalid_are_refused(&data, "atproto/syntax/testdata/cid_syntax_invalid.txt");
}

fn assert_valid_are_blessed_or_listed(data: &Folder, path: &str) {
    let file = data.text(path);
    let mut seen = 0;
    for line in lines(&file) {
        seen += 1;
        match line.parse::<Cid>() {
            Ok(cid) => assert_eq!(cid.to_string(), line),
            Err(_) => assert!(NOT_BLESSED.contains(&line), "{line:?} is refused and not listed"),
        }
    }
    assert_eq!(seen, 8);
}

fn assert_invalid_are_refused(data: &Folder, path: &str) {
    let file = data.text(path);
    let mut seen = 0;
    for line in lines(&file) {
        seen += 1;
        assert!(line.parse::<Cid>().is_err(), "{line:?} is accepted");
    }
    assert_eq!(seen, 10);
}

/// The cases of a syntax file: not blank, not a comment, and not trimmed, as spaces are part of some.
fn lines(file: &str) -> impl Iterator<Item = &str> {
    file.split('\n').filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Well-formed by the official syntax, but of another version, codec, hash or alphabet than the AT
/// Protocol's blocks have.
const NOT_BLESSED: [&str; 8] = [
    "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
    "zdj7WWeQ43G6JJvLWQWZpyHuAMq6uYWRjkBXFad11vE2LHhQ7",
    "bafybeie5gq4jxvzmsym6hjlwxej4rwdoxt7wadqvmmwbqi7r27fclha2va",
    "mBcDxtdWx0aWhhc2g+",
    "z7x3CtScH765HvShXT",
    "zdj7WhuEjrB52m1BisYCtmjH1hSKa7yZ3jEZ9JcXaFRD51wVz",
    "7134036155352661643226414134664076",
    "f017012202c5f688262e0ece8569aa6f94d60aad55ca8d9d83734e4a7430d0cff6588ec2b",
];
