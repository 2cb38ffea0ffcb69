//! All three readers return the same result for every archive, in any order of its blocks.

use codec::car::{self, Block, Blocks, HashProof, Options, StreamReader, Writer};
use codec::{Cid, CidRef, cbor};
use data_encoding::{BASE64_NOPAD, Specification};
use serde_json::Value as Json;
use wireproof_conformance::{Folder, Manifest, fact, fixtures};

use crate::made::Random;

#[test]
fn real_repositories_have_the_blocks_that_the_manifest_states() {
    let data = fixtures!(Captures);
    let manifest = Manifest::of(&data);
    for path in data.files("atproto/cars", ".car") {
        let archive = data.bytes(&path);
        let blocks = read_three_ways(&archive, &path);
        let facts = manifest.facts(path.strip_prefix("atproto/").unwrap());
        assert_eq!(Some(blocks.len().to_string().as_str()), fact(facts, "blocks"), "{path}");
        assert_eq!(Some(first_root(&archive).to_string().as_str()), fact(facts, "root"), "{path}");
        assert_canonical_and_checked(&blocks, &path);
    }
}

#[test]
fn captured_pds_repositories_read_whole() {
    let data = fixtures!(Captures);
    let paths = data.files("pds", ".car");
    assert_eq!(paths.len(), 10);
    for path in paths {
        let archive = data.bytes(&path);
        let blocks = read_three_ways(&archive, &path);
        assert!(blocks.len() > 60, "{path} has the blocks of its records");
        assert_canonical_and_checked(&blocks, &path);
    }
}

#[test]
fn the_order_of_blocks_does_not_matter() {
    let data = fixtures!(Captures);
    let mut paths = data.files("atproto/cars", ".car");
    paths.extend(data.files("pds", ".car"));
    for path in paths {
        assert_survives_shuffling(&data.bytes(&path), &path);
    }
}

#[test]
fn forged_repositories_are_sound_archives_and_fall_to_a_later_layer() {
    let data = fixtures!(Captures);
    let manifest = Manifest::of(&data);
    let mut seen = 0;
    for (path, facts) in manifest.rows().filter(|(path, _)| path.starts_with("negative/repos/")) {
        let expected = fact(facts, "expected").unwrap();
        let expected = expected.split(';').next().unwrap();
        assert!(
            expected == "valid" || LATER.iter().any(|(listed, _)| *listed == expected),
            "{path}: no layer is listed for {expected}"
        );
        let path = format!("atproto/{path}");
        let archive = data.bytes(&path);
        assert_canonical_and_checked(&read_three_ways(&archive, &path), &path);
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn the_official_car_fixture_has_its_blocks() {
    let data = fixtures!(Captures);
    let cases: Json =
        serde_json::from_str(&data.text("atproto/car-format/car-file-fixtures.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let archive = base64(&case["car"]);
        let blocks = read_three_ways(&archive, "the official fixture");
        assert_eq!(first_root(&archive).to_string(), case["root"].as_str().unwrap());
        let listed = case["blocks"].as_array().unwrap();
        assert_eq!(blocks.len(), listed.len());
        for (block, listed) in blocks.iter().zip(listed) {
            assert_eq!(block.cid.to_string(), listed["cid"].as_str().unwrap());
            assert_eq!(block.data, base64(&listed["bytes"]));
        }
    }
}

#[test]
fn the_car_specification_fixture_has_its_blocks_and_roots() {
    let data = fixtures!(Captures);
    let archive = data.bytes("atproto/car-format/carv1-basic.car");
    let expected: Json =
        serde_json::from_str(&data.text("atproto/car-format/carv1-basic.json")).unwrap();
    let blocks = read_three_ways(&archive, "carv1-basic.car");
    let listed = expected["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), listed.len());
    for (block, listed) in blocks.iter().zip(listed) {
        assert_eq!(block.cid.as_bytes(), cid_bytes(listed["cid"]["/"].as_str().unwrap()));
        assert_eq!(block.offset, listed["offset"].as_u64().unwrap());
        assert_eq!(block.data_offset() as u64, listed["blockOffset"].as_u64().unwrap());
        assert_eq!(block.data.len() as u64, listed["blockLength"].as_u64().unwrap());
        assert_eq!(block.proof, HashProof::Checked);
    }
    let roots = car::read(&archive, &Options::default()).unwrap().roots;
    let listed = expected["header"]["roots"].as_array().unwrap();
    let listed = listed.iter().map(|root| cid_bytes(root["/"].as_str().unwrap()));
    assert!(listed.eq(roots.iter().map(|root| root.as_bytes().to_vec())));
}

#[test]
fn blocks_under_another_hash_function_come_back_unproved() {
    let data = fixtures!(Captures);
    let archive = data.bytes("atproto/car-format/iroh_testv1.car");
    let blocks = read_three_ways(&archive, "iroh_testv1.car");
    assert_eq!(blocks.len(), 35);
    for block in blocks {
        let is_identity = block.cid.identity().is_some();
        let proof = if is_identity { HashProof::Checked } else { HashProof::UnknownHash };
        assert_eq!(block.proof, proof, "{}", block.cid);
        assert_eq!(block.cid.to_cid(), None);
    }
}

#[test]
fn archives_of_the_indigo_module_read_whole_in_any_order() {
    let data = fixtures!(Indigo);
    let mut paths = data.files("testing/testdata", ".car");
    paths.push("testing/testdata/divy.repo".to_owned());
    for path in paths {
        let archive = data.bytes(&path);
        assert_canonical_and_checked(&read_three_ways(&archive, &path), &path);
        assert_survives_shuffling(&archive, &path);
    }
}

#[test]
fn commits_of_the_indigo_module_carry_sound_archives() {
    let data = fixtures!(Indigo);
    commits_carry_sound_archives(&data, "atproto/repo/testdata");
}

#[test]
fn commits_kept_as_json_carry_sound_archives() {
    let data = fixtures!(Captures);
    commits_carry_sound_archives(&data, "atproto/frames/commit-json");
}

fn commits_carry_sound_archives(data: &Folder, folder: &str) {
    let paths = data.files(folder, ".json");
    for path in paths.iter().filter(|path| path.contains("firehose_commit_")) {
        let commit: Json = serde_json::from_str(&data.text(path)).unwrap();
        let archive = base64(&commit["blocks"]["$bytes"]);
        let blocks = read_three_ways(&archive, path);
        assert_canonical_and_checked(&blocks, path);
        assert_eq!(first_root(&archive).to_string(), commit["commit"]["$link"].as_str().unwrap());
        let has = |cid: &str| blocks.iter().any(|block| block.cid.to_string() == cid);
        for op in commit["ops"].as_array().unwrap() {
            assert!(op["cid"]["$link"].as_str().is_none_or(has), "{path} has its records");
        }
    }
}

/// The blocks of `archive`, on which all readers agree.
fn read_three_ways<'a>(archive: &'a [u8], name: &str) -> Vec<Block<'a>> {
    let options = Options::default();
    let whole = car::read(archive, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
    let stepped: Result<Vec<_>, _> = Blocks::new(archive, &options).unwrap().collect();
    assert!(stepped.as_deref() == Ok(&whole.blocks[..]), "{name}: Blocks agrees with read");
    let stream = StreamReader::new(Trickle(archive), &options).unwrap();
    assert!(stream.roots().iter().eq(whole.roots.iter()), "{name}: the stream has the same roots");
    let mut count = 0;
    for (streamed, block) in stream.zip(&whole.blocks) {
        let streamed = streamed.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((streamed.cid(), streamed.offset), (block.cid, block.offset), "{name}");
        assert!(streamed.data() == block.data && streamed.proof == block.proof, "{name}");
        count += 1;
    }
    assert_eq!(count, whole.blocks.len(), "{name}: the stream ends where the slice ends");
    whole.blocks
}

/// A source that returns a few bytes at a time, like a socket.
struct Trickle<'a>(&'a [u8]);

impl std::io::Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(1 + self.0.len() % 1499);
        self.0.read(&mut buffer[..len])
    }
}

fn assert_canonical_and_checked(blocks: &[Block<'_>], name: &str) {
    for block in blocks {
        assert_eq!(block.proof, HashProof::Checked, "{name}");
        assert!(block.cid.is_dag_cbor(), "{name}: {}", block.cid);
        assert_eq!(cbor::validate(block.data), Ok(()), "{name}: {}", block.cid);
    }
}

fn assert_survives_shuffling(archive: &[u8], name: &str) {
    let original = car::read(archive, &Options::default()).unwrap();
    let mut shuffled = original.blocks.clone();
    Random::new(archive.len() as u64).shuffle(&mut shuffled);
    let roots: Vec<Cid> = original.roots.iter().map(blessed).collect();
    let mut writer = Writer::new(Vec::new(), &roots).unwrap();
    for block in &shuffled {
        writer.block(&blessed(block.cid), block.data).unwrap();
    }
    let rewritten = writer.into_inner();
    let read = read_three_ways(&rewritten, name);
    assert!(same(&read, &shuffled), "{name}: what was written is read in that order");
    assert_eq!(rewritten.len(), archive.len(), "{name}: nothing added, nothing lost");
    let (mut read, mut original) = (read, original.blocks);
    read.sort_by_key(|block| block.cid);
    original.sort_by_key(|block| block.cid);
    assert!(same(&read, &original), "{name}: the same blocks");
}

fn same(left: &[Block<'_>], right: &[Block<'_>]) -> bool {
    let essence = |block: &Block<'_>| (block.cid.as_bytes().to_vec(), block.data.to_vec());
    left.iter().map(essence).eq(right.iter().map(essence))
}

fn blessed(cid: CidRef<'_>) -> Cid {
    cid.to_cid().expect("a repository's CIDs are blessed")
}

fn first_root(archive: &[u8]) -> CidRef<'_> {
    car::read(archive, &Options::default()).unwrap().roots.first().expect("a root")
}

/// A CID in bytes, from its usual text form: version 0 in base58, without a
/// multibase letter.
fn cid_bytes(text: &str) -> Vec<u8> {
    if text.starts_with("Qm") {
        return bs58::decode(text).into_vec().expect("base58");
    }
    text.parse::<Cid>().expect("blessed").as_bytes().to_vec()
}

/// Base64 as people write it: with padding or without, and with loose trailing bits.
fn base64(text: &Json) -> Vec<u8> {
    let text = text.as_str().expect("base64 text").trim_end_matches('=');
    let mut loose: Specification = BASE64_NOPAD.specification();
    loose.check_trailing_bits = false;
    let decoded = loose.encoding().expect("a sound specification").decode(text.as_bytes());
    decoded.unwrap_or_else(|error| panic!("{error}"))
}

/// The manifest's expectation, and the layer that must refuse an archive that is well-formed here.
const LATER: [(&str, &str); 4] = [
    ("reject:signature", "crypto: a signature must be low-S"),
    ("reject:mst-layer", "verify: a key stands at the height of its hash"),
    ("reject:mst-order", "verify: the keys of a node are in order"),
    ("reject:commit", "atproto: a commit has a signature"),
];
