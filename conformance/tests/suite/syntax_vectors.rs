//! The official cases of identifier syntax, none of them trimmed, and those that another copy adds.

use wireproof::atproto::syntax::{
    AtIdentifier, AtUri, CidText, Datetime, Did, Handle, Language, Nsid, RecordKey, SyntaxError,
    Tid, Uri,
};
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
/// text is kept for good, so that what is parsed can borrow it.
fn cases(data: &Folder, file: &str, count: usize) -> Vec<&'static str> {
    let text: &'static str = data.text(&format!("atproto/interop/syntax/{file}.txt")).leak();
    let is_case = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let cases: Vec<&str> = text.split('\n').filter(is_case).collect();
    assert_eq!(cases.len(), count, "{file}");
    cases
}
