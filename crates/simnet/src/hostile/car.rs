//! Malformed CAR archives, and unusual valid ones.

use codec::Cid;
use codec::cid::Codec;

use super::case::{Case, CaseBuilder, Layer, Rule};
use super::fixture::{Fixture, ValidRepository, unknown_cid};
use super::parts::archive::{Archive, Item, SHORT_SHA_256, Section, delimited, map};

pub(super) fn cases(fixture: &Fixture) -> Vec<Case> {
    let valid = ValidRepository::of(fixture.account());
    let parts = [headers, roots, lengths, hashes, cuts, gaps, tolerated];
    parts.into_iter().flat_map(|part| part(fixture, &valid)).collect()
}

fn rejected(
    fixture: &Fixture,
    name: &str,
    code: &'static str,
    sentence: &'static str,
    bytes: Vec<u8>,
) -> Case {
    let rule = Rule { section: CAR, sentence };
    CaseBuilder::car(fixture.account(), name, bytes).rejected(code, rule)
}

fn headers(fixture: &Fixture, valid: &ValidRepository) -> Vec<Case> {
    let with_header =
        |change: &dyn Fn(&mut Item)| valid.with(|archive| change(&mut archive.header)).to_bytes();
    let with_header_bytes = |header: &[u8]| {
        let mut parts = valid.archive.parts();
        parts[0] = delimited(header);
        parts.concat()
    };
    let version = |number| with_header(&|header| header.set("version", Item::Int(number)));
    let header = valid.archive.header.encode();
    let roots = Item::Array(vec![Item::link(&valid.commit())]);
    let singular = map([("root", roots.clone()), ("version", Item::Int(1))]).encode();
    let twice =
        map([("roots", roots.clone()), ("roots", roots.clone()), ("version", Item::Int(1))]);
    let unsorted = map([("version", Item::Int(1)), ("roots", roots)]).encode();
    let wide = with_header(&|header| header.set("version", Item::wide(1)));
    let rejected =
        |name: &str, code, sentence, bytes| rejected(fixture, name, code, sentence, bytes);
    vec![
        rejected("version-2", "car/version", VERSION_IS_1, version(2)),
        rejected("version-0", "car/version", VERSION_IS_1, version(0)),
        rejected(
            "version-absent",
            "car/header",
            TWO_FIELDS,
            with_header(&|header| header.remove("version")),
        ),
        rejected(
            "roots-absent",
            "car/header",
            TWO_FIELDS,
            with_header(&|header| header.remove("roots")),
        ),
        rejected("root-for-roots", "car/header", TWO_FIELDS, with_header_bytes(&singular)),
        rejected(
            "roots-a-map",
            "car/header",
            TWO_FIELDS,
            with_header(&|header| header.set("roots", map([]))),
        ),
        rejected("roots-twice", "car/header", CANONICAL, with_header_bytes(&twice.encode())),
        rejected("header-unsorted", "car/header", CANONICAL, with_header_bytes(&unsorted)),
        rejected("header-wide-version", "car/header", CANONICAL, wide),
        rejected(
            "header-trailing-byte",
            "car/header",
            CANONICAL,
            with_header_bytes(&[&header[..], &[0]].concat()),
        ),
        rejected("header-empty", "car/header", TWO_FIELDS, with_header_bytes(&[])),
        rejected("header-too-long", "car/truncated", WHOLE, vec![0x3b, 0xa2]),
        rejected("header-of-2-to-62", "car/limit", WHOLE, [&[0x80; 8], &b"\x40"[..]].concat()),
        rejected("empty-file", "car/truncated", WHOLE, Vec::new()),
    ]
}

fn roots(fixture: &Fixture, valid: &ValidRepository) -> Vec<Case> {
    let rooted_at = |root: &Cid| valid.with(|archive| archive.set_root(root)).to_bytes();
    let none = valid.with(|archive| archive.header.get("roots").items().clear()).to_bytes();
    let raw = Item::Link([&[1, 0x55], &valid.commit().as_bytes()[2..]].concat());
    let raw = valid.with(|archive| *archive.header.get("roots").at(0) = raw).to_bytes();
    let short = valid.with(|archive| {
        archive.header.get("roots").items().push(Item::short_sha_256());
    });
    let short =
        rejected(fixture, "root-of-sha-256-of-20-bytes", "car/header", SHA_256, short.to_bytes());
    let rejected = |name: &str, code, bytes| rejected(fixture, name, code, ROOT_IS_COMMIT, bytes);
    vec![
        rejected("no-roots", "car/roots", none),
        rejected("root-of-raw-codec", "car/roots", raw),
        short,
        rejected("root-nobody-has", "commit/missing-block", rooted_at(&unknown_cid())),
        rejected("root-a-node", "commit/missing", rooted_at(&valid.root())),
        rejected("root-a-record", "commit/missing", rooted_at(&valid.records[3])),
    ]
}

fn lengths(fixture: &Fixture, valid: &ValidRepository) -> Vec<Case> {
    // After the commit and the root.
    let with_third = |bytes: &[u8]| {
        let mut parts = valid.archive.parts();
        parts.insert(3, bytes.to_vec());
        parts.concat()
    };
    // The commit again: its length takes two bytes.
    let block = valid.archive.sections[0].to_bytes();
    let padded = [&[block[0] | 0x80, block[1] | 0x80, 0], &block[2..]].concat();
    let ten = [&[0xff; 9], &[0x01][..]].concat();
    let short = [&SHORT_SHA_256[..], b"\xa0"].concat();
    let mut at_the_end = valid.archive.to_bytes();
    at_the_end.push(0);
    let rejected =
        |name: &str, code, sentence, bytes| rejected(fixture, name, code, sentence, bytes);
    vec![
        rejected("zero-length", "car/cid", AT_LEAST_A_CID, with_third(&[0])),
        rejected("zero-at-the-end", "car/cid", AT_LEAST_A_CID, at_the_end),
        rejected("length-35", "car/cid", AT_LEAST_A_CID, with_third(&delimited(&block[2..37]))),
        rejected("sha-256-of-20-bytes", "car/cid", SHA_256, with_third(&delimited(&short))),
        rejected("padded-varint", "car/varint", MINIMAL_VARINT, with_third(&padded)),
        rejected("ten-byte-varint", "car/varint", MINIMAL_VARINT, with_third(&ten)),
        rejected(
            "length-of-2-to-62",
            "car/limit",
            WHOLE,
            with_third(&[&[0x80; 8], &b"\x40"[..]].concat()),
        ),
    ]
}

fn hashes(fixture: &Fixture, valid: &ValidRepository) -> Vec<Case> {
    let flipped = |cid: &Cid| {
        let flip =
            |archive: &mut Archive| *archive.section(cid).data.last_mut().expect("bytes") ^= 1;
        valid.with(flip).to_bytes()
    };
    let twice = valid.with(|archive| {
        let mut other = archive.section(&valid.records[5]).clone();
        other.data = archive.section(&valid.records[6]).data.clone();
        archive.sections.push(other);
    });
    let rejected = |name: &str, bytes| rejected(fixture, name, "car/hash", HASHED, bytes);
    vec![
        rejected("flipped-record", flipped(&valid.records[17])),
        rejected("flipped-node", flipped(&valid.leading_node())),
        rejected("flipped-root", flipped(&valid.root())),
        rejected("flipped-commit", flipped(&valid.commit())),
        rejected("same-name-other-data", twice.to_bytes()),
    ]
}

/// Truncated files; only the tree detects a file cut between two blocks.
fn cuts(fixture: &Fixture, valid: &ValidRepository) -> Vec<Case> {
    let parts = valid.archive.parts();
    let kept = |sections: usize| parts[..=sections].concat();
    let inside = |sections: usize, bytes: usize| {
        [kept(sections), parts[sections + 1][..bytes].to_vec()].concat()
    };
    let (first_record, blocks) = (valid.position(&valid.records[0]), parts.len() - 1);
    let before_a_node = valid.position(&valid.nodes[valid.nodes.len() / 2]);
    let before_a_record = valid.position(&valid.records[valid.records.len() / 2]);
    let complete = |name: &str, code, bytes| rejected(fixture, name, code, COMPLETE, bytes);
    let whole = |name: &str, bytes| rejected(fixture, name, "car/truncated", WHOLE, bytes);
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

fn gaps(fixture: &Fixture, valid: &ValidRepository) -> Vec<Case> {
    let without = |cid: &Cid| valid.with(|archive| archive.remove(cid)).to_bytes();
    let last_node = valid.nodes.last().expect("a root at least");
    let rejected = |name: &str, code, bytes| rejected(fixture, name, code, COMPLETE, bytes);
    let only_records = valid.with(|archive| {
        valid.nodes.iter().for_each(|node| archive.remove(node));
    });
    let only_nodes = valid.with(|archive| {
        valid.records.iter().for_each(|record| archive.remove(record));
    });
    vec![
        rejected("without-the-commit", "commit/missing-block", without(&valid.commit())),
        rejected("without-the-root", "tree/missing-node", without(&valid.root())),
        rejected("without-a-leading-node", "tree/missing-node", without(&valid.leading_node())),
        rejected("without-the-last-node", "tree/missing-node", without(last_node)),
        rejected("without-the-first-record", "record/missing", without(&valid.records[0])),
        rejected("without-a-record", "record/missing", without(&valid.records[30])),
        rejected("without-the-nodes", "tree/missing-node", only_records.to_bytes()),
        rejected("without-the-records", "record/missing", only_nodes.to_bytes()),
    ]
}

/// Unusual archives that a reader accepts.
fn tolerated(fixture: &Fixture, valid: &ValidRepository) -> Vec<Case> {
    let accepted = |name: &str, sentence, archive: Archive| {
        let rule = Rule { section: CAR, sentence };
        CaseBuilder::repo(fixture.account(), name, &archive).accepted(Layer::Car, rule)
    };
    let twice = valid.with(|archive| archive.sections.extend(archive.sections.clone()));
    let one_twice = valid.with(|archive| {
        let record = archive.section(&valid.records[9]).clone();
        archive.sections.insert(1, record);
    });
    let shuffled = valid.with(|archive| fixture.random("archive").shuffle(&mut archive.sections));
    let extra = valid.with(|archive| {
        archive.sections.insert(1, Section::of(b"\xa1\x61x\x01".to_vec()));
        archive.sections.push(foreign_section(b"of no account"));
    });
    let raw = valid.with(|archive| archive.sections.push(raw_section(b"an image")));
    let no_cbor = valid.with(|archive| {
        archive.sections.insert(1, Section::of(b"\xa2\x61b\x01\x61a\x02".to_vec()));
        archive.sections.push(Section::of(b"\xff no CBOR".to_vec()));
    });
    let two_roots = valid.with(|archive| {
        archive.header.get("roots").items().push(Item::link(&valid.root()));
    });
    vec![
        accepted("every-block-twice", DUPLICATES, twice),
        accepted("a-block-twice", DUPLICATES, one_twice),
        accepted("shuffled", ANY_ORDER, shuffled),
        accepted("commit-last", ANY_ORDER, valid.with(|archive| archive.sections.rotate_left(1))),
        accepted("backwards", ANY_ORDER, valid.with(|archive| archive.sections.reverse())),
        accepted("extra-blocks", EXTRAS, extra),
        accepted("extra-raw-block", EXTRAS, raw),
        accepted("extra-blocks-not-canonical", EXTRAS, no_cbor),
        accepted("two-roots", MORE_ROOTS, two_roots),
    ]
}

/// A block with a CID of version 0, as other applications of the format have.
fn foreign_section(data: &[u8]) -> Section {
    let name = Cid::of(Codec::Raw, data);
    Section { cid: [&[0x12, 0x20], &name.digest()[..]].concat(), data: data.to_vec() }
}

/// A block of raw bytes.
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
const SHA_256: &str = "a CID that names SHA-256 has a digest of 32 bytes";
const MINIMAL_VARINT: &str = "a length is an unsigned varint, minimal and of nine bytes at most";
const HASHED: &str = "a CID is the SHA-256 of the very bytes that stand beside it";
const COMPLETE: &str = "every node and record that the commit's tree reaches is in the archive";
const DUPLICATES: &str = "a block may stand in the archive more than once";
const ANY_ORDER: &str = "blocks may stand in any order";
const EXTRAS: &str =
    "blocks that nothing links to are passed by, whatever their CIDs and their bytes";
const MORE_ROOTS: &str = "there may be more roots, which mean nothing";
