use kernels::sha256;

use super::*;
use crate::tests::{encoded, golden, reason, try_encoded};
use nostr::{OwnedEvent, Reason};

const ALL: [Layout; 4] =
    [Layout::Envelope, Layout::EnvelopePacked, Layout::Schema, Layout::SchemaPacked];

fn with_tags(tags: Vec<Vec<String>>) -> OwnedEvent {
    OwnedEvent { tags, ..golden() }
}

#[test]
fn the_published_event_has_the_published_bytes() {
    let bytes = encoded(Layout::EnvelopePacked, &golden());
    let digest = kernels::hex::encode(&sha256::digest(&bytes));
    assert_eq!(digest, "805d163de979cf6d87e0b99075666acde03ec9204a37dea7a94088afff5f7b43");
}

#[test]
fn the_smallest_envelope_has_200_bytes() {
    let event = OwnedEvent { content: String::new(), ..with_tags(Vec::new()) };
    assert_eq!(encoded(Layout::Envelope, &event).len(), 200);
}

#[test]
fn single_fields_are_those_of_the_event() {
    for layout in ALL {
        let (event, bytes) = (golden(), encoded(layout, &golden()));
        let arena = Bump::new();
        let fields = layout.fields(&bytes, &arena, &Limits::default()).unwrap();
        assert_eq!((fields.id(), fields.pubkey()), (Ok(event.id), Ok(event.pubkey)));
        assert_eq!((fields.kind(), fields.created_at()), (Ok(event.kind), Ok(event.created_at)));
    }
}

#[test]
fn the_envelope_rejects_what_it_cannot_count() {
    let many = "a maximum of 255, 32,767 or 65,535";
    for layout in [Layout::Envelope, Layout::EnvelopePacked] {
        let max = |tags| match try_encoded(layout, &with_tags(tags)).expect_err(many) {
            EncodeError::TooMany { max, .. } => max,
            other => panic!("{other}"),
        };
        assert_eq!(max(vec![vec!["x".to_owned(); 256]]), 255);
        assert_eq!(max(vec![vec!["x".repeat(32_768)]]), 32_767);
        assert_eq!(max(vec![vec!["ab".repeat(32_768)]]), 32_767);
        assert_eq!(max(vec![Vec::new(); 65_536]), 65_535);
        encoded(layout, &with_tags(vec![vec!["ab".repeat(32_767)]]));
    }
}

#[test]
fn messages_that_pack_too_well_are_rejected_by_encoder_and_decoder() {
    let event = OwnedEvent { content: "\0".repeat(1 << 20), ..golden() };
    for layout in [Layout::EnvelopePacked, Layout::SchemaPacked] {
        assert!(matches!(try_encoded(layout, &event), Err(EncodeError::TooMany { .. })));
        let zeros = [0, 0xff].repeat(1000);
        assert_eq!(
            reason(layout, &zeros),
            Reason::Expected("a message that unpacks to at most 16 times its length and 4 KiB")
        );
    }
    for layout in [Layout::Envelope, Layout::Schema] {
        encoded(layout, &event);
    }
}

#[test]
fn messages_need_no_alignment() {
    for layout in ALL {
        let bytes = encoded(layout, &golden());
        for shift in 0..8 {
            let moved = [&vec![0; shift][..], &bytes].concat();
            let arena = Bump::new();
            let event = layout.decode(&moved[shift..], &arena, &Limits::default()).unwrap();
            assert_eq!(event.to_owned(), golden());
        }
    }
}

#[test]
fn a_list_that_is_shared_is_rejected() {
    let mut tags = vec![vec!["x".to_owned()]; 100];
    tags[0] = vec!["x".to_owned(); 1000];
    let mut bytes = encoded(Layout::Schema, &with_tags(tags));
    // The pointers of the hundred tags follow the two data of 32 bytes; all are redirected to the long list.
    let list = 8 + 8 + 7 * 8 + 8 * 8;
    let first = i32::from_le_bytes(bytes[list..list + 4].try_into().unwrap());
    for at in 1..100 {
        let here = list + 8 * at;
        let pointer = first - ((at as i32) << 2);
        bytes[here..here + 4].copy_from_slice(&pointer.to_le_bytes());
        bytes.copy_within(list + 4..list + 8, here + 4);
    }
    let unshared = Reason::Expected("a message without shared objects");
    assert_eq!(reason(Layout::Schema, &bytes), unshared);
}

#[test]
fn a_table_of_many_segments_is_rejected() {
    let mut bytes = 40_u32.to_le_bytes().to_vec();
    bytes.resize(8 + 40 * 4, 0);
    assert_eq!(reason(Layout::Envelope, &bytes), Reason::Expected("at most 32 segments"));
}
