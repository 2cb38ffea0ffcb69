//! DAG-CBOR items that break the rule of one check each, and frames and blocks that hold them.

use atproto::corpus;
use codec::Cid;
use codec::cid::Codec;

/// Items that every peer must accept, so that a rejection of another has one reason only.
pub(super) fn good() -> Vec<Vec<u8>> {
    vec![
        b"\xa0".into(),
        b"\xa2\x61b\x01\x62aa\x02".into(),
        b"\x89\x17\x18\x18\x19\x01\x00\x1a\x00\x01\x00\x00\x20\x38\x18\xf4\xf5\xf6".into(),
        b"\x82\x62\xc3\xa9\x42\xff\x00".into(),
        nested(20),
        link(linked(Codec::DagCbor).as_bytes()),
        link(linked(Codec::Raw).as_bytes()),
    ]
}

/// Items that break the rule of a check, by its name.
pub(super) fn bad() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let cid = linked(Codec::DagCbor);
    let cid = cid.as_bytes();
    vec![
        ("key-order", vec![b"\xa2\x61b\x01\x61a\x02".into(), b"\xa2\x62aa\x01\x61b\x02".into()]),
        ("duplicate-keys", vec![b"\xa2\x61a\x01\x61a\x02".into(), b"\xa2\x60\x01\x60\x02".into()]),
        ("minimal-heads", wide_heads(cid)),
        ("utf8", vec![b"\x61\xff".into(), b"\x63\xed\xa0\x80".into(), b"\xa1\x61\xff\x00".into()]),
        (
            "indefinite-lengths",
            vec![
                b"\x9f\x00\xff".into(),
                b"\xbf\x61a\x00\xff".into(),
                b"\x7f\x61a\xff".into(),
                b"\x5f\x41\x00\xff".into(),
                b"\xbf\x7f\x61a\xff\x00\xff".into(),
            ],
        ),
        (
            "float-canonical",
            vec![
                b"\xf9\x3c\x00".into(),
                b"\xfa\x3f\x80\x00\x00".into(),
                float(f64::NAN),
                float(f64::INFINITY),
                float(f64::NEG_INFINITY),
                float(-0.0),
            ],
        ),
        ("only-tag-42", vec![b"\xc0\x61a".into(), b"\xc1\x00".into(), b"\xd8\x2b\x41\x00".into()]),
        ("link-shape", odd_links(cid)),
        ("depth-bound", vec![nested(100_000)]),
    ]
}

/// Bytes after the item of a block.
pub(super) const TRAILING: [&[u8]; 2] = [b"\x00", b"\xa0"];

fn wide_heads(cid: &[u8]) -> Vec<Vec<u8>> {
    vec![
        b"\x18\x01".into(),
        b"\x19\x00\x18".into(),
        b"\x1a\x00\x00\x01\x00".into(),
        b"\x1b\x00\x00\x00\x00\x00\x01\x00\x00".into(),
        b"\x38\x01".into(),
        b"\x58\x01\x00".into(),
        b"\x78\x01a".into(),
        b"\x98\x01\x00".into(),
        b"\xb8\x01\x61a\x00".into(),
        b"\xa1\x78\x01a\x00".into(),
        [b"\xd9\x00\x2a".as_slice(), &link(cid)[2..]].concat(),
    ]
}

fn odd_links(cid: &[u8]) -> Vec<Vec<u8>> {
    vec![
        b"\xd8\x2a\x40".into(),
        b"\xd8\x2a\x41\x00".into(),
        b"\xd8\x2a\x61a".into(),
        tagged(cid),
        link(&cid[..35]),
        link(&[cid, b"\x00"].concat()),
        link(&[b"\x02", &cid[1..]].concat()),
    ]
}

/// A block of a [`Frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Commit,
    Node,
    Record,
}

/// A `#commit` that creates one record: a commit object, the root of its tree, and the record, with valid hashes. The
/// signature is made up, since decoding does not verify it.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame<'a> {
    /// Blocks with another entry in their map, and the value of that entry.
    pub(super) entries: Option<(Block, &'a [u8])>,
    /// A block with bytes after its item.
    pub(super) after: Option<(Block, &'a [u8])>,
    /// A block with a wrong digest in its CID.
    pub(super) wrong_digest: Option<Block>,
}

impl Frame<'_> {
    /// A corpus of this frame alone.
    pub(super) fn corpus(&self) -> Vec<u8> {
        corpus::write([&self.encode()[..]])
    }

    fn encode(&self) -> Vec<u8> {
        let record = self.block(Block::Record, &[("$type", text("app.bsky.feed.post"))]);
        let entry = map(&[
            ("k", bytes(b"app.bsky.feed.post/3mpk7jqic2222")),
            ("p", vec![0]),
            ("t", vec![0xf6]),
            ("v", link(cid_of(&record).as_bytes())),
        ]);
        let node =
            self.block(Block::Node, &[("e", [head(4, 1), entry].concat()), ("l", vec![0xf6])]);
        let commit = self.block(
            Block::Commit,
            &[
                ("did", text(DID)),
                ("rev", text("3mpk7jqic2222")),
                ("sig", bytes(&[7; 64])),
                ("data", link(cid_of(&node).as_bytes())),
                ("prev", vec![0xf6]),
                ("version", vec![3]),
            ],
        );
        let root = cid_of(&commit);
        let blocks = [(Block::Commit, commit), (Block::Node, node), (Block::Record, record)];
        event(&root, &self.archive(&root, &blocks))
    }

    /// The map of a block, altered if it is the chosen one.
    fn block(&self, block: Block, entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let added = self.entries.filter(|(chosen, _)| *chosen == block);
        let added = added.map(|(_, item)| ("x", item.to_vec()));
        let mut entries: Vec<_> = entries.iter().cloned().chain(added).collect();
        entries.sort_by_key(|(key, _)| (key.len(), key.to_owned()));
        let after = self.after.filter(|(chosen, _)| *chosen == block);
        [map(&entries).as_slice(), after.map_or(&[], |(_, bytes)| bytes)].concat()
    }

    fn archive(&self, root: &Cid, blocks: &[(Block, Vec<u8>)]) -> Vec<u8> {
        let roots = [head(4, 1), link(root.as_bytes())].concat();
        let mut car = delimited(&[&map(&[("roots", roots), ("version", vec![1])])]);
        for (block, data) in blocks {
            let mut cid = cid_of(data).as_bytes().to_vec();
            if self.wrong_digest == Some(*block) {
                cid[35] ^= 1;
            }
            car.extend(delimited(&[&cid, data]));
        }
        car
    }
}

fn event(commit: &Cid, archive: &[u8]) -> Vec<u8> {
    let header = map(&[("t", text("#commit")), ("op", vec![1])]);
    let payload = map(&[
        ("ops", head(4, 0)),
        ("rev", text("3mpk7jqic2222")),
        ("seq", vec![1]),
        ("repo", text(DID)),
        ("time", text("2026-01-01T00:00:00.000Z")),
        ("blobs", head(4, 0)),
        ("since", text("3l2ywhzsia22a")),
        ("blocks", bytes(archive)),
        ("commit", link(commit.as_bytes())),
        ("rebase", vec![0xf4]),
        ("tooBig", vec![0xf4]),
        ("prevData", link(commit.as_bytes())),
    ]);
    [header, payload].concat()
}

const DID: &str = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa";

fn cid_of(block: &[u8]) -> Cid {
    Cid::of(Codec::DagCbor, block)
}

fn linked(codec: Codec) -> Cid {
    Cid::of(codec, b"linked")
}

fn link(cid: &[u8]) -> Vec<u8> {
    tagged(&[b"\x00", cid].concat())
}

fn tagged(content: &[u8]) -> Vec<u8> {
    [vec![0xd8, 42], bytes(content)].concat()
}

fn float(value: f64) -> Vec<u8> {
    [[0xfb].as_slice(), &value.to_be_bytes()].concat()
}

fn nested(depth: usize) -> Vec<u8> {
    [vec![0x81; depth], vec![0]].concat()
}

fn map(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let entry = |(key, value): &(&str, Vec<u8>)| [text(key), value.clone()].concat();
    [head(5, entries.len()), entries.iter().flat_map(entry).collect()].concat()
}

fn text(text: &str) -> Vec<u8> {
    [head(3, text.len()).as_slice(), text.as_bytes()].concat()
}

fn bytes(bytes: &[u8]) -> Vec<u8> {
    [head(2, bytes.len()).as_slice(), bytes].concat()
}

fn head(major: u8, argument: usize) -> Vec<u8> {
    let [.., b3, b2, b1, b0] = argument.to_be_bytes();
    match argument {
        0..24 => vec![major << 5 | b0],
        24..0x100 => vec![major << 5 | 24, b0],
        0x100..0x1_0000 => vec![major << 5 | 25, b1, b0],
        _ => vec![major << 5 | 26, b3, b2, b1, b0],
    }
}

/// The parts after their length together, as an archive stores a header or a block.
fn delimited(parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = Vec::new();
    let mut length = content.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(content);
    out
}
