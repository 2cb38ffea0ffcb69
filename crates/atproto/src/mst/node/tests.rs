use codec::CidRef;
use codec::cbor::{Encoder, Reason};
use codec::cid::Codec;
use proptest::prelude::*;

use super::*;
use crate::mst::{Limit, MAX_KEY_BYTES, MAX_NODE_ENTRIES};

/// An entry with fields that need not be valid.
#[derive(Clone, Debug)]
struct Raw {
    suffix: Vec<u8>,
    prefix_len: i64,
    right: Option<Vec<u8>>,
    value: Vec<u8>,
}

fn raw(prefix_len: i64, suffix: &[u8]) -> Raw {
    Raw { suffix: suffix.to_vec(), prefix_len, right: None, value: cid(0) }
}

fn cid(seed: u8) -> Vec<u8> {
    Cid::of(Codec::DagCbor, &[seed]).as_bytes().to_vec()
}

fn link(encoder: &mut Encoder, bytes: Option<&[u8]>) {
    encoder.link_or_null(bytes.map(|bytes| CidRef::from_bytes(bytes).expect("well formed")));
}

/// The block, written by the general encoder, which does not know nodes.
fn block(entries: &[Raw], left: Option<&[u8]>) -> Vec<u8> {
    let mut out = Encoder::new();
    out.map(2).text("e").array(entries.len());
    for entry in entries {
        out.map(4).text("k").bytes(&entry.suffix).text("p").integer(entry.prefix_len).text("t");
        link(&mut out, entry.right.as_deref());
        out.text("v");
        link(&mut out, Some(&entry.value));
    }
    out.text("l");
    link(&mut out, left);
    out.into_bytes()
}

fn fault_of(entries: &[Raw]) -> NodeFault {
    Node::parse(&block(entries, None)).unwrap_err().fault
}

fn keys_of(node: &Node<'_>) -> Vec<Vec<u8>> {
    let mut key = KeyBuffer::new();
    node.entries().map(|entry| key.advance(&entry).to_vec()).collect()
}

#[test]
fn the_example_of_the_specification_is_one_record() {
    let block = b"\xa2\x61e\x81\xa4\x61k\x58\x20com.example.record/3jqfcqzm3fo2j\x61p\x00\x61t\xf6\
        \x61v\xd8\x2a\x58\x25\x00\x01\x71\x12\x20\x9d\x15\x6b\xc3\xf3\xa5\x20\x06\x62\x52\xc7\x08\
        \xa9\x36\x1f\xd3\xd0\x89\x22\x38\x42\x50\x0e\x37\x13\xd4\x04\xfd\xcc\xb3\x3c\xef\x61l\xf6";
    let node = Node::parse(block).unwrap();
    let entry = node.entries().next().unwrap();
    assert_eq!((node.len(), node.left(), entry.right), (1, None, None));
    assert_eq!(entry.suffix, b"com.example.record/3jqfcqzm3fo2j");
    assert_eq!(
        entry.value.to_string(),
        "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454"
    );
    assert_eq!(
        Cid::of(Codec::DagCbor, block).to_string(),
        "bafyreibj4lsc3aqnrvphp5xmrnfoorvru4wynt6lwidqbm2623a6tatzdu"
    );
}

#[test]
fn a_prefix_that_is_not_whole_is_rejected_at_its_offset() {
    let short = [raw(0, b"abc"), raw(1, b"bd")];
    let beyond = [raw(0, b"abc"), raw(4, b"d")];
    let first = [raw(1, b"abc")];
    for (entries, offset) in [(&short[..], 4 + 56 + 8), (&beyond, 4 + 56 + 7), (&first, 4 + 9)] {
        let error = Node::parse(&block(entries, None)).unwrap_err();
        assert_eq!(error, NodeError { offset, fault: NodeFault::Prefix });
    }
    for absurd in [500, 1 << 40, i64::MAX] {
        assert_eq!(fault_of(&[raw(0, b"abc"), raw(absurd, b"d")]), NodeFault::Prefix, "{absurd}");
    }
    for negative in [-1, -5, i64::MIN] {
        let fault = fault_of(&[raw(0, b"abc"), raw(negative, b"d")]);
        assert_eq!(fault, NodeFault::NegativePrefix, "{negative}");
        assert_eq!(fault.to_string(), "the length of a prefix must not be negative");
    }
    // All of the previous key is a whole prefix.
    assert!(Node::parse(&block(&[raw(0, b"abc"), raw(3, b"d")], None)).is_ok());
}

#[test]
fn the_fault_of_an_entry_is_at_the_field_that_breaks_the_rule_whatever_the_length_of_its_key() {
    let first = raw(0, b"bb");
    let entry_at = block(std::slice::from_ref(&first), None).len() - 3;
    for len in [1, 23, 24, 25, 255, 256, 300] {
        let prefix_at = 3 + Encoder::new().bytes(&vec![0; len]).as_bytes().len() + 2;
        let cases = [
            (raw(0, &vec![b'b'; len]), NodeFault::Prefix, prefix_at),
            (raw(-1, &vec![b'c'; len]), NodeFault::NegativePrefix, prefix_at),
            (raw(0, &vec![b'a'; len]), NodeFault::Order, 3),
        ];
        for (second, fault, at) in cases {
            let error = Node::parse(&block(&[first.clone(), second], None)).unwrap_err();
            assert_eq!(error, NodeError { offset: entry_at + at, fault }, "{len} bytes");
        }
    }
}

#[test]
fn a_key_in_order_that_is_too_long_exceeds_the_limit() {
    let too_long = vec![b'b'; MAX_KEY_BYTES + 1];
    let fault = fault_of(&[raw(0, b"a"), raw(0, &too_long)]);
    assert_eq!((fault, fault.code()), (NodeFault::Limit(Limit::KeyBytes), "tree/limit"));
}

#[test]
fn keys_that_do_not_ascend_are_rejected() {
    assert_eq!(fault_of(&[raw(0, b"b"), raw(0, b"a")]), NodeFault::Order);
    assert_eq!(fault_of(&[raw(0, b"ab"), raw(1, b"a")]), NodeFault::Order);
    assert_eq!(fault_of(&[raw(0, b"a"), raw(1, b"")]), NodeFault::EmptyKey);
    let empty = fault_of(&[raw(0, b"")]);
    assert_eq!(empty, NodeFault::EmptyKey);
    let message = "`k` is empty: an entry must add at least one byte to its prefix";
    assert_eq!(empty.to_string(), message);
    // The prefix refers to the previous key, not to the one before it.
    assert_eq!(fault_of(&[raw(0, b"abc"), raw(1, b"d"), raw(3, b"e")]), NodeFault::Prefix);
    assert_eq!(fault_of(&[raw(0, b"abd"), raw(1, b"e"), raw(1, b"c")]), NodeFault::Order);
}

#[test]
fn a_child_must_be_dag_cbor_under_sha_256_and_a_record_need_not() {
    let raw_block = Cid::of(Codec::Raw, b"").as_bytes().to_vec();
    let identity = vec![0x01, 0x71, 0x00, 0x01, 7];
    for foreign in [raw_block, identity] {
        let mut entry = raw(0, b"a");
        entry.value = foreign.clone();
        let bytes = block(&[entry.clone()], None);
        let node = Node::parse(&bytes).unwrap();
        assert_eq!(node.entries().next().unwrap().value.as_bytes(), foreign);
        let left = Node::parse(&block(&[], Some(&foreign))).unwrap_err();
        assert_eq!(left, NodeError { offset: 6, fault: NodeFault::Link });
        entry.right = Some(foreign);
        assert_eq!(fault_of(&[entry]), NodeFault::Link);
    }
}

#[test]
fn every_field_is_required_and_no_other_is_allowed() {
    let empty_node = b"\xa2\x61e\x80\x61l\xf6";
    assert!(Node::parse(empty_node).unwrap().is_empty());
    let shapes: [&[u8]; 8] = [
        b"\xa1\x61e\x80",
        b"\xa1\x61l\xf6",
        b"\xa0",
        b"\x80",
        b"\xa3\x61e\x80\x61l\xf6\x61m\xf6",
        b"\xa2\x61d\x80\x61l\xf6",
        b"\xa2\x61e\xf6\x61l\xf6",
        b"\xa2\x61e\x80\x61l\x00",
    ];
    for shape in shapes {
        assert_eq!(Node::parse(shape).unwrap_err().fault, NodeFault::Shape, "{shape:x?}");
    }
    let whole = block(&[raw(0, b"a")], None);
    let entry = &whole[4..whole.len() - 3];
    // Every field of the entry left out in turn: k is 4 bytes long, p and t 3.
    let k = &entry[1..5];
    let p = &entry[5..8];
    let t = &entry[8..11];
    let v = &entry[11..];
    for fields in [[p, t, v], [k, t, v], [k, p, v], [k, p, t]] {
        let node = [b"\xa2\x61e\x81\xa3", &fields.concat()[..], b"\x61l\xf6"].concat();
        assert_eq!(Node::parse(&node).unwrap_err().fault, NodeFault::Shape);
    }
}

#[test]
fn a_block_that_is_not_canonical_is_rejected_as_such_before_other_faults() {
    let node = block(&[raw(0, b"b"), raw(0, b"a")], None);
    let mut longer = node.clone();
    longer.push(0);
    let error = Node::parse(&longer).unwrap_err();
    let fault = NodeFault::Cbor(Reason::TrailingBytes);
    assert_eq!(error, NodeError { offset: node.len(), fault });
    let swapped = b"\xa2\x61l\xf6\x61e\x80";
    assert_eq!(Node::parse(swapped).unwrap_err().fault, NodeFault::Cbor(Reason::KeyOrder));
    let long_count = b"\xa2\x61e\x98\x00\x61l\xf6";
    assert_eq!(Node::parse(long_count).unwrap_err().fault, NodeFault::Cbor(Reason::NotMinimal));
    let absurd_count = b"\xa2\x61e\x9b\xff\xff\xff\xff\xff\xff\xff\xff\x61l\xf6";
    let fault = NodeFault::Cbor(Reason::LengthBeyondInput);
    assert_eq!(Node::parse(absurd_count).unwrap_err().fault, fault);
}

#[test]
fn exceeded_limits_are_named() {
    let key = vec![b'a'; MAX_KEY_BYTES];
    assert!(Node::parse(&block(&[raw(0, &key)], None)).is_ok());
    let over = [raw(0, &key), raw(MAX_KEY_BYTES as i64, b"a")];
    assert_eq!(fault_of(&over), NodeFault::Limit(Limit::KeyBytes));
    let many: Vec<Raw> = (0..=MAX_NODE_ENTRIES)
        .map(|n| raw(0, &[(n >> 8) as u8, n as u8]))
        .scan(Vec::new(), |before: &mut Vec<u8>, mut entry| {
            let shared = before.iter().zip(&entry.suffix).take_while(|(a, b)| a == b).count();
            *before = std::mem::replace(&mut entry.suffix, before[..0].to_vec());
            Some(raw(shared as i64, &before[shared..]))
        })
        .collect();
    assert_eq!(Node::parse(&block(&many[1..], None)).unwrap_err().fault, NodeFault::Prefix);
    assert!(Node::parse(&block(&many[..MAX_NODE_ENTRIES], None)).is_ok());
    assert_eq!(fault_of(&many), NodeFault::Limit(Limit::NodeEntries));
}

#[test]
fn every_truncation_and_every_flipped_bit_is_rejected_or_read_without_a_panic() {
    let mut entries = vec![raw(0, &[b'k'; 40]), raw(39, b"l"), raw(1, &[b'z'; 300])];
    entries[1].right = Some(cid(1));
    let whole = block(&entries, Some(&cid(2)));
    assert_eq!(Node::parse(&whole).unwrap().len(), 3);
    for cut in 0..whole.len() {
        assert!(Node::parse(&whole[..cut]).is_err(), "cut at {cut}");
    }
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(node) = Node::parse(&flipped) {
            assert_eq!(written(&node), flipped, "what is read is written back");
        }
    }
}

fn written(node: &Node<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, node.len());
    for Entry { prefix_len, suffix, value, right } in node.entries() {
        writer.entry(prefix_len, suffix, value, right.as_ref());
    }
    writer.finish(node.left().as_ref());
    out
}

fn any_link() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => any::<u8>().prop_map(cid), 1 => Just(vec![0x01, 0x55, 0x00, 0x02, 1, 2])]
}

proptest! {
    #[test]
    fn a_node_is_read_as_the_general_encoder_wrote_it(
        records in proptest::collection::btree_map(
            prop_oneof!["[ab/]{1,6}", "a{20,30}[ab]{1,3}", "b{250,260}"],
            (any_link(), proptest::option::of(any::<u8>().prop_map(cid))),
            0..30,
        ),
        left in proptest::option::of(any::<u8>().prop_map(cid)),
    ) {
        let mut before: &[u8] = b"";
        let mut entries = Vec::new();
        for (key, (value, right)) in &records {
            let key = key.as_bytes();
            let shared = before.iter().zip(key).take_while(|(a, b)| a == b).count();
            let suffix = key[shared..].to_vec();
            let (value, right) = (value.clone(), right.clone());
            entries.push(Raw { suffix, prefix_len: shared as i64, right, value });
            before = key;
        }
        let bytes = block(&entries, left.as_deref());
        let node = Node::parse(&bytes).unwrap();
        prop_assert!(keys_of(&node).iter().eq(records.keys().map(|key| key.as_bytes())));
        for (entry, raw) in node.entries().zip(&entries) {
            prop_assert_eq!(entry.value.as_bytes(), &raw.value[..]);
            prop_assert_eq!(entry.right.map(|cid| cid.as_bytes().to_vec()), raw.right.clone());
        }
        prop_assert_eq!(node.left().map(|cid| cid.as_bytes().to_vec()), left);
        prop_assert_eq!(written(&node), bytes);
    }

    #[test]
    fn the_usual_shape_is_parsed_as_by_its_fields(
        suffix in proptest::collection::vec(any::<u8>(), 0..300),
        prefix_len in 0..300i64,
        right in proptest::option::of(any::<u8>().prop_map(cid)),
        value in any_link(),
        flip in proptest::option::of((0..600usize, 0..8u8)),
    ) {
        let mut bytes = block(&[Raw { suffix, prefix_len, right, value }], None).split_off(4);
        if let Some((at, bit)) = flip {
            let at = at % bytes.len();
            bytes[at] ^= 1u8 << bit;
        }
        if let Some(usual) = crate::node_shape::usual_entry(&bytes) {
            prop_assert_eq!(Ok(usual), scan::any_entry(bytes.len(), &bytes));
        }
    }
}
