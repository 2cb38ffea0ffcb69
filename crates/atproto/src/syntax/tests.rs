use std::collections::HashMap;

use proptest::prelude::*;

use super::datetime::{date_of, days_in_month, days_of};
use super::language::IRREGULAR;
use super::tid::TidClock;
use super::*;

/// The rule that a DID breaks, and where.
fn did(text: &str) -> Result<(), (SyntaxRule, u32)> {
    fault(Did::parse(text))
}

fn fault<T>(result: Result<T, SyntaxError>) -> Result<(), (SyntaxRule, u32)> {
    result.map(drop).map_err(|error| (error.rule, error.offset))
}

#[test]
fn a_did_is_rejected_at_the_byte_that_breaks_its_rule() {
    assert_eq!(did(""), Err((SyntaxRule::Prefix, 0)));
    assert_eq!(did("DID:plc:a"), Err((SyntaxRule::Prefix, 0)));
    assert_eq!(did("did:"), Err((SyntaxRule::TooShort, 4)));
    assert_eq!(did("did:plc"), Err((SyntaxRule::TooShort, 7)));
    assert_eq!(did("did::a"), Err((SyntaxRule::EmptyPart, 4)));
    assert_eq!(did("did:m1:a"), Err((SyntaxRule::Symbol, 5)));
    assert_eq!(did("did:plc:"), Err((SyntaxRule::TooShort, 8)));
    assert_eq!(did("did:plc:a/b"), Err((SyntaxRule::Symbol, 9)));
    assert_eq!(did("did:plc:aé"), Err((SyntaxRule::Symbol, 9)));
    assert_eq!(did("did:plc:a:"), Err((SyntaxRule::TooShort, 10)));
    assert_eq!(did("did:plc:a%"), Err((SyntaxRule::TooShort, 10)));
    let longest = format!("did:plc:{}", "a".repeat(Did::MAX_LEN - 8));
    assert_eq!(did(&longest), Ok(()));
    assert_eq!(did(&(longest + "a")), Err((SyntaxRule::TooLong, 2048)));
}

#[test]
fn a_did_of_the_directory_has_24_base32_characters() {
    let is_plc = |text| Did::parse(text).unwrap().is_plc();
    assert!(is_plc("did:plc:ewvi7nxzyoun6zhxrhs64oiz"));
    assert!(!is_plc("did:plc:ewvi7nxzyoun6zhxrhs64oi"));
    assert!(!is_plc("did:plc:ewvi7nxzyoun6zhxrhs64oi1"));
    assert!(!is_plc("did:web:ewvi7nxzyoun6zhxrhs64oiz"));
}

#[test]
fn a_pattern_is_a_name_or_the_labels_before_a_star() {
    let pattern = |text: &str| fault(CollectionPattern::parse(text));
    for valid in ["app.bsky.feed.post", "app.bsky.feed.*", "org.*", "a-b.0c.*"] {
        assert_eq!(pattern(valid), Ok(()), "{valid}");
        assert_eq!(valid.parse::<CollectionPatternBuf>().unwrap().to_string(), valid);
    }
    assert_eq!(pattern(""), Err((SyntaxRule::EmptyPart, 0)));
    assert_eq!(pattern("post"), Err((SyntaxRule::FewParts, 4)));
    assert_eq!(pattern("*"), Err((SyntaxRule::Symbol, 0)));
    assert_eq!(pattern(".*"), Err((SyntaxRule::EmptyPart, 0)));
    assert_eq!(pattern("a..*"), Err((SyntaxRule::EmptyPart, 2)));
    assert_eq!(pattern("0a.*"), Err((SyntaxRule::Letter, 0)));
    assert_eq!(pattern("a.b-.*"), Err((SyntaxRule::Hyphen, 3)));
    assert_eq!(pattern("a.*.*"), Err((SyntaxRule::Symbol, 2)));
    assert_eq!(pattern("app.bsky.feed*"), Err((SyntaxRule::Symbol, 13)));
    let label = format!("{}.", "a".repeat(62));
    let longest = format!("{}.*", &label.repeat(5)[..313]);
    assert_eq!((longest.len(), pattern(&longest)), (CollectionPattern::MAX_PREFIX_LEN, Ok(())));
    assert_eq!(pattern(&format!("b{longest}")), Err((SyntaxRule::TooLong, 315)));
    let first = CollectionPattern::parse(&longest).unwrap().first_collection();
    assert_eq!(first.as_str().len(), Nsid::MAX_LEN);
}

#[test]
fn a_pattern_selects_by_whole_labels_and_includes_what_it_selects() {
    let pattern = |text: &str| text.parse::<CollectionPatternBuf>().unwrap();
    let (graph, follow) = (pattern("app.bsky.graph.*"), pattern("app.bsky.graph.follow"));
    assert!(graph.matches("app.bsky.graph.follow") && graph.matches("app.bsky.graph.a.b"));
    assert!(!graph.matches("app.bsky.graphs.follow") && !graph.matches("app.bsky.graph"));
    assert!(follow.matches("app.bsky.graph.follow") && !follow.matches("app.bsky.graph.follower"));
    assert!(graph.includes(&follow) && graph.includes(&graph) && follow.includes(&follow));
    assert!(!follow.includes(&graph) && pattern("app.*").includes(&graph));
    assert!(!graph.includes(&pattern("app.bsky.*")));
    assert_eq!(follow.as_pattern().as_nsid(), Some(Nsid::parse("app.bsky.graph.follow").unwrap()));
    assert_eq!(
        (graph.as_pattern().as_nsid(), graph.as_pattern().key_prefix().as_str()),
        (None, "app.bsky.graph.")
    );
    for pattern in [graph, follow] {
        let pattern = pattern.as_pattern();
        let first = pattern.first_collection();
        assert!(pattern.matches(first.as_str()), "{first}");
        assert!(format!("{first}/-").starts_with(&pattern.key_prefix()), "{first}");
    }
}

#[test]
fn an_nsid_is_rejected_at_the_byte_that_breaks_its_rule() {
    let nsid = |text: &str| fault(Nsid::parse(text));
    assert_eq!(nsid(""), Err((SyntaxRule::EmptyPart, 0)));
    assert_eq!(nsid("com.example"), Err((SyntaxRule::FewParts, 11)));
    assert_eq!(nsid("com..name"), Err((SyntaxRule::EmptyPart, 4)));
    assert_eq!(nsid("com.example.name."), Err((SyntaxRule::EmptyPart, 17)));
    assert_eq!(nsid("0com.example.name"), Err((SyntaxRule::Letter, 0)));
    assert_eq!(nsid("com.0example.name"), Ok(()));
    assert_eq!(nsid("com.example.0name"), Err((SyntaxRule::Letter, 12)));
    assert_eq!(nsid("com.-example.name"), Err((SyntaxRule::Hyphen, 4)));
    assert_eq!(nsid("com.example-.name"), Err((SyntaxRule::Hyphen, 11)));
    assert_eq!(nsid("com.example.na-me"), Err((SyntaxRule::Symbol, 14)));
    assert_eq!(nsid("com.example.*"), Err((SyntaxRule::Symbol, 12)));
    assert_eq!(nsid("com.example.name#main"), Err((SyntaxRule::Symbol, 16)));
    let label = |len: usize| format!("com.{}.name", "a".repeat(len));
    assert_eq!(nsid(&label(63)), Ok(()));
    assert_eq!(nsid(&label(64)), Err((SyntaxRule::LongPart, 67)));
    let longest = "com.".repeat(77) + &"n".repeat(9);
    assert_eq!((longest.len(), nsid(&longest)), (Nsid::MAX_LEN, Ok(())));
    assert_eq!(nsid(&(longest + "n")), Err((SyntaxRule::TooLong, 317)));
}

#[test]
fn an_nsid_has_a_normal_form() {
    let nsid = Nsid::parse("APP.Bsky.feed.getPost").unwrap();
    assert_eq!(nsid.to_normalized(), "app.bsky.feed.getPost");
    assert_eq!(nsid.labels().collect::<Vec<_>>(), ["APP", "Bsky", "feed", "getPost"]);
}

#[test]
fn a_record_key_is_rejected_at_the_byte_that_breaks_its_rule() {
    let key = |text: &str| fault(RecordKey::parse(text));
    assert_eq!(key(""), Err((SyntaxRule::TooShort, 0)));
    assert_eq!(key("."), Err((SyntaxRule::Reserved, 0)));
    assert_eq!(key(".."), Err((SyntaxRule::Reserved, 0)));
    assert_eq!(key("..."), Ok(()));
    assert_eq!(key("a/b"), Err((SyntaxRule::Symbol, 1)));
    assert_eq!(key("100%"), Err((SyntaxRule::Symbol, 3)));
    assert_eq!(key(&"o".repeat(512)), Ok(()));
    assert_eq!(key(&"o".repeat(513)), Err((SyntaxRule::TooLong, 512)));
}

#[test]
fn a_fault_in_a_path_names_the_part_that_has_it() {
    let error = |text: &str| RepoPath::parse(text).unwrap_err();
    let at = |kind, rule, offset| SyntaxError { kind, rule, offset };
    assert_eq!(error("com.example.name"), at(SyntaxKind::RepoPath, SyntaxRule::FewParts, 16));
    assert_eq!(error("/key"), at(SyntaxKind::Nsid, SyntaxRule::EmptyPart, 0));
    assert_eq!(error("com.example/key"), at(SyntaxKind::Nsid, SyntaxRule::FewParts, 11));
    assert_eq!(error("com.example.name/"), at(SyntaxKind::RecordKey, SyntaxRule::TooShort, 17));
    assert_eq!(error("com.example.name/a/b"), at(SyntaxKind::RecordKey, SyntaxRule::Symbol, 18));
    let bytes = RepoPath::from_bytes(b"com.example.name/\xff").unwrap_err();
    assert_eq!(bytes, at(SyntaxKind::RepoPath, SyntaxRule::Symbol, 17));
    assert_eq!(
        error("com.example.name/..").to_string(),
        "not a record key: at byte 17, the text is reserved"
    );
}

#[test]
fn a_tid_is_rejected_at_the_byte_that_breaks_its_rule() {
    let tid = |text: &str| fault(Tid::parse(text));
    assert_eq!(tid(""), Err((SyntaxRule::TooShort, 0)));
    assert_eq!(tid("222222222222"), Err((SyntaxRule::TooShort, 12)));
    assert_eq!(tid("22222222222222"), Err((SyntaxRule::TooLong, 13)));
    assert_eq!(tid("2222222222221"), Err((SyntaxRule::Symbol, 12)));
    assert_eq!(tid("222-2222222222"), Err((SyntaxRule::Symbol, 3)));
    assert_eq!(tid("3JZFCIJPJ2Z2A"), Err((SyntaxRule::Symbol, 1)));
    assert_eq!(tid("k222222222222"), Err((SyntaxRule::Symbol, 0)));
    assert_eq!(tid("j222222222222"), Ok(()));
}

#[test]
fn the_least_and_the_greatest_tid_have_their_texts() {
    assert_eq!(Tid::MIN.to_string(), "2222222222222");
    assert_eq!(Tid::MAX.to_string(), "jzzzzzzzzzzzz");
    assert_eq!(Tid::parse("jzzzzzzzzzzzz"), Ok(Tid::MAX));
    assert_eq!(Tid::new(u64::MAX, u16::MAX).to_string(), "bzzzzzzzzzzzz");
}

#[test]
fn a_clock_never_goes_back() {
    let mut clock = TidClock::new(1023);
    let first = clock.next(1000);
    assert_eq!((first.micros(), first.clock_id()), (1000, 1023));
    assert_eq!(clock.next(1000).as_u64(), first.as_u64() + 1);
    assert_eq!(clock.next(5).as_u64(), first.as_u64() + 2);
    assert_eq!(clock.next(2000), Tid::new(2000, 1023));
    let mut resumed = TidClock::after(Tid::new(3000, 0), 9);
    assert_eq!(resumed.next(2500).as_u64(), Tid::new(3000, 0).as_u64() + 1);
    assert_eq!(TidClock::after(Tid::MAX, 0).next(0), Tid::MAX);
    assert_eq!(TidClock::new(0).next(0), Tid::MIN);
}

#[test]
fn owned_forms_are_found_by_text_and_read_by_serde() {
    let owned: DidBuf = "did:web:example.com".parse().unwrap();
    let map = HashMap::from([(owned.clone(), 1)]);
    assert_eq!(map.get("did:web:example.com"), Some(&1));
    assert_eq!(owned.as_did().to_buf(), owned);
    let json = serde_json::to_string(&(&owned, Tid::MIN)).unwrap();
    assert_eq!(json, r#"["did:web:example.com","2222222222222"]"#);
    assert_eq!(serde_json::from_str::<(DidBuf, Tid)>(&json).unwrap(), (owned, Tid::MIN));
    let error = serde_json::from_str::<DidBuf>("\"did:web\"").unwrap_err().to_string();
    assert!(error.starts_with("not a DID: at byte 7, the text ends too early"), "{error}");
}

proptest! {
    #[test]
    fn tids_sort_as_their_numbers_and_come_back(a: u64, b: u64) {
        let (a, b) = (Tid::from_u64(a), Tid::from_u64(b));
        prop_assert_eq!(a.to_string().cmp(&b.to_string()), a.cmp(&b));
        prop_assert_eq!(Tid::parse(&a.to_string()), Ok(a));
    }
}

#[test]
fn a_handle_is_rejected_at_the_byte_that_breaks_its_rule() {
    let handle = |text: &str| fault(Handle::parse(text));
    assert_eq!(handle(""), Err((SyntaxRule::EmptyPart, 0)));
    assert_eq!(handle("com"), Err((SyntaxRule::FewParts, 3)));
    assert_eq!(handle("john.test."), Err((SyntaxRule::EmptyPart, 10)));
    assert_eq!(handle(".john.test"), Err((SyntaxRule::EmptyPart, 0)));
    assert_eq!(handle("john.0"), Err((SyntaxRule::Letter, 5)));
    assert_eq!(handle("john-.test"), Err((SyntaxRule::Hyphen, 4)));
    assert_eq!(handle("jo_hn.test"), Err((SyntaxRule::Symbol, 2)));
    assert_eq!(handle("jöhn.test"), Err((SyntaxRule::Symbol, 1)));
    assert_eq!(handle("john.test "), Err((SyntaxRule::Symbol, 9)));
    let longest = "ab.".repeat(84) + "c";
    assert_eq!((longest.len(), handle(&longest)), (Handle::MAX_LEN, Ok(())));
    assert_eq!(handle(&(longest + "c")), Err((SyntaxRule::TooLong, 253)));
}

#[test]
fn reserved_top_level_domains_are_known_in_any_case() {
    let is_reserved = |text| Handle::parse(text).unwrap().is_reserved();
    assert!(is_reserved("a.LOCAL") && Handle::INVALID.is_reserved());
    assert!(!is_reserved("local.test") && !is_reserved("onion.com"));
    assert_eq!(Handle::parse(Handle::INVALID.as_str()), Ok(Handle::INVALID));
}

#[test]
fn an_at_identifier_is_parsed_as_a_did_or_as_a_handle_never_as_both() {
    let at = |kind, rule, offset| Err(SyntaxError { kind, rule, offset });
    assert_eq!(
        AtIdentifier::parse("did:plc").map(drop),
        at(SyntaxKind::Did, SyntaxRule::TooShort, 7)
    );
    assert_eq!(
        AtIdentifier::parse("DID:plc:a").map(drop),
        at(SyntaxKind::Handle, SyntaxRule::Symbol, 3)
    );
    let did = Did::parse("did:web:A.example").unwrap();
    let identifier = AtIdentifier::from(did);
    assert_eq!((identifier.as_did(), identifier.as_handle()), (Some(did), None));
    assert_eq!(identifier.to_normalized(), "did:web:A.example");
    assert_eq!(AtIdentifier::parse("A.example").unwrap().to_normalized(), "a.example");
}

#[test]
fn a_fault_in_an_at_uri_names_the_part_that_has_it() {
    let error = |text: &str| AtUri::parse(text).unwrap_err();
    let at = |kind, rule, offset| SyntaxError { kind, rule, offset };
    assert_eq!(error("AT://a.test"), at(SyntaxKind::AtUri, SyntaxRule::Prefix, 0));
    assert_eq!(error("at://"), at(SyntaxKind::Handle, SyntaxRule::EmptyPart, 5));
    assert_eq!(error("at://did:plc:"), at(SyntaxKind::Did, SyntaxRule::TooShort, 13));
    assert_eq!(error("at://a.test/"), at(SyntaxKind::Nsid, SyntaxRule::EmptyPart, 12));
    assert_eq!(error("at://a.test/com.example"), at(SyntaxKind::Nsid, SyntaxRule::FewParts, 23));
    assert_eq!(
        error("at://a.test/com.example.a/"),
        at(SyntaxKind::RecordKey, SyntaxRule::TooShort, 26)
    );
    assert_eq!(
        error("at://a.test/com.example.a/b/c"),
        at(SyntaxKind::RecordKey, SyntaxRule::Symbol, 27)
    );
    assert_eq!(error("at://a.test#x"), at(SyntaxKind::Handle, SyntaxRule::Symbol, 11));
    let long = format!("at://{}", "a".repeat(8188));
    assert_eq!(error(&long), at(SyntaxKind::AtUri, SyntaxRule::TooLong, 8192));
}

#[test]
fn the_parts_of_an_at_uri_have_a_normal_form_each() {
    let normal = |text| AtUri::parse(text).unwrap().to_normalized();
    assert_eq!(normal("at://A.Test"), "at://a.test");
    assert_eq!(
        normal("at://did:web:A.test/COM.example.getA"),
        "at://did:web:A.test/com.example.getA"
    );
    assert_eq!(normal("at://A.test/com.Example.a/Key"), "at://a.test/com.example.a/Key");
    let uri = AtUri::parse("at://a.test/com.example.a").unwrap();
    assert_eq!((uri.collection().is_some(), uri.record_key()), (true, None));
}

#[test]
fn a_datetime_is_rejected_at_the_byte_that_breaks_its_rule() {
    let datetime = |text: &str| fault(Datetime::parse(text));
    assert_eq!(datetime(""), Err((SyntaxRule::TooShort, 0)));
    assert_eq!(datetime("1985-04-12"), Err((SyntaxRule::TooShort, 10)));
    assert_eq!(datetime("1985-04-12t23:20:50Z"), Err((SyntaxRule::Symbol, 10)));
    assert_eq!(datetime("1985-13-12T23:20:50Z"), Err((SyntaxRule::Moment, 5)));
    assert_eq!(datetime("1985-02-29T23:20:50Z"), Err((SyntaxRule::Moment, 8)));
    assert_eq!(datetime("1984-02-29T23:20:50Z"), Ok(()));
    assert_eq!(datetime("1900-02-29T23:20:50Z"), Err((SyntaxRule::Moment, 8)));
    assert_eq!(datetime("2000-02-29T23:20:50Z"), Ok(()));
    assert_eq!(datetime("1985-04-12T24:00:00Z"), Err((SyntaxRule::Moment, 11)));
    assert_eq!(datetime("1990-12-31T23:59:60Z"), Err((SyntaxRule::Moment, 17)));
    assert_eq!(datetime("1985-04-12T23:20:50"), Err((SyntaxRule::TooShort, 19)));
    assert_eq!(datetime("1985-04-12T23:20:50.Z"), Err((SyntaxRule::Symbol, 20)));
    assert_eq!(datetime("1985-04-12T23:20:50z"), Err((SyntaxRule::Symbol, 19)));
    assert_eq!(datetime("1985-04-12T23:20:50-00:00"), Err((SyntaxRule::Reserved, 19)));
    assert_eq!(datetime("1985-04-12T23:20:50+24:00"), Err((SyntaxRule::Moment, 20)));
    assert_eq!(datetime("1985-04-12T23:20:50+00:60"), Err((SyntaxRule::Moment, 23)));
    assert_eq!(datetime("1985-04-12T23:20:50ZZ"), Err((SyntaxRule::TooLong, 20)));
    assert_eq!(datetime("1985-04-12T23:20:50+01:000"), Err((SyntaxRule::TooLong, 25)));
    let digits = |count: usize| format!("1985-04-12T23:20:50.{}Z", "9".repeat(count));
    assert_eq!(datetime(&digits(43)), Ok(()));
    assert_eq!(datetime(&digits(44)), Err((SyntaxRule::TooLong, 64)));
}

#[test]
fn a_datetime_is_in_the_years_0_to_9999_in_utc_too() {
    let micros = |text: &str| Datetime::parse(text).map(Datetime::unix_micros);
    assert_eq!(micros("0000-01-01T00:00:00Z"), Ok(-62_167_219_200_000_000));
    assert_eq!(micros("9999-12-31T23:59:59.9999999Z"), Ok(253_402_300_799_999_999));
    assert_eq!(micros("0000-01-01T00:59:00+00:59"), micros("0000-01-01T00:00:00Z"));
    assert_eq!(fault(micros("0000-01-01T00:58:59+00:59")), Err((SyntaxRule::Moment, 0)));
    assert_eq!(fault(micros("9999-12-31T23:00:00-01:00")), Err((SyntaxRule::Moment, 0)));
}

#[test]
fn moments_are_counted_from_1970_and_written_in_utc() {
    let read = |text: &'static str| Datetime::parse(text).unwrap();
    assert_eq!(read("1970-01-01T00:00:00Z").unix_micros(), 0);
    assert_eq!(read("2000-02-29T00:00:00.123999Z").unix_micros(), 951_782_400_123_999);
    assert_eq!(read("1969-12-31T23:59:59.9999999Z").unix_micros(), -1);
    let east = read("1985-04-12T23:20:50.123456+01:45");
    assert_eq!(east.to_normalized(), "1985-04-12T21:35:50.123Z");
    assert_eq!(read("0985-01-01T00:00:00-07:00").to_normalized(), "0985-01-01T07:00:00.000Z");
    assert_eq!(DatetimeBuf::from_unix_micros(i64::MAX), None);
    assert_eq!(DatetimeBuf::from_unix_micros(i64::MIN), None);
}

#[test]
fn every_day_of_ten_thousand_years_has_one_date() {
    let mut yesterday = (-1, 12, 31);
    for days in -719_528..2_932_897 {
        let (year, month, day) = date_of(days);
        assert_eq!(days_of(year, month, day), days);
        let is_next = match yesterday {
            (y, 12, 31) => (year, month, day) == (y + 1, 1, 1),
            (y, m, d) if d == days_in_month(y, m) => (year, month, day) == (y, m + 1, 1),
            (y, m, d) => (year, month, day) == (y, m, d + 1),
        };
        assert!(is_next, "{year}-{month}-{day}");
        yesterday = (year, month, day);
    }
    assert_eq!(yesterday, (9999, 12, 31));
}

#[test]
fn a_language_tag_is_rejected_at_the_byte_that_breaks_its_rule() {
    let language = |text: &str| fault(Language::parse(text));
    assert_eq!(language(""), Err((SyntaxRule::EmptyPart, 0)));
    assert_eq!(language("j"), Err((SyntaxRule::TooShort, 1)));
    assert_eq!(language("JA"), Err((SyntaxRule::Symbol, 0)));
    assert_eq!(language("jaja"), Err((SyntaxRule::LongPart, 4)));
    assert_eq!(language("ja-"), Err((SyntaxRule::EmptyPart, 3)));
    assert_eq!(language("de_DE"), Err((SyntaxRule::Symbol, 2)));
    assert_eq!(language("de-419-DE"), Err((SyntaxRule::Part, 7)));
    assert_eq!(language("de-DE-Latn"), Err((SyntaxRule::Part, 6)));
    assert_eq!(language("zh-aaa-bbb-ccc"), Ok(()));
    assert_eq!(language("zh-aaa-bbb-ccc-ddd"), Err((SyntaxRule::Part, 15)));
    assert_eq!(language("de-abcdefghi"), Err((SyntaxRule::LongPart, 11)));
    assert_eq!(language("de-1901-1996-1901"), Err((SyntaxRule::Repeated, 13)));
    assert_eq!(language("de-a-foo-A-bar"), Err((SyntaxRule::Repeated, 9)));
    assert_eq!(language("de-a-b-foo"), Err((SyntaxRule::Part, 5)));
    assert_eq!(language("de-a"), Err((SyntaxRule::TooShort, 4)));
    assert_eq!(language("de-x"), Err((SyntaxRule::TooShort, 4)));
    assert_eq!(language("x"), Err((SyntaxRule::TooShort, 1)));
    assert_eq!(language("de-x-a-a-x-1"), Ok(()));
    assert_eq!(language("i-klingon"), Ok(()));
    assert_eq!(language("i-unknown"), Err((SyntaxRule::TooShort, 1)));
    assert_eq!(language(&"de-".repeat(43)), Err((SyntaxRule::TooLong, 128)));
}

#[test]
fn every_old_registration_is_a_language_tag() {
    let regular =
        "art-lojban cel-gaulish no-bok no-nyn zh-guoyu zh-hakka zh-min zh-min-nan zh-xiang";
    for tag in regular.split(' ').chain(IRREGULAR.split(' ')) {
        assert_eq!(fault(Language::parse(tag)), Ok(()), "{tag}");
    }
}

#[test]
fn a_cid_text_is_of_any_kind_and_converts_if_repositories_use_the_kind() {
    let cid = |text: &str| fault(CidText::parse(text));
    assert_eq!(cid("1234567"), Err((SyntaxRule::TooShort, 7)));
    assert_eq!(cid("12345678"), Ok(()));
    assert_eq!(cid("cid:12345678"), Err((SyntaxRule::Symbol, 3)));
    assert_eq!(cid("Qmb45678"), Err((SyntaxRule::Reserved, 0)));
    assert_eq!(cid(&"a".repeat(257)), Err((SyntaxRule::TooLong, 256)));
    let blessed = codec::Cid::of(codec::cid::Codec::DagCbor, b"a").to_string();
    assert_eq!(CidText::parse(&blessed).unwrap().to_cid().unwrap().to_string(), blessed);
    assert!(CidText::parse("12345678").unwrap().to_cid().is_err());
}

#[test]
fn a_uri_is_rejected_at_the_byte_that_breaks_its_rule() {
    let uri = |text: &str| fault(Uri::parse(text));
    assert_eq!(uri(""), Err((SyntaxRule::TooShort, 0)));
    assert_eq!(uri("example"), Err((SyntaxRule::TooShort, 7)));
    assert_eq!(uri("example/com:"), Err((SyntaxRule::Symbol, 7)));
    assert_eq!(uri("http:"), Err((SyntaxRule::TooShort, 5)));
    assert_eq!(uri("1http:x"), Err((SyntaxRule::Letter, 0)));
    assert_eq!(uri("coap+tcp://[::1]"), Ok(()));
    assert_eq!(uri("https://a b"), Err((SyntaxRule::Symbol, 9)));
    assert_eq!(uri("https://é"), Err((SyntaxRule::Symbol, 8)));
    assert_eq!(uri(&format!("{}:x", "s".repeat(81))), Ok(()));
    assert_eq!(uri(&format!("{}:x", "s".repeat(82))), Err((SyntaxRule::LongPart, 81)));
    assert_eq!(uri(&format!("s:{}", "x".repeat(8190))), Ok(()));
    assert_eq!(uri(&format!("s:{}", "x".repeat(8191))), Err((SyntaxRule::TooLong, 8192)));
}

/// Characters that are common in these texts, so that random texts get far.
const LIKELY: &str = "[a-c2A-C0%/:.~_# é-]{0,24}";

proptest! {
    #[test]
    fn a_normal_form_is_well_formed_and_normal(
        handle in "[aB0]([a-]{0,3}[b1])?(\\.[aB][0-]{0,1}[c]){1,3}",
        key in "[a-zA-Z0-9_~:-]{1,9}",
    ) {
        let uri = format!("at://{handle}/{handle}.nameOf/{key}");
        let uri = AtUri::parse(&uri);
        prop_assume!(uri.is_ok());
        let normal = uri.unwrap().to_normalized();
        prop_assert_eq!(AtUri::parse(normal.as_str()), Ok(normal.as_at_uri()));
        prop_assert_eq!(normal.as_at_uri().to_normalized(), normal);
    }

    #[test]
    fn an_error_never_points_past_the_text(text in LIKELY, prefix in "(did:|at://|did:plc:)?") {
        let text = prefix + &text;
        let faults = [
            Did::parse(&text).err(),
            Handle::parse(&text).err(),
            Nsid::parse(&text).err(),
            RecordKey::parse(&text).err(),
            RepoPath::parse(&text).err(),
            AtUri::parse(&text).err(),
            AtIdentifier::parse(&text).err(),
            Language::parse(&text).err(),
            CidText::parse(&text).err(),
            Uri::parse(&text).err(),
            Datetime::parse(&text).err(),
            Tid::parse(&text).err(),
        ];
        for fault in faults.into_iter().flatten() {
            prop_assert!(fault.offset as usize <= text.len(), "{}", fault);
        }
    }
}
