//! Trees of mirrors and proofs of their accounts, and the differences between mirrors, with made histories.

use atproto::plc::ExportLine;
use atproto::syntax::{DatetimeBuf, DidBuf};
use store::{PlcMirror, PlcMirrorReader, StoreError};
use verify::checkpoint::{self, Expected, ProofSubject, UnsignedCheckpoint, verify_proof};

use super::made::{Maker, Random};
use super::support::TestMirror;
use crate::{DiffCounts, Difference, DifferenceKind, MirrorTree, diff};

fn mirror_of<'l>(lines: impl IntoIterator<Item = &'l ExportLine>, directory: &str) -> TestMirror {
    let mirror = TestMirror::new();
    let lines: Vec<ExportLine> = lines.into_iter().cloned().collect();
    PlcMirror::open(&mirror.path(), directory).unwrap().apply(&lines).unwrap();
    mirror
}

const DIRECTORY: &str = "https://plc.directory";
const OTHER: &str = "https://plc.example.com";

fn made(seed: u64, operations: usize) -> Maker {
    let mut maker = Maker::new(seed);
    (0..operations).for_each(|_| maker.make());
    maker
}

#[test]
fn the_tree_at_a_number_is_the_tree_of_a_mirror_that_ended_there() {
    for seed in 20..24 {
        let maker = made(seed, 120);
        let whole = mirror_of(&maker.lines, DIRECTORY);
        for (at, line) in maker.lines.iter().enumerate().step_by(7) {
            let ended = mirror_of(&maker.lines[..=at], DIRECTORY);
            let tree = MirrorTree::of(&whole.reader(), line.seq).unwrap();
            assert_eq!(tree, MirrorTree::of(&ended.reader(), line.seq).unwrap());
            let totals = ended.reader().totals().unwrap();
            assert_eq!((tree.cursor, tree.operations), (totals.cursor, totals.operations));
        }
    }
}

/// A signed checkpoint of a tree.
fn signed(tree: &MirrorTree) -> verify::Verified<checkpoint::Checkpoint> {
    let key = crypto::SecretKey::from_bytes(crypto::Curve::K256, &[5; 32]).unwrap();
    let created_at: DatetimeBuf = "2026-11-30T12:00:00.000Z".parse().unwrap();
    let now = created_at.as_datetime().unix_micros();
    let unsigned = UnsignedCheckpoint {
        directory: DIRECTORY.to_owned(),
        created_at,
        cursor: tree.cursor,
        accounts: tree.accounts,
        operations: tree.operations,
        root: tree.root,
        key: key.public_key().to_did_key(),
    };
    let sig = key.sign(&unsigned.to_bytes());
    let json = unsigned.with_signature(sig).to_json();
    checkpoint::verify(json.as_bytes(), &Expected::at(now)).unwrap()
}

#[test]
fn every_account_is_proved_present_and_every_other_absent() {
    for seed in 30..33 {
        let maker = made(seed, 90);
        let mirror = mirror_of(&maker.lines, DIRECTORY);
        let reader = mirror.reader();
        let cursor = reader.totals().unwrap().cursor;
        let tree = MirrorTree::of(&reader, cursor).unwrap();
        let checkpoint = signed(&tree);
        for did in maker.histories().keys() {
            let did: DidBuf = did.parse().unwrap();
            let history = reader.history(did.as_did()).unwrap().unwrap();
            let (same, proof) = MirrorTree::with_proof(&reader, cursor, did.as_did()).unwrap();
            assert_eq!(same, tree);
            assert_eq!(verify_proof(&proof, &checkpoint, did.as_did(), Some(&history)), Ok(()));
        }
        let mut random = Random::new(seed);
        for _ in 0..40 {
            let letter = |_| char::from(b"abcdefghijklmnopqrstuvwxyz234567"[random.below(32)]);
            let text: String = (0..24).map(letter).collect();
            let did: DidBuf = format!("did:plc:{text}").parse().unwrap();
            let (_, proof) = MirrorTree::with_proof(&reader, cursor, did.as_did()).unwrap();
            assert!(matches!(proof.subject, ProofSubject::Absent { .. }));
            assert_eq!(verify_proof(&proof, &checkpoint, did.as_did(), None), Ok(()));
        }
    }
}

#[test]
fn the_tree_of_nothing_proves_that_an_account_is_absent() {
    let mirror = mirror_of(&[], DIRECTORY);
    let did: DidBuf = "did:plc:ewvi7nxzyoun6zhxrhs64oiz".parse().unwrap();
    let (tree, proof) = MirrorTree::with_proof(&mirror.reader(), 9, did.as_did()).unwrap();
    assert_eq!((tree.accounts, tree.operations), (0, 0));
    assert_eq!(verify_proof(&proof, &signed(&tree), did.as_did(), None), Ok(()));
}

fn differences(a: &PlcMirrorReader, b: &PlcMirrorReader) -> (Vec<Difference>, DiffCounts) {
    let mut found = Vec::new();
    let counts = diff(a, b, |difference| {
        found.push(difference);
        Ok::<_, StoreError>(())
    });
    (found, counts.unwrap())
}

#[test]
fn equal_mirrors_and_earlier_days_do_not_contradict_each_other() {
    for seed in 40..44 {
        let maker = made(seed, 150);
        let whole = mirror_of(&maker.lines, DIRECTORY);
        let accounts = maker.histories().len() as u64;
        let equal = DiffCounts { accounts, equal: accounts };
        assert_eq!(differences(&whole.reader(), &whole.reader()), (vec![], equal));
        for directory in [DIRECTORY, OTHER] {
            let earlier = mirror_of(&maker.lines[..100], directory);
            for pair in [[&whole, &earlier], [&earlier, &whole]] {
                let (found, counts) = differences(&pair[0].reader(), &pair[1].reader());
                let kinds: Vec<_> = found.iter().map(|of| of.kind).collect();
                assert!(kinds.iter().all(|kind| *kind == DifferenceKind::Newer), "{found:?}");
                assert_eq!(counts.accounts, counts.equal + found.len() as u64);
                assert!(!found.is_empty());
            }
        }
    }
}

/// A line whose operation has another time.
fn redated(line: &ExportLine) -> ExportLine {
    let mut line = line.clone();
    let stated = line.stated.as_mut().unwrap();
    let micros = stated.created_at.as_datetime().unix_micros() + 1_000;
    stated.created_at = DatetimeBuf::from_unix_micros(micros).unwrap();
    line
}

#[test]
fn a_withheld_or_redated_operation_is_named_with_its_account_and_place() {
    let mut kinds = std::collections::BTreeMap::new();
    for seed in 50..54 {
        let maker = made(seed, 150);
        let whole = mirror_of(&maker.lines, DIRECTORY);
        let rows = whole.reader().operations_after(0, usize::MAX).unwrap();
        // The newest operations are left alone: withholding them is being late.
        for row in rows.iter().take(rows.len() - 20).step_by(4) {
            let (did, number) = (&row.did, row.number);
            let history = whole.reader().operations(did).unwrap();
            let of_account = |line: &&ExportLine| line.did.as_str() == did.as_str();
            let without = maker.lines.iter().filter(|line| line.seq != row.seq);
            let withheld = mirror_of(without, DIRECTORY);
            let (found, _) = differences(&whole.reader(), &withheld.reader());
            let [difference] = &found[..] else { panic!("{found:?}") };
            assert_eq!((&difference.did, difference.index), (did, number), "{row:?}");
            assert!(difference.kind.is_contradiction(), "{difference:?}");
            assert_eq!(difference.first.as_ref(), Some(&row.cid));
            *kinds.entry(difference.kind).or_insert(0) += 1;
            let (reversed, _) = differences(&withheld.reader(), &whole.reader());
            assert_eq!((reversed.len(), &reversed[0].second), (1, &difference.first));

            if number + 1 == history.len() as u64 {
                let later = maker.lines.iter().filter(of_account).any(|line| line.seq > row.seq);
                let lines = maker.lines.iter();
                let lines: Vec<ExportLine> = lines
                    .map(|line| if line.seq == row.seq { redated(line) } else { line.clone() })
                    .collect();
                let changed = mirror_of(&lines, DIRECTORY);
                let (found, _) = differences(&whole.reader(), &changed.reader());
                let expected = (did.clone(), DifferenceKind::Redated, number);
                let found: Vec<_> =
                    found.into_iter().map(|of| (of.did, of.kind, of.index)).collect();
                if !later {
                    assert_eq!(found, [expected]);
                }
            }
        }
    }
    assert!(kinds[&DifferenceKind::Withheld] > 20, "{kinds:?}");
    assert!(kinds.contains_key(&DifferenceKind::Diverging), "{kinds:?}");
}
