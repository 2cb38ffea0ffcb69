//! Checkpoints and proofs: what holds, and that a change of any part is noticed.

use atproto::plc::{AccountData, UnsignedOperation, Update};
use atproto::syntax::DidBuf;
use crypto::{Curve, SecretKey};

use super::*;
use crate::plc::{History, Options, verify_plain_log};

fn secret(byte: u8) -> SecretKey {
    SecretKey::from_bytes(Curve::K256, &[byte; 32]).unwrap()
}

/// The histories of accounts, sorted by DID. Every third account has two operations.
fn histories(count: usize) -> Vec<Verified<History>> {
    let key = secret(7);
    let account = |number: usize| {
        let update = |prev, name: String| {
            let data = AccountData {
                rotation_keys: vec![key.public_key().to_did_key()],
                also_known_as: vec![name],
                ..AccountData::default()
            };
            let unsigned = UnsignedOperation::Update(Update { data, prev });
            let sig = key.sign(&unsigned.to_bytes());
            unsigned.with_signature(sig)
        };
        let genesis = update(None, format!("at://a{number}.test"));
        let mut log = vec![genesis.clone()];
        if number.is_multiple_of(3) {
            log.push(update(Some(genesis.cid()), format!("at://b{number}.test")));
        }
        verify_plain_log(log, &Options::default()).unwrap()
    };
    let mut histories: Vec<_> = (0..count).map(account).collect();
    histories.sort_by(|a, b| a.did().as_str().cmp(b.did().as_str()));
    histories
}

/// A signed checkpoint of histories, and their proofs.
fn checkpoint(histories: &[Verified<History>]) -> (Checkpoint, Vec<InclusionProof>) {
    let mut tree = MerkleTree::new();
    for history in histories {
        tree.watch_next();
        tree.push(&entry(history.did(), &hash_of_history(history)));
    }
    let (root, proofs) = tree.finish();
    let key = secret(9);
    let unsigned = UnsignedCheckpoint {
        directory: "https://plc.directory".to_owned(),
        created_at: "2026-11-30T12:00:00.000Z".parse().unwrap(),
        cursor: 100,
        accounts: histories.len() as u64,
        operations: histories.iter().map(|history| history.operations().len() as u64).sum(),
        root,
        key: key.public_key().to_did_key(),
    };
    let sig = key.sign(&unsigned.to_bytes());
    (unsigned.with_signature(sig), proofs)
}

fn now() -> i64 {
    "2026-11-30T12:00:00.000Z".parse::<DatetimeBuf>().unwrap().as_datetime().unix_micros()
}

fn verified(checkpoint: &Checkpoint) -> Verified<Checkpoint> {
    verify(checkpoint.to_json().as_bytes(), &Expected::at(now())).unwrap()
}

fn code(json: &str, expected: &Expected) -> &'static str {
    verify(json.as_bytes(), expected).map_or_else(|why| why.code(), |_| "valid")
}

#[test]
fn a_checkpoint_is_read_again_and_any_changed_field_is_noticed() {
    let (checkpoint, _) = checkpoint(&histories(5));
    let json = checkpoint.to_json();
    assert_eq!(Checkpoint::parse(json.as_bytes()), Ok(checkpoint));
    let expected = Expected::at(now());
    assert_eq!(code(&json, &expected), "valid");
    let changes = [
        ("\"cursor\":100", "\"cursor\":101", "signature/wrong"),
        ("\"accounts\":5", "\"accounts\":6", "signature/wrong"),
        ("\"operations\":7", "\"operations\":8", "signature/wrong"),
        ("https://plc.directory", "https://plc.example", "signature/wrong"),
        ("12:00:00.000Z", "12:00:00.001Z", "signature/wrong"),
        ("checkpoint.1", "checkpoint.2", "checkpoint/field"),
        ("\"cursor\":100", "\"cursor\":-1", "checkpoint/json"),
        ("\"cursor\":100", "\"cursor\":9223372036854775808", "checkpoint/field"),
        ("\"cursor\":100", "\"cursor\":100,\"cursor\":100", "checkpoint/json"),
        ("\"cursor\":100", "\"cursor\":100,\"more\":1", "checkpoint/json"),
        ("\"cursor\":100,", "", "checkpoint/json"),
        ("did:key:z", "did:key:x", "checkpoint/field"),
        ("2026-11-30T", "2026-11-31", "checkpoint/field"),
        ("\"sig\":\"", "\"sig\":\"A", "checkpoint/field"),
    ];
    for (from, to, expected_code) in changes {
        assert!(json.contains(from), "{from} in {json}");
        assert_eq!(code(&json.replacen(from, to, 1), &expected), expected_code, "{from} to {to}");
    }
    for at in 0..json.len() {
        let mut bytes = json.clone().into_bytes();
        bytes[at] ^= 1;
        assert!(verify(&bytes, &expected).is_err(), "byte {at}");
        assert!(verify(&json.as_bytes()[..at], &expected).is_err(), "the first {at} bytes");
    }
    let long = format!("{json}{}", " ".repeat(5000));
    assert_eq!(code(&long, &expected), "checkpoint/length");
}

#[test]
fn the_key_and_the_date_are_the_expected_ones() {
    let json = checkpoint(&histories(2)).0.to_json();
    let mut expected = Expected::at(now());
    expected.key = Some(secret(9).public_key());
    expected.max_age_micros = Some(1_000);
    assert_eq!(code(&json, &expected), "valid");
    expected.now_micros = now() + 1_001;
    assert_eq!(code(&json, &expected), "checkpoint/old");
    expected.now_micros = now() - CLOCK_DRIFT_MICROS - 1;
    assert_eq!(code(&json, &expected), "checkpoint/future");
    expected.key = Some(secret(8).public_key());
    assert_eq!(code(&json, &expected), "checkpoint/key");
    expected = Expected::at(i64::MIN);
    assert_eq!(code(&json, &expected), "checkpoint/future");
}

#[test]
fn a_proof_holds_for_its_history_only() {
    let histories = histories(12);
    let (checkpoint, proofs) = checkpoint(&histories);
    let checkpoint = verified(&checkpoint);
    let check = |proof: &Proof, history: &Verified<History>| {
        let verdict = verify_proof(proof, &checkpoint, history.did(), Some(history));
        verdict.map_or_else(|why| why.code(), |()| "valid")
    };
    for (history, inclusion) in histories.iter().zip(&proofs) {
        let subject = ProofSubject::Present(inclusion.clone());
        let proof = Proof { did: history.did().to_buf(), subject };
        let read = Proof::parse(proof.to_json().as_bytes());
        assert_eq!(read.as_ref(), Ok(&proof));
        assert_eq!(check(&proof, history), "valid");
        // A withheld operation.
        if history.operations().len() == 2 {
            let first = history.operations()[0].operation.clone();
            let shorter = verify_plain_log(vec![first], &Options::default()).unwrap();
            assert_eq!(check(&proof, &shorter), "checkpoint/root");
        }
        for other in histories.iter().filter(|other| other.did() != history.did()) {
            assert_eq!(check(&proof, other), "checkpoint/did");
        }
        for index in (0..20).filter(|index| *index != inclusion.index) {
            let moved = InclusionProof { index, ..inclusion.clone() };
            let moved = Proof { subject: ProofSubject::Present(moved), ..proof.clone() };
            let code = check(&moved, history);
            assert!(["checkpoint/root", "checkpoint/position"].contains(&code), "{code}");
        }
        for at in 0..inclusion.path.len() {
            let mut shorter = inclusion.clone();
            shorter.path.remove(at);
            let proof = Proof { subject: ProofSubject::Present(shorter), ..proof.clone() };
            let code = check(&proof, history);
            assert!(["checkpoint/root", "checkpoint/position"].contains(&code), "{code}");
        }
        let json = proof.to_json();
        for at in 0..json.len() {
            let mut bytes = json.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = Proof::parse(&bytes).map(|proof| check(&proof, history));
            assert_ne!(changed, Ok("valid"), "byte {at}");
            assert!(Proof::parse(&json.as_bytes()[..at]).is_err());
        }
        let none = verify_proof(&proof, &checkpoint, history.did(), None);
        assert_eq!(none, Err(CheckpointRejection::Root));
    }
}

#[test]
fn an_account_is_absent_between_its_neighbours_only() {
    let histories = histories(9);
    for len in 0..9 {
        for missing in 0..=len {
            // All but one account, which is missing at this place.
            let mut kept = histories[..=len].to_vec();
            let absent = kept.remove(missing);
            let (checkpoint, proofs) = checkpoint(&kept);
            let checkpoint = verified(&checkpoint);
            let neighbour = |at: usize| Neighbour {
                did: kept[at].did().to_buf(),
                history: hash_of_history(&kept[at]),
                inclusion: proofs[at].clone(),
            };
            let proof = |before: Option<usize>, after: Option<usize>, did: DidBuf| Proof {
                did,
                subject: ProofSubject::Absent {
                    before: before.map(neighbour),
                    after: after.map(neighbour),
                },
            };
            let did = absent.did().to_buf();
            let (before, after) = (missing.checked_sub(1), (missing < len).then_some(missing));
            let whole = proof(before, after, did.clone());
            assert_eq!(Proof::parse(whole.to_json().as_bytes()).as_ref(), Ok(&whole));
            assert_eq!(verify_proof(&whole, &checkpoint, did.as_did(), None), Ok(()));
            let history = verify_proof(&whole, &checkpoint, did.as_did(), Some(&absent));
            assert_eq!(history, Err(CheckpointRejection::Root));
            // Any other pair of neighbours shows nothing.
            let places = || (0..len).map(Some).chain([None]);
            for (first, second) in places().flat_map(|a| places().map(move |b| (a, b))) {
                if (first, second) != (before, after) {
                    let other = proof(first, second, did.clone());
                    let verdict = verify_proof(&other, &checkpoint, did.as_did(), None);
                    assert_eq!(verdict, Err(CheckpointRejection::Neighbours));
                }
            }
            // No account that is present can be shown to be absent.
            for present in &kept {
                let other = proof(before, after, present.did().to_buf());
                assert!(verify_proof(&other, &checkpoint, present.did(), None).is_err());
            }
            if let Some(at) = before.or(after) {
                let mut forged = neighbour(at);
                forged.history[0] ^= 1;
                let subject = match before {
                    Some(_) => {
                        ProofSubject::Absent { before: Some(forged), after: after.map(neighbour) }
                    }
                    None => ProofSubject::Absent { before: None, after: Some(forged) },
                };
                let forged = Proof { did: did.clone(), subject };
                let verdict = verify_proof(&forged, &checkpoint, did.as_did(), None);
                assert_eq!(verdict, Err(CheckpointRejection::Root));
            }
        }
    }
}

#[test]
fn nullification_and_order_are_part_of_a_history() {
    let histories = histories(3);
    let [a, b] = [&histories[0], &histories[1]].map(|history| history.operations()[0].cid);
    let of = |operations: &[(codec::Cid, bool)]| history_hash(operations.iter().copied());
    let all = [
        of(&[]),
        of(&[(a, false)]),
        of(&[(a, true)]),
        of(&[(a, false), (b, false)]),
        of(&[(b, false), (a, false)]),
        of(&[(a, false), (b, true)]),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
}
