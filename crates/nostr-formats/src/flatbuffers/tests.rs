use kernels::sha256;

use super::*;
use crate::tests::{decoded, encoded, golden};
use nostr::{OwnedEvent, Reason};

#[test]
fn the_published_event_has_the_published_bytes() {
    let digest = kernels::hex::encode(&sha256::digest(&encoded(Flatbuffers, &golden())));
    assert_eq!(digest, "5812126445005300f55edd4610be5ed7148cec78bbcd0df5acbc72c4725bcb4f");
}

#[test]
fn single_fields_are_those_of_the_event() {
    let event = golden();
    let bytes = encoded(Flatbuffers, &golden());
    let arena = Bump::new();
    let fields = Flatbuffers.fields(&bytes, &arena, &Limits::default()).unwrap();
    assert_eq!((fields.id(), fields.pubkey()), (Ok(event.id), Ok(event.pubkey)));
    assert_eq!((fields.kind(), fields.created_at()), (Ok(event.kind), Ok(event.created_at)));
}

#[test]
fn defaults_are_left_out_and_restored() {
    let event = OwnedEvent { created_at: 0, kind: 0, ..golden() };
    assert_eq!(decoded(Flatbuffers, &encoded(Flatbuffers, &event)), Ok(event));
}

#[test]
fn a_missing_required_field_is_rejected() {
    let bytes = encoded(Flatbuffers, &golden());
    let root = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let back = i32::from_le_bytes(bytes[root..root + 4].try_into().unwrap()) as usize;
    let fields = [(ID, Field::Id), (PUBKEY, Field::Pubkey), (CONTENT, Field::Content)];
    for (slot, field) in fields.into_iter().chain([(SIG, Field::Sig)]) {
        let mut without = bytes.clone();
        let slot = root - back + usize::from(slot);
        without[slot..slot + 2].fill(0);
        assert_eq!(decoded(Flatbuffers, &without), Err(Reason::Missing(field)));
    }
}

#[test]
fn distances_out_of_the_buffer_or_table_are_rejected() {
    let bytes = encoded(Flatbuffers, &golden());
    let root = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let with = |offset: usize, value: u32| {
        let mut bytes = bytes.clone();
        bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        decoded(Flatbuffers, &bytes)
    };
    assert_eq!(with(0, u32::MAX), Err(Reason::Truncated));
    assert_eq!(with(root, u32::MAX), Err(Reason::Expected("the lengths of a table")));
    assert_eq!(with(root, i32::MIN as u32), Err(Reason::Expected("a vtable in the buffer")));
    assert_eq!(with(root, i32::MAX as u32), Err(Reason::Expected("a vtable in the buffer")));
    let slots = root - 0x12;
    assert_eq!(with(slots + 4, 0xffff_ffff), Err(Reason::Expected("a field in its table")));
    assert_eq!(with(root + 8, u32::MAX), Err(Reason::Truncated));
}

#[test]
fn a_list_that_is_shared_too_often_is_rejected() {
    let tags = [vec![vec!["x".to_owned(); 1000]], vec![Vec::new(); 100]].concat();
    let mut bytes = encoded(Flatbuffers, &OwnedEvent { tags, ..golden() });
    let mut walk = Walk::new(&bytes).unwrap();
    let root = walk.root().unwrap();
    let list = walk.tables(root, TAGS).unwrap().unwrap();
    let (start, long) = (list.offset(), walk.item(list, 0).unwrap().offset());
    for at in 1..100 {
        let here = start + 4 * at;
        bytes[here..here + 4].copy_from_slice(&((long - here) as u32).to_le_bytes());
    }
    assert_eq!(
        decoded(Flatbuffers, &bytes),
        Err(Reason::Expected("objects that share fewer bytes"))
    );
}

#[test]
fn bytes_after_the_last_object_are_rejected() {
    for tail in [&[0; 4][..], &[1, 0, 0, 0], &[0; 8]] {
        let bytes = [&encoded(Flatbuffers, &golden()), tail].concat();
        assert_eq!(decoded(Flatbuffers, &bytes), Err(Reason::TrailingBytes));
    }
}
