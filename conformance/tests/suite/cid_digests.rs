//! A CID that names SHA-256 has a digest of 32 bytes: every layer that reads a CID refuses any other length.
//! Other hash functions are not judged.

use atproto::commit::Commit;
use atproto::data_model;
use atproto::event::{Decoder, Options};
use atproto::mst::node::Node;
use atproto::plc::Operation;
use atproto::syntax::CidText;
use bumpalo::Bump;
use codec::car::{self, StreamReader};
use codec::cbor::{self, Encoder, ItemCounts, Reader};
use codec::cid::Codec;
use codec::{Cid, CidRef, json};
use kernels::{base32, varint};
use serde::Deserialize;

#[test]
fn a_digest_of_sha_256_that_has_not_32_bytes_is_refused_in_every_layer() {
    for len in [0, 1, 20, 31, 33, 48, 64] {
        let cid = named(SHA2_256, len);
        for (layer, accepts) in LAYERS {
            assert!(!accepts(&cid), "{layer}: {len} bytes");
        }
    }
}

#[test]
fn a_digest_of_32_bytes_is_accepted_in_every_layer() {
    for (layer, accepts) in LAYERS {
        assert!(accepts(&named(SHA2_256, 32)), "{layer}");
    }
}

#[test]
fn another_hash_function_may_have_any_length_where_foreign_cids_are_kept() {
    let sha_512 = named(0x13, 20);
    let accepting = LAYERS.into_iter().filter(|(_, accepts)| accepts(&sha_512));
    let accepting: Vec<&str> = accepting.map(|(layer, _)| layer).collect();
    let foreign = [
        "binary form",
        "start of bytes",
        "text of a record",
        "DAG-CBOR",
        "DAG-CBOR by serde",
        "root of an archive",
        "block of an archive",
        "record of an operation",
        "previous record of an operation",
        "blob of an event",
        "record of a tree",
    ];
    assert_eq!(accepting, foreign);
}

/// The binary form of a CID of DAG-CBOR under a hash function, with a digest of `len` bytes.
fn named(hash_function: u8, len: u8) -> Vec<u8> {
    [&[1, 0x71, hash_function, len], &vec![7; usize::from(len)][..]].concat()
}

type Accepts = fn(&[u8]) -> bool;

/// The layers that read a CID: a name, and whether the layer accepts the CID there.
const LAYERS: [(&str, Accepts); 20] = [
    ("binary form", |cid| CidRef::from_bytes(cid).is_some()),
    ("start of bytes", |cid| CidRef::from_prefix(&[cid, &[0; 64]].concat()).is_some()),
    ("owned form", |cid| Cid::from_bytes(cid).is_some()),
    ("text", |cid| text(cid).parse::<Cid>().is_ok()),
    ("text of a record", |cid| CidText::parse(&text(cid)).is_ok()),
    ("DAG-CBOR", |cid| decoders_agree(&record(cid))),
    ("DAG-CBOR by serde", |cid| cbor::from_slice::<Record>(&record(cid)).is_ok()),
    ("JSON", |cid| json::decode(&json_link(cid), &Bump::new()).is_ok()),
    ("data model", |cid| data_model::check_block(&record(cid), COLLECTION).is_ok()),
    ("root of an archive", |cid| car_readers_agree(&archive(cid, &own_cid()))),
    ("block of an archive", |cid| car_readers_agree(&archive(&own_cid(), cid))),
    ("record of an operation", |cid| is_frame(|links| links.op_cid = cid.to_vec())),
    ("previous record of an operation", |cid| is_frame(|links| links.op_prev = cid.to_vec())),
    ("commit of an event", |cid| is_frame(|links| links.commit = cid.to_vec())),
    ("previous tree of an event", |cid| is_frame(|links| links.prev_data = cid.to_vec())),
    ("blob of an event", |cid| is_frame(|links| links.blob = cid.to_vec())),
    ("tree of a commit", |cid| Commit::parse(&commit(cid, &own_cid())).is_ok()),
    ("previous commit", |cid| Commit::parse(&commit(&own_cid(), cid)).is_ok()),
    ("record of a tree", |cid| Node::parse(&node(&own_cid(), cid)).is_ok()),
    ("did:plc", |cid| Operation::parse(operation(cid).as_bytes()).is_ok()),
];

#[derive(Deserialize)]
#[expect(dead_code, reason = "only the reading is tested")]
struct Record<'a> {
    #[serde(borrow)]
    link: CidRef<'a>,
}

fn text(cid: &[u8]) -> String {
    let mut text = "b".to_owned();
    base32::encode_into(cid, &mut text);
    text
}

/// The item of a link, whatever its CID.
fn link(cid: &[u8]) -> Vec<u8> {
    let mut bytes = Encoder::new();
    bytes.bytes(&[&[0], cid].concat());
    [&[0xd8, 0x2a], &bytes.into_bytes()[..]].concat()
}

/// A map of these entries, whose keys are in canonical order.
fn map(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = Encoder::new();
    out.map(entries.len());
    let mut bytes = out.into_bytes();
    for (key, item) in entries {
        bytes.extend(text_item(key));
        bytes.extend_from_slice(item);
    }
    bytes
}

fn text_item(text: &str) -> Vec<u8> {
    let mut out = Encoder::new();
    out.text(text);
    out.into_bytes()
}

fn array(items: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Encoder::new();
    out.array(items.len());
    [out.into_bytes(), items.concat()].concat()
}

fn own_cid() -> Vec<u8> {
    Cid::of(Codec::DagCbor, BLOCK).as_bytes().to_vec()
}

fn record(cid: &[u8]) -> Vec<u8> {
    map(&[("link", link(cid)), ("$type", text_item(COLLECTION))])
}

fn commit(data: &[u8], prev: &[u8]) -> Vec<u8> {
    let mut sig = Encoder::new();
    sig.bytes(&[1; 64]);
    map(&[
        ("did", text_item(DID)),
        ("rev", text_item("3mptbypluud2a")),
        ("sig", sig.into_bytes()),
        ("data", link(data)),
        ("prev", link(prev)),
        ("version", vec![3]),
    ])
}

fn node(left: &[u8], value: &[u8]) -> Vec<u8> {
    let mut suffix = Encoder::new();
    suffix.bytes(b"app.example.note/self");
    let entry =
        map(&[("k", suffix.into_bytes()), ("p", vec![0]), ("t", vec![NULL]), ("v", link(value))]);
    map(&[("e", array(&[entry])), ("l", link(left))])
}

fn json_link(cid: &[u8]) -> String {
    format!(r#"{{"$link":"{}"}}"#, text(cid))
}

fn operation(prev: &[u8]) -> String {
    let (prev, sig) = (text(prev), "A".repeat(86));
    format!(r#"{{"type":"plc_tombstone","prev":"{prev}","sig":"{sig}"}}"#)
}

fn archive(root: &[u8], name: &[u8]) -> Vec<u8> {
    let header = map(&[("roots", array(&[link(root)])), ("version", vec![1])]);
    [section(&header), section(&[name, BLOCK].concat())].concat()
}

/// `bytes` after their length.
fn section(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::write(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

/// The CIDs of a `#commit`.
struct Links {
    op_cid: Vec<u8>,
    op_prev: Vec<u8>,
    commit: Vec<u8>,
    prev_data: Vec<u8>,
    blob: Vec<u8>,
}

/// Whether a `#commit` can be decoded after `change`.
fn is_frame(change: impl FnOnce(&mut Links)) -> bool {
    let own = own_cid;
    let mut links =
        Links { op_cid: own(), op_prev: own(), commit: own(), prev_data: own(), blob: own() };
    change(&mut links);
    Decoder::new(Options::default()).decode(&frame(&links)).is_ok()
}

fn frame(links: &Links) -> Vec<u8> {
    let mut blocks = Encoder::new();
    blocks.bytes(&archive(&own_cid(), &own_cid()));
    let op = map(&[
        ("cid", link(&links.op_cid)),
        ("path", text_item("app.example.note/self")),
        ("prev", link(&links.op_prev)),
        ("action", text_item("update")),
    ]);
    let payload = map(&[
        ("ops", array(&[op])),
        ("rev", text_item("3mptbypluud2a")),
        ("seq", vec![1]),
        ("repo", text_item(DID)),
        ("time", text_item("2026-07-04T14:38:07.517Z")),
        ("blobs", array(&[link(&links.blob)])),
        ("since", vec![NULL]),
        ("blocks", blocks.into_bytes()),
        ("commit", link(&links.commit)),
        ("prevData", link(&links.prev_data)),
    ]);
    [b"\xa2\x61t\x67#commit\x62op\x01", &payload[..]].concat()
}

fn car_readers_agree(bytes: &[u8]) -> bool {
    // The digests do not match the blocks: only the shape of the CIDs is read.
    let mut options = car::Options::default();
    options.trust_hashes = true;
    let whole = car::read(bytes, &options).is_ok();
    let streamed = StreamReader::new(bytes, &options)
        .is_ok_and(|mut blocks| blocks.all(|block| block.is_ok()));
    assert_eq!(streamed, whole);
    whole
}

fn decoders_agree(bytes: &[u8]) -> bool {
    let accepted = cbor::validate(bytes).is_ok();
    assert_eq!(cbor::decode(bytes, &Bump::new()).is_ok(), accepted);
    assert_eq!(cbor::count(bytes, &mut ItemCounts::default()).is_ok(), accepted);
    assert_eq!(Reader::new(bytes).skip().is_ok(), accepted);
    accepted
}

const SHA2_256: u8 = 0x12;
const NULL: u8 = 0xf6;
const COLLECTION: &str = "app.example.note";
const DID: &str = "did:plc:wq4aajammjtxdomz3e23667t";
const BLOCK: &[u8] = b"\xa1\x61c\x01";
