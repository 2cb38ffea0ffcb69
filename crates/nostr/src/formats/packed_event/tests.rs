use bumpalo::Bump;

use super::*;
use crate::OwnedEvent;
use crate::formats::tests::golden;

fn packed(event: &OwnedEvent) -> Result<Vec<u8>, EncodeError> {
    let (arena, mut bytes) = (Bump::new(), b"before".to_vec());
    let told = encode(&event.borrow_in(&arena), &mut bytes);
    if told.is_err() {
        assert_eq!(bytes, b"before");
    }
    told.map(|()| bytes.split_off(6))
}

fn with(kind: u16, tags: &[&[&str]]) -> OwnedEvent {
    let tag = |tag: &&[&str]| tag.iter().map(|value| (*value).to_owned()).collect();
    OwnedEvent { kind, tags: tags.iter().map(tag).collect(), ..golden() }
}

fn tags(event: &OwnedEvent) -> Vec<(char, Vec<u8>)> {
    let bytes = packed(event).unwrap();
    let tags = PackedEvent::new(&bytes).unwrap().tags();
    tags.map(|tag| (char::from(tag.name), tag.value.to_vec())).collect()
}

fn expires(event: &OwnedEvent) -> Result<Expiration, EncodeError> {
    let bytes = packed(event)?;
    Ok(PackedEvent::new(&bytes).unwrap().expiration())
}

#[test]
fn the_layout_is_as_it_is_drawn() {
    let event = with(1, &[&["t", "gm"], &["p", &"ab".repeat(32), "wss://relay.example"]]);
    let mut expected = [event.id, event.pubkey].concat();
    expected.extend([1_700_000_123_u64, 1, 0].map(u64::to_le_bytes).as_flattened());
    expected.extend(b"t\x02gmp\x20");
    expected.extend([0xab; 32]);
    assert_eq!(packed(&event), Ok(expected));
}

#[test]
fn the_summary_says_of_the_event_what_it_holds() {
    let (event, bytes) = (golden(), packed(&golden()).unwrap());
    let summary = PackedEvent::new(&bytes).unwrap();
    assert_eq!((summary.id(), summary.pubkey()), (&event.id, &event.pubkey));
    assert_eq!((summary.kind(), summary.created_at()), (event.kind, event.created_at));
    assert_eq!(summary.expiration(), Expiration::Never);
}

#[test]
fn only_short_values_of_short_names_are_indexed() {
    let [longest, longer] = [255, 256].map(|len| "x".repeat(len));
    let event =
        with(1, &[&["t"], &[], &["alt", "x"], &["r", &longest], &["r", &longer], &["", "x"]]);
    assert_eq!(tags(&event), [('t', vec![]), ('r', longest.into_bytes())]);
}

#[test]
fn events_that_replace_others_have_a_d() {
    let d = |kind| tags(&with(kind, &[&["d", "x"], &["t", "y"]]));
    let [x, y] = [('d', b"x".to_vec()), ('t', b"y".to_vec())];
    let none = ('d', vec![]);
    for kind in [0, 3, 41, 10_000, 19_999] {
        assert_eq!(d(kind), [none.clone(), x.clone(), y.clone()]);
    }
    for kind in [30_000, 39_999] {
        assert_eq!(d(kind), [x.clone(), y.clone(), none.clone()]);
    }
    for kind in [1, 2, 4, 9_999, 20_000, 29_999, 40_000] {
        assert_eq!(d(kind), [x.clone(), y.clone()]);
    }
}

#[test]
fn the_first_expiration_counts() {
    let at = |value| with(1, &[&["expiration", value], &["expiration", "200"]]);
    assert_eq!(expires(&at("100")), Ok(Expiration::At(100)));
    assert_eq!(expires(&with(20_000, &[])), Ok(Expiration::Ephemeral));
    for bad in ["99", "", "soon", "-1", "18446744073709551616"] {
        let no_time = EncodeError::NoPlace("an expiration that is no time");
        assert_eq!(expires(&at(bad)), Err(no_time), "{bad}");
    }
}

#[test]
fn what_has_no_place_is_refused() {
    let digits = "ab".repeat(32);
    let no_id = EncodeError::NoPlace("an e or a p that is no id");
    for bad in [&digits[2..], "", "x", &format!("{digits}ab"), &format!("g{}", &digits[1..])] {
        assert_eq!(packed(&with(1, &[&["t", "x"], &["e", bad]])), Err(no_id), "{bad}");
    }
    assert_eq!(tags(&with(1, &[&["e", &digits.to_uppercase()]])), [('e', vec![0xab; 32])]);
    let past = EncodeError::Range { field: Field::CreatedAt, value: -1 };
    assert_eq!(packed(&OwnedEvent { created_at: -1, ..golden() }), Err(past));
}

#[test]
fn what_is_no_summary_is_refused() {
    let bytes = packed(&with(1, &[&["t", "gm"], &["e", &"ab".repeat(32)]])).unwrap();
    for len in 0..bytes.len() {
        let told = PackedEvent::new(&bytes[..len]).map_err(|error| error.reason);
        match len {
            88 | 92 => assert!(told.is_ok()),
            _ => assert_eq!(told, Err(Reason::Truncated), "{len}"),
        }
    }
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        PackedEvent::new(&bytes).map(drop).map_err(|error| (error.offset, error.reason))
    };
    assert_eq!(with(71, 0x80), Err((64, Reason::Range(Field::CreatedAt))));
    assert_eq!(with(KIND + 2, 1), Err((KIND, Reason::Range(Field::Kind))));
    assert_eq!(with(88, b'e'), Err((88, Reason::Length(Field::Tags))));
}
