use kernels::sha256;

use super::*;
use crate::OwnedEvent;
use crate::formats::tests::golden;

const ALL: [Layout; 4] =
    [Layout::Envelope, Layout::EnvelopePacked, Layout::Schema, Layout::SchemaPacked];

fn encoded(layout: Layout, event: &OwnedEvent) -> Result<Vec<u8>, EncodeError> {
    let (arena, mut bytes) = (Bump::new(), Vec::new());
    layout.encode(&event.borrow_in(&arena), &mut bytes).map(|()| bytes)
}

fn reason(layout: Layout, bytes: &[u8]) -> Reason {
    layout.decode(bytes, &Bump::new(), &Limits::default()).unwrap_err().reason
}

fn with_tags(tags: Vec<Vec<String>>) -> OwnedEvent {
    OwnedEvent { tags, ..golden() }
}

#[test]
fn the_published_event_has_the_published_bytes() {
    let bytes = encoded(Layout::EnvelopePacked, &golden()).unwrap();
    let told = kernels::hex::encode(&sha256::digest(&bytes));
    assert_eq!(told, "805d163de979cf6d87e0b99075666acde03ec9204a37dea7a94088afff5f7b43");
}

#[test]
fn the_smallest_envelope_has_200_bytes() {
    let event = OwnedEvent { content: String::new(), ..with_tags(Vec::new()) };
    assert_eq!(encoded(Layout::Envelope, &event).unwrap().len(), 200);
}

#[test]
fn single_fields_are_what_the_whole_event_says() {
    for layout in [Layout::Envelope, Layout::Schema] {
        let (event, bytes) = (golden(), encoded(layout, &golden()).unwrap());
        let arena = Bump::new();
        let fields = Fields::new(layout, &bytes, &arena).unwrap();
        assert_eq!((fields.id(), fields.pubkey()), (Ok(event.id), Ok(event.pubkey)));
        assert_eq!((fields.kind(), fields.created_at()), (Ok(event.kind), Ok(event.created_at)));
    }
}

#[test]
fn the_envelope_refuses_what_it_would_cut() {
    let many = "most 255 or 32,767 or 65,535";
    for layout in [Layout::Envelope, Layout::EnvelopePacked] {
        let most = |tags| match encoded(layout, &with_tags(tags)).expect_err(many) {
            EncodeError::TooMany { most, .. } => most,
            other => panic!("{other}"),
        };
        assert_eq!(most(vec![vec!["x".to_owned(); 256]]), 255);
        assert_eq!(most(vec![vec!["x".repeat(32_768)]]), 32_767);
        assert_eq!(most(vec![vec!["ab".repeat(32_768)]]), 32_767);
        assert_eq!(most(vec![Vec::new(); 65_536]), 65_535);
        encoded(layout, &with_tags(vec![vec!["ab".repeat(32_767)]])).unwrap();
    }
}

#[test]
fn what_packs_too_well_is_neither_written_nor_read() {
    let event = OwnedEvent { content: "\0".repeat(1 << 20), ..golden() };
    for layout in [Layout::EnvelopePacked, Layout::SchemaPacked] {
        assert!(matches!(encoded(layout, &event), Err(EncodeError::TooMany { .. })));
        let zeros = [0, 0xff].repeat(1000);
        assert_eq!(reason(layout, &zeros), Reason::Expected("a message that unpacks to less"));
    }
    for layout in [Layout::Envelope, Layout::Schema] {
        encoded(layout, &event).unwrap();
    }
}

#[test]
fn bytes_may_stand_at_any_address() {
    for layout in ALL {
        let bytes = encoded(layout, &golden()).unwrap();
        for shift in 0..8 {
            let moved = [&vec![0; shift][..], &bytes].concat();
            let arena = Bump::new();
            let event = layout.decode(&moved[shift..], &arena, &Limits::default()).unwrap();
            assert_eq!(event.to_owned(), golden());
        }
    }
}

#[test]
fn a_list_that_is_met_again_and_again_is_refused() {
    let mut tags = vec![vec!["x".to_owned()]; 100];
    tags[0] = vec!["x".to_owned(); 1000];
    let mut bytes = encoded(Layout::Schema, &with_tags(tags)).unwrap();
    // The pointers of the hundred tags follow the two data of 32 bytes; each is led to the long list.
    let list = 8 + 8 + 7 * 8 + 8 * 8;
    let first = i32::from_le_bytes(bytes[list..list + 4].try_into().unwrap());
    for at in 1..100 {
        let here = list + 8 * at;
        let pointer = first - ((at as i32) << 2);
        bytes[here..here + 4].copy_from_slice(&pointer.to_le_bytes());
        bytes.copy_within(list + 4..list + 8, here + 4);
    }
    let met_once = Reason::Expected("a message in which nothing is met twice");
    assert_eq!(reason(Layout::Schema, &bytes), met_once);
}

#[test]
fn a_table_of_many_segments_is_refused() {
    let mut bytes = 40_u32.to_le_bytes().to_vec();
    bytes.resize(8 + 40 * 4, 0);
    assert_eq!(reason(Layout::Envelope, &bytes), Reason::Expected("32 segments at most"));
}
