use kernels::sha256;

use super::*;
use crate::tests::{decoded, encoded, golden, ordinary, reason, texts};
use nostr::OwnedEvent;

const SCHEMAS: [Schema; 3] = [Schema::String, Schema::Binary, Schema::BinaryHex];

/// The decoder of single fields.
fn open(schema: Schema, bytes: &[u8]) -> Fields<'_> {
    Fields { schema, input: Input::new(bytes) }
}

#[test]
fn the_published_event_has_the_published_bytes() {
    let bytes = encoded(Schema::BinaryHex, &golden());
    let digest = kernels::hex::encode(&sha256::digest(&bytes));
    assert_eq!(digest, "15e8705ff123b46bd31042e4852818a48a7b721a25fb4488bd73c855eb660f1c");
}

#[test]
fn single_fields_are_those_of_the_event() {
    for schema in SCHEMAS {
        let (event, bytes) = (golden(), encoded(schema, &golden()));
        let fields = open(schema, &bytes);
        assert_eq!(fields.id(), Ok(event.id));
        assert_eq!(fields.pubkey(), Ok(event.pubkey));
        assert_eq!((fields.kind(), fields.created_at()), (Ok(event.kind), Ok(event.created_at)));
        assert_eq!(texts(fields.tags()), Ok(event.tags));
    }
}

#[test]
fn defaults_are_left_out_and_restored() {
    let event =
        OwnedEvent { created_at: 0, kind: 0, tags: Vec::new(), content: String::new(), ..golden() };
    let bytes = encoded(Schema::Binary, &event);
    assert_eq!(bytes.len(), 34 + 34 + 66);
    assert_eq!(decoded(Schema::Binary, &bytes), Ok(event));
    let fields = open(Schema::Binary, &bytes);
    assert_eq!((fields.kind(), fields.created_at()), (Ok(0), Ok(0)));
    assert_eq!(fields.tags().count(), 0);
}

#[test]
fn unknown_fields_of_all_types_but_groups_are_skipped() {
    let others: [&[u8]; 4] =
        [&[0x40, 0x96, 1], &[0x41, 1, 2, 3, 4, 5, 6, 7, 8], &[0x42, 2, 1, 2], &[0x45, 1, 2, 3, 4]];
    for schema in SCHEMAS {
        let event = encoded(schema, &golden());
        for other in others {
            assert_eq!(decoded(schema, &[other, &event].concat()), Ok(golden()));
            assert_eq!(decoded(schema, &[&event, other].concat()), Ok(golden()));
            let cut = [&event[..], &other[..other.len() - 1]].concat();
            assert_eq!(reason(schema, &cut), Reason::Truncated);
        }
        for group in [0x43, 0x44, 0x46, 0x47] {
            let bytes = [&event[..], &[group]].concat();
            assert_eq!(reason(schema, &bytes), Reason::Expected("a field that is not a group"));
        }
    }
}

#[test]
fn what_other_decoders_accept_is_rejected() {
    let event = encoded(Schema::Binary, &golden());
    let after = |field: &[u8]| reason(Schema::Binary, &[&event, field].concat());
    assert_eq!(after(&[0x20, 1]), Reason::Duplicate(Field::Kind));
    assert_eq!(after(&[0x18, 1]), Reason::Duplicate(Field::CreatedAt));
    assert_eq!(after(&[0x32, 0]), Reason::Duplicate(Field::Content));
    assert_eq!(after(&event[..34]), Reason::Duplicate(Field::Id));
    assert_eq!(after(&[0x20, 0x81, 0x80, 0x04]), Reason::Range(Field::Kind));
    assert_eq!(after(&[0x20, 0x81, 0]), Reason::NotMinimal);
    assert_eq!(after(&[0xaa, 0, 0]), Reason::NotMinimal);
    assert_eq!(after(&[0x22, 0]), Reason::Expected("an integer"));
    assert_eq!(after(&[0x28, 0]), Reason::Expected("a message with its length"));
    assert_eq!(after(&[0x2a, 3, 0x0a, 1, 0xff]), Reason::Utf8);
    assert_eq!(after(&[2, 0]), Reason::Expected("a field number"));
    assert_eq!(reason(Schema::Binary, &event[34..]), Reason::Missing(Field::Id));
    assert_eq!(reason(Schema::Binary, &event[..68]), Reason::Missing(Field::Sig));
    assert_eq!(reason(Schema::Binary, &[0x0a, 1, 0]), Reason::Length(Field::Id));
    let mut digits = encoded(Schema::String, &golden());
    digits[2] = b'A';
    assert_eq!(reason(Schema::String, &digits), Reason::Hex(Field::Id));
}

#[test]
fn a_value_is_text_or_bytes_and_a_tag_has_one_list() {
    let event = encoded(Schema::BinaryHex, &OwnedEvent { tags: Vec::new(), ..golden() });
    let with = |tag: &[u8]| [&event, &[0x2a, tag.len() as u8][..], tag].concat();
    let reason_of = |tag: &[u8]| reason(Schema::BinaryHex, &with(tag));
    assert_eq!(reason_of(&[0x12, 0]), Reason::Expected("text or bytes of a value"));
    let twice = [0x12, 5, 0x0a, 1, b'a', 0x12, 0];
    assert_eq!(reason_of(&twice), Reason::Duplicate(Field::Tags));
    let mixed = [0x0a, 1, b'a', 0x12, 2, 0x0a, 0];
    assert_eq!(reason_of(&mixed), Reason::NotCanonical("the values of a tag are in two lists"));
    let older = with(&[0x0a, 1, b'a', 0x0a, 1, b'b']);
    assert_eq!(decoded(Schema::BinaryHex, &older).unwrap().tags, [["a", "b"]]);
}

#[test]
fn tags_and_values_may_have_other_fields_between_them() {
    let event = encoded(Schema::Binary, &OwnedEvent { tags: Vec::new(), ..golden() });
    let tag = |value: u8| [0x2a, 3, 0x0a, 1, value];
    let (other, unknown) = ([0x42, 1, 0], [0x2a, 6, 0x42, 1, 0, 0x42, 1, 0]);
    let between = [&tag(b'a')[..], &event, &tag(b'b'), &tag(b'c'), &other, &tag(b'd')].concat();
    assert_eq!(decoded(Schema::Binary, &between).unwrap().tags, [["a"], ["b"], ["c"], ["d"]]);
    let only = [&event[..], &unknown].concat();
    assert_eq!(decoded(Schema::Binary, &only).unwrap().tags, [[""; 0]]);
    let mixed = [&event[..], &[0x2a, 9, 0x0a, 1, b'a', 0x42, 1, 0, 0x0a, 1, b'b']].concat();
    assert_eq!(decoded(Schema::Binary, &mixed).unwrap().tags, [["a", "b"]]);
}

#[test]
fn messages_longer_than_127_bytes_are_moved_after_their_length() {
    for len in [0, 100, 125, 126, 127, 128, 16_380, 16_384, 60_000] {
        for schema in SCHEMAS {
            let event = OwnedEvent { tags: vec![vec!["x".repeat(len)]], ..golden() };
            assert_eq!(decoded(schema, &encoded(schema, &event)), Ok(event), "{len}");
        }
    }
}

#[test]
fn short_text_tags_are_read_as_other_tags_are() {
    let mut run_count = 0;
    let mut few = Limits::default();
    few.tags = 2;
    few.tag_values = 2;
    for event in ordinary().into_iter().filter(|event| !event.tags.is_empty()) {
        let bytes = encoded(Schema::Binary, &event);
        let without = OwnedEvent { tags: Vec::new(), content: String::new(), ..event };
        let start = encoded(Schema::Binary, &without).len() - SIG_FIELD_BYTES;
        for limits in [Limits::default(), few.clone()] {
            let arena = Bump::new();
            let (mut input, budget) =
                (Input::new(&bytes[start..]), Budget::new(bytes.len(), &limits));
            let at_once = tags::short_text_tags(&bytes[start..], &arena, &budget);
            let one_by_one = tags::read_any_run(Schema::Binary, &mut input, &arena, &budget);
            if let Some((tags, len)) = at_once {
                assert_eq!((Ok(tags), len), (one_by_one, input.offset()));
                run_count += 1;
            }
        }
    }
    assert!(run_count > 10, "{run_count}");
}

/// Size of the key, length and bytes of the signature, which is last.
const SIG_FIELD_BYTES: usize = 66;
