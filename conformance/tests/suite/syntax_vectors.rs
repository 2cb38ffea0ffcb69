//! The official cases of identifier syntax, not trimmed, and the additional cases of another copy; and
//! CIDs as text, where our reading is stricter than the official syntax, which takes any multibase text.

use atproto::syntax::{
    AtIdentifier, AtUri, CidText, Datetime, Did, Handle, Language, Nsid, RecordKey, SyntaxError,
    Tid, Uri,
};
use codec::Cid;
use wireproof_conformance::{Folder, fixtures};

#[test]
fn official_dids_are_judged_as_they_should_be() {
    assert_judged(&fixtures!(Captures), "did", [24, 18], Did::parse);
}

#[test]
fn official_nsids_are_judged_as_they_should_be() {
    assert_judged(&fixtures!(Captures), "nsid", [25, 27], Nsid::parse);
}

#[test]
fn official_record_keys_are_judged_as_they_should_be() {
    assert_judged(&fixtures!(Captures), "recordkey", [16, 11], RecordKey::parse);
}

#[test]
fn official_tids_are_judged_as_they_should_be() {
    assert_judged(&fixtures!(Captures), "tid", [4, 9], Tid::parse);
}

#[test]
fn official_handles_are_judged_as_they_should_be() {
    assert_judged(&fixtures!(Captures), "handle", [71, 48], Handle::parse);
}

#[test]
fn official_identifiers_are_judged_as_they_should_be() {
    assert_judged(&fixtures!(Captures), "atidentifier", [11, 22], AtIdentifier::parse);
}

#[test]
fn official_at_uris_are_judged_as_they_should_be() {
    assert_judged(&fixtures!(Captures), "aturi", [23, 72], AtUri::parse);
}

#[test]
fn official_datetimes_are_judged_as_they_should_be() {
    assert_judged(&fixtures!(Captures), "datetime", [35, 45], Datetime::parse);
}

#[test]
fn official_language_tags_are_judged_as_they_should_be() {
    assert_judged(&fixtures!(Captures), "language", [18, 7], Language::parse);
}

#[test]
fn official_cid_texts_are_judged_as_they_should_be() {
    assert_judged(&fixtures!(Captures), "cid", [8, 10], CidText::parse);
}

#[test]
fn official_uris_are_judged_as_they_should_be() {
    assert_judged(&fixtures!(Captures), "uri", [9, 12], Uri::parse);
}

#[test]
fn official_datetimes_that_never_were_are_refused() {
    for text in cases(&fixtures!(Captures), "datetime_parse_invalid", 7) {
        assert!(Datetime::parse(text).is_err(), "{text:?} is accepted");
    }
}

#[test]
fn official_language_tags_that_repeat_themselves_are_refused() {
    for text in cases(&fixtures!(Captures), "language_parse_invalid", 4) {
        assert!(Language::parse(text).is_err(), "{text:?} is accepted");
    }
}

/// The reference implementation's copy of the cases has these.
#[test]
fn tids_of_the_newer_copy_are_accepted() {
    for text in ["a222222222222", "j222222222222", "azzzzzzzzzzzz"] {
        assert_eq!(Tid::parse(text).map(|tid| tid.to_string()).as_deref(), Ok(text));
    }
}

/// Every text of the valid cases of `noun` is accepted and every one of the invalid is refused; so
/// many there are.
fn assert_judged<'a, T: std::fmt::Debug>(
    data: &Folder,
    noun: &str,
    [valid, invalid]: [usize; 2],
    parse: impl Fn(&'a str) -> Result<T, SyntaxError>,
) {
    for text in cases(data, &format!("{noun}_syntax_valid"), valid) {
        assert!(parse(text).is_ok(), "{noun} {text:?}: {:?}", parse(text));
    }
    for text in cases(data, &format!("{noun}_syntax_invalid"), invalid) {
        assert!(parse(text).is_err(), "{noun} {text:?} is accepted");
    }
}

/// The cases of a file: not blank, not a comment, and not trimmed, as spaces are part of some. The
/// text is leaked, so that parsed values can borrow it.
fn cases(data: &Folder, file: &str, count: usize) -> Vec<&'static str> {
    let text: &'static str = data.text(&format!("atproto/interop/syntax/{file}.txt")).leak();
    let is_case = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let cases: Vec<&str> = text.split('\n').filter(is_case).collect();
    assert_eq!(cases.len(), count, "{file}");
    cases
}

#[test]
fn official_cid_texts_are_refused_or_listed() {
    let data = fixtures!(Captures);
    assert_valid_are_accepted_or_listed(&data, "atproto/interop/syntax/cid_syntax_valid.txt");
    assert_invalid_are_refused(&data, "atproto/interop/syntax/cid_syntax_invalid.txt");
}

#[test]
fn cid_texts_of_the_indigo_module_are_refused_or_listed() {
    let data = fixtures!(Indigo);
    assert_valid_are_accepted_or_listed(&data, "atproto/syntax/testdata/cid_syntax_valid.txt");
    assert_invalid_are_refused(&data, "atproto/syntax/testdata/cid_syntax_invalid.txt");
}

fn assert_valid_are_accepted_or_listed(data: &Folder, path: &str) {
    let file = data.text(path);
    let mut seen = 0;
    for line in lines(&file) {
        seen += 1;
        match line.parse::<Cid>() {
            Ok(cid) => assert_eq!(cid.to_string(), line),
            Err(_) => {
                assert!(VALID_BUT_REFUSED.contains(&line), "{line:?} is refused and not listed")
            }
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
const VALID_BUT_REFUSED: [&str; 8] = [
    "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
    "zdj7WWeQ43G6JJvLWQWZpyHuAMq6uYWRjkBXFad11vE2LHhQ7",
    "bafybeie5gq4jxvzmsym6hjlwxej4rwdoxt7wadqvmmwbqi7r27fclha2va",
    "mBcDxtdWx0aWhhc2g+",
    "z7x3CtScH765HvShXT",
    "zdj7WhuEjrB52m1BisYCtmjH1hSKa7yZ3jEZ9JcXaFRD51wVz",
    "7134036155352661643226414134664076",
    "f017012202c5f688262e0ece8569aa6f94d60aad55ca8d9d83734e4a7430d0cff6588ec2b",
];
