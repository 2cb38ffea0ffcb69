use codec::cbor::{Reason, validate};

use super::*;
use crate::event::{Event, FrameFault, Info};

const LABEL: UnsignedLabel<'static> = UnsignedLabel {
    src: "did:web:labels.example.com",
    uri: "at://did:web:a.example/app.bsky.feed.post/3k",
    cid: Some("bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454"),
    val: "spam",
    neg: Some(true),
    cts: "2026-01-01T00:00:00.000Z",
    exp: Some("2027-01-01T00:00:00.000Z"),
};

fn fault(bytes: &[u8]) -> LabelFault {
    Label::parse(bytes).expect_err("refused").fault
}

/// The label with another text for one of its parts.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

#[test]
fn every_set_of_optional_fields_is_canonical_and_read_back() {
    for set in 0..16_u8 {
        let has = |bit: u8| set & (1 << bit) != 0;
        let unsigned = UnsignedLabel {
            cid: LABEL.cid.filter(|_| has(0)),
            neg: has(1).then(|| has(2)),
            exp: LABEL.exp.filter(|_| has(3)),
            ..LABEL
        };
        let bytes = unsigned.with_signature(&[7; 64]);
        assert_eq!(validate(&bytes), Ok(()));
        assert_eq!(validate(&unsigned.to_bytes()), Ok(()));
        let label = Label::parse(&bytes).unwrap();
        assert_eq!((label.fields, label.sig), (unsigned, &[7; 64]));
    }
}

#[test]
fn the_signed_bytes_are_the_fields_in_canonical_order_with_the_version() {
    let unsigned = UnsignedLabel { cid: None, neg: None, exp: None, ..LABEL };
    let expected = [
        b"\xa5\x63cts\x78\x182026-01-01T00:00:00.000Z".as_slice(),
        b"\x63src\x78\x1adid:web:labels.example.com",
        b"\x63uri\x78\x2cat://did:web:a.example/app.bsky.feed.post/3k",
        b"\x63val\x64spam\x63ver\x01",
    ];
    assert_eq!(unsigned.to_bytes(), expected.concat());
}

#[test]
fn unknown_entries_are_ignored_and_are_not_signed() {
    let bytes = LABEL.with_signature(&[7; 64]);
    let longer = [&b"\xaa"[..], &bytes[1..], b"\x65$type\x61x"].concat();
    assert_eq!(Label::parse(&longer).unwrap().fields.to_bytes(), LABEL.to_bytes());
}

#[test]
fn each_broken_rule_of_a_label_has_its_own_fault() {
    let bytes = LABEL.with_signature(&[7; 64]);
    assert_eq!(fault(b"\xa0"), LabelFault::Missing("src"));
    assert_eq!(fault(&replaced(&bytes, b"\x63ver", b"\x63zzz")), LabelFault::Missing("ver"));
    assert_eq!(fault(&LABEL.to_bytes()), LabelFault::Unsigned);
    assert_eq!(fault(&replaced(&bytes, b"ver\x01", b"ver\x02")), LabelFault::Version(2));
    assert_eq!(fault(&replaced(&bytes, b"ver\x01", b"ver\x20")), LabelFault::Version(-1));
    let short = replaced(&bytes, &[b"sig\x58\x40".as_slice(), &[7; 64]].concat(), b"sig\x41\x07");
    assert_eq!(fault(&short), LabelFault::SignatureLength(1));
    for (from, to) in [(&b"neg\xf5"[..], &b"neg\xf6"[..]), (b"ver\x01", b"ver\x61\x31")] {
        assert!(matches!(
            fault(&replaced(&bytes, from, to)),
            LabelFault::Cbor(Reason::Expected(_))
        ));
    }
    let faults = [&bytes[..bytes.len() - 1], &[&bytes[..], b"\x00"].concat(), b"\x80", b""];
    assert!(faults.iter().all(|bytes| matches!(fault(bytes), LabelFault::Cbor(_))));
}

#[test]
fn no_cut_or_flipped_byte_of_a_label_panics() {
    let bytes = LABEL.with_signature(&[7; 64]);
    for at in 0..bytes.len() {
        let _ = Label::parse(&bytes[..at]);
        for bit in 0..8 {
            let mut other = bytes.clone();
            other[at] ^= 1 << bit;
            let _ = Label::parse(&other);
            let frame = Labels { seq: 1, labels: vec![&other] }.to_frame();
            let _ = LabelMessage::decode(&frame);
        }
    }
}

#[test]
fn a_message_has_the_bytes_of_its_labels_even_of_those_that_break_a_rule() {
    let good = LABEL.with_signature(&[7; 64]);
    let labels = vec![&good[..], b"\xa0", b"\x01", &good];
    let frame = Labels { seq: 9, labels: labels.clone() }.to_frame();
    let LabelMessage::Labels(read) = LabelMessage::decode(&frame).unwrap() else { panic!() };
    assert_eq!(read, Labels { seq: 9, labels });
}

#[test]
fn notices_errors_and_unknown_messages_are_read() {
    let info = Event::Info(Info { name: "OutdatedCursor", message: Some("old") }).to_frame();
    let expected = LabelMessage::Info(Info { name: "OutdatedCursor", message: Some("old") });
    assert_eq!(LabelMessage::decode(&info), Ok(expected));
    let error = b"\xa1\x62op\x20\xa1\x65error\x6cFutureCursor";
    assert!(
        matches!(LabelMessage::decode(error), Ok(LabelMessage::Error(error)) if error.error == "FutureCursor")
    );
    let other = b"\xa2\x61t\x66#other\x62op\x01\xa0";
    assert!(matches!(LabelMessage::decode(other), Ok(LabelMessage::Unknown(_))));
}

#[test]
fn a_message_without_a_field_or_over_a_limit_is_refused() {
    let fault = |frame: &[u8]| LabelMessage::decode(frame).unwrap_err().fault;
    let header = b"\xa2\x61t\x67#labels\x62op\x01";
    let of = |payload: &[u8]| fault(&[&header[..], payload].concat());
    assert_eq!(of(b"\xa1\x63seq\x01"), FrameFault::Missing("labels"));
    assert_eq!(of(b"\xa1\x66labels\x80"), FrameFault::Missing("seq"));
    assert_eq!(of(b"\xa2\x63seq\x20\x66labels\x80"), FrameFault::Field("seq"));
    assert!(matches!(of(b"\xa2\x63seq\x01\x66labels\xa0"), FrameFault::Cbor(_)));
    assert!(matches!(of(b"\xa2\x63seq\x01\x66labels\x81\xa2"), FrameFault::Cbor(_)));
    assert!(matches!(of(b"\xa2\x63seq\x01\x66labels\x80\x00"), FrameFault::Cbor(_)));
    let many = Labels { seq: 1, labels: vec![b"\xa0"; MAX_LABELS + 1] }.to_frame();
    assert_eq!(fault(&many), FrameFault::LabelsLimit(MAX_LABELS));
    let long = vec![0; MAX_MESSAGE_BYTES + 1];
    assert_eq!(fault(&long), FrameFault::FrameLimit(MAX_MESSAGE_BYTES));
}

#[test]
fn a_page_of_json_has_the_bytes_of_the_same_labels() {
    let sig = data_encoding::BASE64_NOPAD.encode(&[7; 64]);
    let json = format!(
        r#"{{"cursor":"5","labels":[{{"ver":1,"src":"{}","uri":"{}","cid":"{}","val":"spam","neg":true,"cts":"{}",
        "exp":"{}","sig":{{"$bytes":"{sig}"}}}}, 7]}}"#,
        LABEL.src,
        LABEL.uri,
        LABEL.cid.unwrap(),
        LABEL.cts,
        LABEL.exp.unwrap()
    );
    let page = LabelPage::parse(json.as_bytes()).unwrap();
    assert_eq!(page.cursor.as_deref(), Some("5"));
    assert_eq!(page.labels, [LABEL.with_signature(&[7; 64]), vec![7]]);
}

#[test]
fn a_text_that_is_no_page_is_refused() {
    let refused = [
        "",
        "[]",
        "{}",
        r#"{"labels":{}}"#,
        r#"{"labels":[{"a":1,"a":2}]}"#,
        r#"{"labels":[1e999]}"#,
    ];
    assert!(refused.iter().all(|json| LabelPage::parse(json.as_bytes()).is_err()));
    let many = format!(r#"{{"labels":[0{}]}}"#, ",0".repeat(MAX_LABELS));
    assert!(matches!(LabelPage::parse(many.as_bytes()), Err(LabelPageError::TooMany(_))));
}
