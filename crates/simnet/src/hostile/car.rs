//! What can be wrong with an archive?

use codec::Cid;
use codec::cid::Codec;

use super::case::{Case, Exhibit, Layer, Rule};
use super::forge::archive::{Archive, Section, delimited};
use super::forge::item::{Item, map};
use super::healthy::Healthy;
use super::scene::Scene;

pub(super) fn cases(scene: &Scene) -> Vec<Case> {
    let healthy = Healthy::of(scene.account());
    let parts = [headers, roots, lengths, hashes, cuts, gaps, liberties];
    parts.into_iter().flat_map(|part| part(scene, &healthy)).collect()
}

fn refused(
    scene: &Scene,
    name: &str,
    code: &'static str,
    sentence: &'static str,
    bytes: Vec<u8>,
) -> Case {
    let rule = Rule { section: CAR, sentence };
    Exhibit::car(scene.account(), name, bytes).refused(code, rule)
}

fn headers(scene: &Scene, healthy: &Healthy) -> Vec<Case> {
    let with_header =
        |change: &dyn Fn(&mut Item)| healthy.with(|archive| change(&mut archive.header)).to_bytes();
    let with_header_bytes = |header: &[u8]| {
        let mut parts = healthy.archive.parts();
        parts[0] = delimited(header);
        parts.concat()
    };
    let version = |number| with_header(&|header| header.set("version", Item::Int(number)));
    let header = healthy.archive.header.encode();
    let roots = Item::Array(vec![Item::link(&healthy.commit())]);
    let singular = map([("root", roots.clone()), ("version", Item::Int(1))]).encode();
    let twice =
        map([("roots", roots.clone()), ("roots", roots.clone()), ("version", Item::Int(1))]);
    let unsorted = map([("version", Item::Int(1)), ("roots", roots)]).encode();
    let wide = with_header(&|header| header.set("version", Item::wide(1)));
    let refused = |name: &str, code, sentence, bytes| refused(scene, name, code, sentence, bytes);
    vec![
        refused("version-2", "car/version", VERSION_IS_1, version(2)),
        refused("version-0", "car/version", VERSION_IS_1, version(0)),
        refused(
            "version-absent",
            "car/header",
            TWO_FIELDS,
            with_header(&|header| header.remove("version")),
        ),
        refused(
            "roots-absent",
            "car/header",
            TWO_FIELDS,
            with_header(&|header| header.remove("roots")),
        ),
        refused("root-for-roots", "car/header", TWO_FIELDS, with_header_bytes(&singular)),
        refused(
            "roots-a-map",
            "car/header",
            TWO_FIELDS,
            with_header(&|header| header.set("roots", map([]))),
        ),
        refused("roots-twice", "car/header", CANONICAL, with_header_bytes(&twice.encode())),
        refused("header-unsorted", "car/header", CANONICAL, with_header_bytes(&unsorted)),
        refused("header-wide-version", "car/header", CANONICAL, wide),
        refused(
            "header-trailing-byte",
            "car/header",
            CANONICAL,
            with_header_bytes(&[&header[..], &[0]].concat()),
        ),
        refused("header-empty", "car/header", TWO_FIELDS, with_header_bytes(&[])),
        refused("header-too-long", "car/truncated", WHOLE, vec![0x3b, 0xa2]),
        refused("header-of-2-to-62", "car/limit", WHOLE, [&[0x80; 8], &b"\x40"[..]].concat()),
        refused("empty-file", "car/truncated", WHOLE, Vec::new()),
    ]
}

fn roots(scene: &Scene, healthy: &Healthy) -> Vec<Case> {
    let rooted_at = |root: &Cid| healthy.with(|archive| archive.set_root(root)).to_bytes();
    let none = healthy.with(|archive| archive.header.get("roots").items().clear()).to_bytes();
    let raw = Item::Link([&[1, 0x55], &healthy.commit().as_bytes()[2..]].concat());
    let raw = healthy.with(|archive| *archive.header.get("roots").at(0) = raw).to_bytes();
    let nobody = Cid::of(Codec::DagCbor, b"nobody has this block");
    let refused = |name: &str, code, bytes| refused(scene, name, code, ROOT_IS_COMMIT, bytes);
    vec![
        refused("no-roots", "car/roots", none),
        refused("root-of-raw-codec", "car/roots", raw),
        refused("root-nobody-has", "commit/missing-block", rooted_at(&nobody)),
        refused("root-a-node", "commit/missing", rooted_at(&healthy.root())),
        refused("root-a-record", "commit/missing", rooted_at(&healthy.records[3])),
    ]
}

fn lengths(scene: &Scene, healthy: &Healthy) -> Vec<Case> {
    // Behind the commit and the root.
    let with_third = |bytes: &[u8]| {
        let mut parts = healthy.archive.parts();
        parts.insert(3, bytes.to_vec());
        parts.concat()
    };
    // The commit once more: its length takes two bytes.
    let block = healthy.archive.sections[0].to_bytes();
    let padded = [&[block[0] | 0x80, block[1] | 0x80, 0], &block[2..]].concat();
    let ten = [&[0xff; 9], &[0x01][..]].concat();
    let mut at_the_end = healthy.archive.to_bytes();
    at_the_end.push(0);
    let refused = |name: &str, code, sentence, bytes| refused(scene, name, code, sentence, bytes);
    vec![
        refused("zero-length", "car/cid", AT_LEAST_A_CID, with_third(&[0])),
        refused("zero-at-the-end", "car/cid", AT_LEAST_A_CID, at_the_end),
        refused("length-35", "car/cid", AT_LEAST_A_CID, with_third(&delimited(&block[2..37]))),
        refused("padded-varint", "car/varint", MINIMAL_VARINT, with_third(&padded)),
        refused("ten-byte-varint", "car/varint", MINIMAL_VARINT, with_third(&ten)),
        refused(
            "length-of-2-to-62",
            "car/limit",
            WHOLE,
            with_third(&[&[0x80; 8], &b"\x40"[..]].concat()),
        ),
    ]
}

fn hashes(scene: &Scene, healthy: &Healthy) -> Vec<Case> {
    let flipped = |cid: &Cid| {
        let flip =
            |archive: &mut Archive| *archive.section(cid).data.last_mut().expect("bytes") ^= 1;
        healthy.with(flip).to_bytes()
    };
    let twice = healthy.with(|archive| {
        let mut other = archive.section(&healthy.records[5]).clone();
        other.data = archive.section(&healthy.records[6]).data.clone();
        archive.sections.push(other);
    });
    let refused = |name: &str, bytes| refused(scene, name, "car/hash", HASHED, bytes);
    vec![
        refused("flipped-record", flipped(&healthy.records[17])),
        refused("flipped-node", flipped(&healthy.leading_node())),
        refused("flipped-root", flipped(&healthy.root())),
        refused("flipped-commit", flipped(&healthy.commit())),
        refused("same-name-other-data", twice.to_bytes()),
    ]
}

/// A file that ends early; between two blocks only the tree can tell.
fn cuts(scene: &Scene, healthy: &Healthy) -> Vec<Case> {
    let parts = healthy.archive.parts();
    let kept = |sections: usize| parts[..=sections].concat();
    let inside = |sections: usize, bytes: usize| {
        [kept(sections), parts[sections + 1][..bytes].to_vec()].concat()
    };
    let (first_record, blocks) = (healthy.place(&healthy.records[0]), parts.len() - 1);
    let before_a_node = healthy.place(&healthy.nodes[healthy.nodes.len() / 2]);
    let before_a_record = healthy.place(&healthy.records[healthy.records.len() / 2]);
    let complete = |name: &str, code, bytes| refused(scene, name, code, COMPLETE, bytes);
    let whole = |name: &str, bytes| refused(scene, name, "car/truncated", WHOLE, bytes);
    vec![
        complete("cut-behind-the-header", "commit/missing-block", kept(0)),
        complete("cut-behind-the-commit", "tree/missing-node", kept(1)),
        complete("cut-behind-the-root", "tree/missing-node", kept(2)),
        complete("cut-before-the-first-record", "record/missing", kept(first_record)),
        complete("cut-before-a-node", "tree/missing-node", kept(before_a_node)),
        complete("cut-before-a-record", "record/missing", kept(before_a_record)),
        complete("cut-before-the-last-record", "record/missing", kept(blocks - 1)),
        whole("cut-in-a-length", inside(before_a_record, 1)),
        whole("cut-in-a-cid", inside(before_a_record, 20)),
        whole("cut-in-a-block", inside(before_a_record, 100)),
        whole("cut-before-the-last-byte", inside(blocks - 1, parts[blocks].len() - 1)),
    ]
}

fn gaps(scene: &Scene, healthy: &Healthy) -> Vec<Case> {
    let without = |cid: &Cid| healthy.with(|archive| archive.remove(cid)).to_bytes();
    let last_node = healthy.nodes.last().expect("a root at least");
    let refused = |name: &str, code, bytes| refused(scene, name, code, COMPLETE, bytes);
    let only_records = healthy.with(|archive| {
        healthy.nodes.iter().for_each(|node| archive.remove(node));
    });
    let only_nodes = healthy.with(|archive| {
        healthy.records.iter().for_each(|record| archive.remove(record));
    });
    vec![
        refused("without-the-commit", "commit/missing-block", without(&healthy.commit())),
        refused("without-the-root", "tree/missing-node", without(&healthy.root())),
        refused("without-a-leading-node", "tree/missing-node", without(&healthy.leading_node())),
        refused("without-the-last-node", "tree/missing-node", without(last_node)),
        refused("without-the-first-record", "record/missing", without(&healthy.records[0])),
        refused("without-a-record", "record/missing", without(&healthy.records[30])),
        refused("without-the-nodes", "tree/missing-node", only_records.to_bytes()),
        refused("without-the-records", "record/missing", only_nodes.to_bytes()),
    ]
}

/// What a reader has to put up with.
fn liberties(scene: &Scene, healthy: &Healthy) -> Vec<Case> {
    let accepted = |name: &str, sentence, archive: Archive| {
        let rule = Rule { section: CAR, sentence };
        Exhibit::repo(scene.account(), name, &archive).accepted(Layer::Car, rule)
    };
    let twice = healthy.with(|archive| archive.sections.extend(archive.sections.clone()));
    let one_twice = healthy.with(|archive| {
        let record = archive.section(&healthy.records[9]).clone();
        archive.sections.insert(1, record);
    });
    let shuffled = healthy.with(|archive| scene.random("archive").shuffle(&mut archive.sections));
    let extra = healthy.with(|archive| {
        archive.sections.insert(1, Section::of(b"\xa1\x61x\x01".to_vec()));
        archive.sections.push(foreign_section(b"of no account"));
    });
    let raw = healthy.with(|archive| archive.sections.push(raw_section(b"an image")));
    let two_roots = healthy.with(|archive| {
        archive.header.get("roots").items().push(Item::link(&healthy.root()));
    });
    vec![
        accepted("every-block-twice", DUPLICATES, twice),
        accepted("a-block-twice", DUPLICATES, one_twice),
        accepted("shuffled", ANY_ORDER, shuffled),
        accepted("commit-last", ANY_ORDER, healthy.with(|archive| archive.sections.rotate_left(1))),
        accepted("backwards", ANY_ORDER, healthy.with(|archive| archive.sections.reverse())),
        accepted("extra-blocks", EXTRAS, extra),
        accepted("extra-raw-block", EXTRAS, raw),
        accepted("two-roots", MORE_ROOTS, two_roots),
    ]
}

/// A block under a name of version 0, as other applications of the format have.
fn foreign_section(data: &[u8]) -> Section {
    let name = Cid::of(Codec::Raw, data);
    Section { cid: [&[0x12, 0x20], &name.digest()[..]].concat(), data: data.to_vec() }
}

/// A block of bytes that are no DAG-CBOR.
fn raw_section(data: &[u8]) -> Section {
    Section { cid: Cid::of(Codec::Raw, data).as_bytes().to_vec(), data: data.to_vec() }
}

const CAR: &str = "repository: CAR file serialization";
const VERSION_IS_1: &str = "the version of the format is 1";
const TWO_FIELDS: &str = "the header is a map of roots, an array of links, and version";
const CANONICAL: &str = "the header is one item of canonical DAG-CBOR";
const WHOLE: &str = "every part is as long as its length says";
const ROOT_IS_COMMIT: &str = "the first root is the commit";
const AT_LEAST_A_CID: &str = "a block is its CID and its data, so it has 36 bytes at least";
const MINIMAL_VARINT: &str = "a length is an unsigned varint, minimal and of nine bytes at most";
const HASHED: &str = "a CID is the SHA-256 of the very bytes that stand beside it";
const COMPLETE: &str = "every node and record that the commit's tree reaches is in the archive";
const DUPLICATES: &str = "a block may stand in the archive more than once";
const ANY_ORDER: &str = "blocks may stand in any order";
const EXTRAS: &str = "blocks that nothing links to are passed by, whatever their CIDs";
const MORE_ROOTS: &str = "there may be more roots, which mean nothing";
