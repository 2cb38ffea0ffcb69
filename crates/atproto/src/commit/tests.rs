//! Tests of writing, parsing and rejecting commits, and of their signed bytes.

use codec::cbor::{self, Encoder, ItemKind, Reason};
use codec::cid::Codec;
use codec::{Cid, CidRef};
use kernels::sha256;

use super::*;

const DID: &str = "did:plc:wq4aajammjtxdomz3e23667t";
const REV: &str = "3mptbypluud2a";
const SIG: [u8; 64] = [0x5a; 64];

fn root() -> Cid {
    Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6")
}

fn unsigned() -> UnsignedCommit<'static> {
    UnsignedCommit { did: DID, rev: REV, data: root(), prev: None }
}

type Write = for<'o> fn(&'o mut Encoder) -> &'o mut Encoder;

/// The entries of a sound commit, in canonical order.
fn entries() -> Vec<(&'static str, Write)> {
    vec![
        ("did", |out| out.text(DID)),
        ("rev", |out| out.text(REV)),
        ("sig", |out| out.bytes(&SIG)),
        ("data", |out| out.link(root().as_cid_ref())),
        ("prev", |out| out.null()),
        ("version", |out| out.integer(3)),
    ]
}

fn block_of(entries: &[(&str, Write)]) -> Vec<u8> {
    let mut out = Encoder::new();
    out.map(entries.len());
    for (key, write) in entries {
        write(out.text(key));
    }
    out.into_bytes()
}

/// A sound commit except for one entry.
fn block_with(name: &str, write: Write) -> Vec<u8> {
    let mut entries = entries();
    entries.iter_mut().find(|(key, _)| *key == name).expect("a field of commits").1 = write;
    block_of(&entries)
}

fn fault_of(block: &[u8]) -> CommitFault {
    Commit::parse(block).expect_err("an error").fault
}

#[test]
fn the_bytes_are_those_of_the_specification() {
    let link = [&b"\x64data\xd8\x2a\x58\x25\x00"[..], root().as_bytes()].concat();
    let names = [b"\x63did\x78\x20", DID.as_bytes(), b"\x63rev\x6d", REV.as_bytes()].concat();
    let end = [&link[..], b"\x64prev\xf6\x67version\x03"].concat();
    assert_eq!(unsigned().to_bytes(), [&b"\xa5"[..], &names, &end].concat());
    let signed = [&b"\xa6"[..], &names, b"\x63sig\x58\x40", &SIG, &end].concat();
    assert_eq!(unsigned().with_signature(&SIG), signed);
    assert_eq!(block_of(&entries()), signed);
}

#[test]
fn what_is_written_reads_back() {
    for prev in [None, Some(Cid::of(Codec::DagCbor, b"\xf6"))] {
        let unsigned = UnsignedCommit { prev, ..unsigned() };
        let block = unsigned.with_signature(&SIG);
        cbor::validate(&block).unwrap();
        let commit = Commit::parse(&block).unwrap();
        assert_eq!((commit.did, commit.rev, commit.sig), (DID, REV, &SIG));
        assert_eq!((commit.data, commit.prev), (root(), prev));
        let signing_bytes = commit.signing_bytes();
        assert_eq!(signing_bytes.to_vec(), unsigned.to_bytes());
        assert_eq!(signing_bytes.len(), unsigned.to_bytes().len());
        assert_eq!(signing_bytes.digest(), sha256::digest(&unsigned.to_bytes()));
    }
}

#[test]
fn a_commit_of_the_usual_shape_is_read_as_any_is_and_is_canonical_whatever_byte_is_changed() {
    let block = unsigned().with_signature(&SIG);
    assert!(is_usual(&block));
    for at in 0..block.len() {
        assert_eq!(usual(&block[..at]), None);
        for byte in [0, 1, 0x20, 0x40, 0x7f, 0x80, 0xc0, 0xff, block[at] ^ 1, block[at] ^ 0x20] {
            let mut changed = block.clone();
            changed[at] = byte;
            if let Some(commit) = usual(&changed) {
                assert_eq!(parse(&changed), Ok(commit), "{byte:02x} at {at}");
                cbor::validate(&changed).unwrap();
            }
        }
    }
    assert!(!is_usual(&[&block[..], b"\x00"].concat()));
    for did in ["did:web:bob.example", "did:plc:wq4aajammjtxdomz3e23667"] {
        let block = UnsignedCommit { did, ..unsigned() }.with_signature(&SIG);
        assert!(!is_usual(&block) && Commit::parse(&block).is_ok());
    }
}

#[test]
fn unknown_entries_are_ignored_and_signed() {
    let unknown: [(&str, Write); 5] = [
        ("a", |out| out.integer(1)),
        ("sia", |out| out.text("before")),
        ("sih", |out| out.map(1).text("sig").bytes(&[1; 64])),
        ("zzzzzz", |out| out.array(2).null().boolean(true)),
        ("versions", |out| out.bytes(b"\x63sig\x58\x40")),
    ];
    for chosen in 0u32..32 {
        let extra = unknown.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
        let mut entries = entries();
        entries.extend(extra.map(|(_, entry)| *entry));
        entries.sort_by_key(|(key, _)| (key.len(), *key));
        let block = block_of(&entries);
        entries.retain(|(key, _)| *key != "sig");
        let signed = block_of(&entries);
        let commit = Commit::parse(&block).unwrap();
        assert_eq!(commit.signing_bytes().to_vec(), signed);
        assert_eq!(commit.signing_bytes().digest(), sha256::digest(&signed));
        assert_eq!(commit.sig, &SIG);
    }
}

#[test]
fn the_map_head_is_decremented_at_every_width() {
    for extra in [16, 17, 18, 19, 248, 249, 250, 251, 252, 65_528, 65_529, 65_530, 65_531] {
        let keys: Vec<String> = (0..extra).map(|number| format!("extra{number:06}")).collect();
        let block = |entries: &[(&str, Write)]| {
            let mut out = Encoder::new();
            out.map(entries.len() + keys.len());
            for (key, write) in entries {
                write(out.text(key));
            }
            for key in &keys {
                out.text(key).null();
            }
            out.into_bytes()
        };
        let mut entries = entries();
        let signed = block(&entries);
        entries.retain(|(key, _)| *key != "sig");
        let commit = Commit::parse(&signed).unwrap();
        assert_eq!(commit.signing_bytes().to_vec(), block(&entries), "{extra} extra entries");
    }
}

#[test]
fn the_bytes_of_the_sig_key_inside_a_did_are_not_mistaken_for_it() {
    let did = "did:web:csig\u{1}.example";
    let unsigned = UnsignedCommit { did, ..unsigned() };
    let block = unsigned.with_signature(&SIG);
    assert_eq!(Commit::parse(&block).unwrap().signing_bytes().to_vec(), unsigned.to_bytes());
}

#[test]
fn every_field_is_required() {
    for (missing, _) in entries() {
        let mut entries = entries();
        entries.retain(|(key, _)| *key != missing);
        assert_eq!(fault_of(&block_of(&entries)), CommitFault::Missing(missing));
    }
}

#[test]
fn a_field_of_another_kind_is_rejected_at_its_offset() {
    let number: Write = |out| out.integer(7);
    let kinds = [ItemKind::Text, ItemKind::Text, ItemKind::Bytes, ItemKind::Link, ItemKind::Link];
    for ((name, _), kind) in entries().into_iter().zip(kinds) {
        let block = block_with(name, number);
        let error = Commit::parse(&block).unwrap_err();
        assert_eq!(error.fault, CommitFault::Cbor(Reason::Expected(kind)), "{name}");
        assert_eq!(block[error.offset], 7);
    }
    let text = block_with("version", |out| out.text("3"));
    assert_eq!(fault_of(&text), CommitFault::Cbor(Reason::Expected(ItemKind::Integer)));
    let null = block_with("data", |out| out.null());
    assert_eq!(fault_of(&null), CommitFault::Cbor(Reason::Expected(ItemKind::Link)));
}

#[test]
fn other_versions_are_reported_before_other_faults() {
    let version_2 = block_with("version", |out| out.integer(2));
    assert_eq!(fault_of(&version_2), CommitFault::Version2);
    assert_eq!(fault_of(b"\xa1\x67version\x02"), CommitFault::Version2);
    assert_eq!(fault_of(b"\xa1\x67version\x04"), CommitFault::Version(4));
    assert_eq!(fault_of(b"\xa1\x67version\x20"), CommitFault::Version(-1));
    let text = CommitError { offset: 9, fault: CommitFault::Version2 }.to_string();
    assert!(text.contains("version 2") && text.contains("byte 9"), "{text}");
}

#[test]
fn a_signature_of_another_length_is_rejected() {
    let cases: [(usize, Write); 4] = [
        (0, |out| out.bytes(&[])),
        (63, |out| out.bytes(&[1; 63])),
        (65, |out| out.bytes(&[1; 65])),
        (70, |out| out.bytes(&[0x30; 70])),
    ];
    for (len, write) in cases {
        assert_eq!(fault_of(&block_with("sig", write)), CommitFault::SignatureLength(len));
    }
}

#[test]
fn links_must_name_dag_cbor_under_sha_256() {
    let raw: Write = |out| out.link(Cid::of(Codec::Raw, b"").as_cid_ref());
    let foreign: Write =
        |out| out.link(CidRef::from_bytes(b"\x01\x71\x13\x02hi").expect("well-formed"));
    for write in [raw, foreign] {
        assert_eq!(fault_of(&block_with("data", write)), CommitFault::Field("data"));
        assert_eq!(fault_of(&block_with("prev", write)), CommitFault::Field("prev"));
    }
}

#[test]
fn bytes_that_are_not_canonical_are_rejected() {
    let good = unsigned().with_signature(&SIG);
    let trailing = [&good[..], &[0]].concat();
    assert_eq!(fault_of(&trailing), CommitFault::Cbor(Reason::TrailingBytes));
    let mut reversed = entries();
    reversed.swap(0, 1);
    assert_eq!(fault_of(&block_of(&reversed)), CommitFault::Cbor(Reason::KeyOrder));
    let mut twice = entries();
    twice.insert(2, twice[2]);
    assert_eq!(fault_of(&block_of(&twice)), CommitFault::Cbor(Reason::DuplicateKey));
    let wide_head = [&[0xb8, 6], &good[1..]].concat();
    assert_eq!(fault_of(&wide_head), CommitFault::Cbor(Reason::NotMinimal));
    for len in 0..good.len() {
        let error = Commit::parse(&good[..len]).unwrap_err();
        assert!(matches!(error.fault, CommitFault::Cbor(_)) && error.offset <= len, "{len}");
    }
    assert_eq!(fault_of(b"\x80"), CommitFault::Cbor(Reason::Expected(ItemKind::Map)));
}

#[test]
fn many_commits_are_hashed_as_one_is() {
    let commits: Vec<Vec<u8>> = (0..40u8)
        .map(|number| {
            let did = format!("did:web:{}.example", "a".repeat(usize::from(number)));
            UnsignedCommit { did: &did, ..unsigned() }.with_signature(&[number; 64])
        })
        .collect();
    let parts: Vec<SigningBytes<'_>> =
        commits.iter().map(|block| Commit::parse(block).unwrap().signing_bytes()).collect();
    let alone: Vec<_> = parts.iter().map(SigningBytes::digest).collect();
    assert_eq!(digest_many(&parts), alone);
    assert_eq!(digest_many(&[]), [[0; 32]; 0]);
}
