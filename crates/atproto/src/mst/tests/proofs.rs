//! Proofs of records, and commits inverted by their covering proofs.

use std::collections::BTreeMap;

use codec::{AnyCid, Cid};
use proptest::prelude::*;

use super::forger::Forger;
use super::support::*;
use crate::mst::inversion::{InversionFault, RecordOp, invert};
use crate::mst::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn proofs_have_exactly_the_nodes_of_the_definition(
        records in any_records(),
        keys in proptest::collection::vec(any_key(), 1..6),
    ) {
        let built = build(&records);
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let covering = built.covering_proof(&keys);
        let mut made = inserted(records.iter());
        prop_assert_eq!(loaded(&built).covering_proof(keys.iter().copied()).unwrap(), covering.clone());
        prop_assert_eq!(made.covering_proof(keys.iter().copied()).unwrap(), covering);
        for key in keys {
            let proof = made.record_proof(key).unwrap();
            prop_assert_eq!(&proof, &loaded(&built).record_proof(key).unwrap());
            prop_assert!(proof.iter().map(|(cid, _)| *cid).eq(built.path(key)));
            let source: BTreeMap<Cid, &[u8]> =
                proof.iter().map(|(cid, block)| (*cid, &block[..])).collect();
            let mut partial = Tree::load_partial(built.root(), source);
            prop_assert_eq!(
                partial.get(key).unwrap(),
                records.get(key).map(AnyCid::as_cid_ref)
            );
        }
    }

    #[test]
    fn a_commit_is_inverted_with_its_covering_proof_alone(
        records in any_records(),
        edits in proptest::collection::btree_map(any_key(), 0..10u64, 1..8),
        order in any::<u64>(),
    ) {
        let before: Records = records;
        let mut after = before.clone();
        let mut ops = Vec::new();
        for (key, what) in edits {
            let prev = after.remove(&key);
            let cid = (what > 4 || prev.is_none()).then(|| value(100 + what));
            after.extend(cid.clone().map(|cid| (key.clone(), cid)));
            ops.push((key, cid, prev));
        }
        let rotation = order as usize % ops.len();
        ops.rotate_left(rotation);
        let (before, built) = (build(&before), build(&after));
        let keys: Vec<&[u8]> = ops.iter().map(|(key, ..)| &key[..]).collect();
        let proof = built.covering_proof(&keys);
        let source: BTreeMap<Cid, &[u8]> =
            proof.iter().map(|cid| (*cid, &built.nodes()[cid][..])).collect();
        let ops: Vec<RecordOp<'_>> = ops.iter().map(|(key, cid, prev)| undo(key, cid, prev)).collect();
        prop_assert_eq!(invert(built.root(), &source, &ops), Ok(before.root()));
        for missing in &proof {
            let mut less = source.clone();
            less.remove(missing);
            // Without a node the result is right, the CID of that node, or an error.
            match invert(built.root(), &less, &ops) {
                Ok(root) => prop_assert!([before.root(), *missing].contains(&root)),
                Err(error) => {
                    let fault = TreeFault::Missing;
                    let missing = TreeError { cid: Some(*missing), offset: 0, fault };
                    prop_assert_eq!(error.fault, InversionFault::Tree(missing));
                }
            }
        }
    }
}

#[test]
fn operations_that_disagree_with_the_tree_are_rejected_by_their_index() {
    let keys = keys_of_heights(&[0, 1, 0]);
    let records: Records = keys[..2].iter().map(|key| (key.clone(), value(0))).collect();
    let built = build(&records);
    let source = blocks_of(&built);
    let (record, other) = (Some(value(0)), Some(value(1)));
    let fault = |ops: &[RecordOp<'_>]| {
        let error = invert(built.root(), &source, ops).unwrap_err();
        (error.op.unwrap(), error.fault)
    };
    let sound = undo(&keys[0], &record, &None);
    let absent = undo(&keys[2], &record, &None);
    let elsewhere = undo(&keys[1], &other, &record);
    let present = undo(&keys[1], &None, &record);
    assert_eq!(fault(&[sound, absent]), (1, InversionFault::Absent));
    assert_eq!(fault(&[sound, elsewhere]), (1, InversionFault::OtherRecord));
    assert_eq!(fault(&[present, sound]), (0, InversionFault::Present));
    assert_eq!(fault(&[sound, sound]), (1, InversionFault::DuplicatePath));
    let no_record = RecordOp { cid: None, ..sound };
    assert_eq!(fault(&[no_record]), (0, InversionFault::Record));
    let a_record = RecordOp { cid: record.as_ref().map(AnyCid::as_cid_ref), ..present };
    assert_eq!(fault(&[a_record]), (0, InversionFault::Record));
    let no_previous = RecordOp { prev: None, ..present };
    assert_eq!(fault(&[no_previous]), (0, InversionFault::Previous));
    let a_previous = RecordOp { prev: a_record.cid, ..sound };
    assert_eq!(fault(&[a_previous]), (0, InversionFault::Previous));
    assert_eq!(invert(built.root(), (), &[]), Ok(built.root()));
}

#[test]
fn operations_are_undone_in_any_order_even_if_each_has_to_wait_for_the_next() {
    // The nodes next to `a` have one entry too many to be merged before `b` is removed, and the nodes next to `b`
    // before `c` is removed.
    let (half, low) = (MAX_NODE_ENTRIES / 2, MAX_NODE_ENTRIES / 2);
    let heights =
        [&vec![1; half][..], &[2], &vec![0; low], &[1], &vec![0; low + 1], &vec![1; half]];
    let keys = keys_of_heights(&heights.concat());
    let (a, b) = (half, half + 1 + low);
    let c = b + 1;
    let tree = |is_left: &dyn Fn(&usize) -> bool| {
        let left = (0..keys.len()).filter(is_left);
        build(&left.map(|index| (keys[index].clone(), value(0))).collect())
    };
    let (after, before) = (tree(&|_| true), tree(&|index| ![a, b, c].contains(index)));
    let source = blocks_of(&after);
    let record = Some(value(0));
    for order in [[a, b, c], [c, b, a]] {
        let ops = order.map(|index| undo(&keys[index], &record, &None));
        assert_eq!(invert(after.root(), &source, &ops), Ok(before.root()));
    }
}

#[test]
fn a_batch_beyond_the_memory_limit_is_processed_in_parts() {
    // Without shared prefixes the keys of a commit take 9 MB; two reach the limit.
    let mut keys: Vec<Vec<u8>> = (0u32..)
        .map(|number| [vec![b'k'; MAX_KEY_BYTES - 8], format!("{number:08}").into_bytes()].concat())
        .filter(|key| key_height(key) == 0)
        .take(9_000)
        .collect();
    let mut forger = Forger::default();
    let entries: Vec<(&[u8], Option<Cid>)> = keys.iter().map(|key| (&key[..], None)).collect();
    let root = forger.node(None, &entries);
    let before = forger.node(None, &entries[1..]);
    let source = forger.source();
    let record = Some(value(0));
    let first = keys.swap_remove(0);
    let ops = [undo(&first, &record, &None)];
    let none = [undo(b"absent", &record, &None)];
    let commit = |index| {
        let ops = if index % 3 == 1 { &none } else { &ops };
        inversion::Inversion { root, source: &source, ops }
    };
    let commits: Vec<_> = (0..7).map(commit).collect();
    let results = inversion::Inverter::new().invert_batch(&commits);
    assert_eq!(results.len(), commits.len());
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Ok(root) => assert_eq!((root, index % 3 == 1), (before, false)),
            Err(error) => assert_eq!((error.fault, index % 3), (InversionFault::Absent, 1)),
        }
    }
}

#[test]
fn of_a_batch_only_the_commit_with_a_key_in_the_wrong_layer_is_rejected() {
    let keys = || (0u32..).map(|number| format!("k{number:04}").into_bytes());
    let low: Vec<Vec<u8>> = keys().filter(|key| key_height(key) == 0).take(2).collect();
    let high = keys().find(|key| *key > low[1] && key_height(key) > 0).unwrap();
    let mut forger = Forger::default();
    let before = forger.node(None, &[(&low[1], None)]);
    let sound = forger.node(None, &[(&low[0], None), (&low[1], None)]);
    let wrong = forger.node(None, &[(&low[0], None), (&low[1], None), (&high, None)]);
    let source = forger.source();
    let record = Some(value(0));
    let ops = [undo(&low[0], &record, &None)];
    for wrong_at in 0..3 {
        let roots = (0..3).map(|index| if index == wrong_at { wrong } else { sound });
        let commits: Vec<_> =
            roots.map(|root| inversion::Inversion { root, source: &source, ops: &ops }).collect();
        let mut inverter = inversion::Inverter::default();
        let results = inverter.invert_batch(&commits);
        assert_eq!(inverter.invert_in_arena(&Vec::from_iter(&commits)), results);
        for (index, result) in results.into_iter().enumerate() {
            match result {
                Ok(root) => assert_eq!((root, index == wrong_at), (before, false)),
                Err(error) => {
                    assert_eq!((error.op, index), (None, wrong_at));
                    assert!(matches!(error.fault, InversionFault::Tree(_)), "{error}");
                }
            }
        }
    }
}
