use std::sync::LazyLock;

use atproto::mst::Tree;
use codec::Cid;

use super::{Corpus, Operation, OperationCounts, ROOT_EVERY, Record, Spec, read};
use crate::tree::reference;

static QUICK: LazyLock<Corpus> = LazyLock::new(|| Corpus::generate(&Spec::quick()));

#[test]
fn the_records_are_the_pinned_ones() {
    for (spec, sha256) in [(Spec::quick(), QUICK_SHA256), (Spec::default(), DEFAULT_SHA256)] {
        let corpus = Corpus::generate(&spec);
        assert_eq!(corpus.manifest(&corpus.to_file()).sha256, sha256, "{spec:?}");
    }
}

#[test]
fn a_file_holds_the_generated_records() {
    let bytes = QUICK.to_file();
    let file = read(&bytes).unwrap();
    assert_eq!(file.records.len(), 2_000);
    assert_eq!(file.lookups.len(), 8_000);
    assert!(!file.shuffled.is_sorted());
    for ((key, cid), entry) in file.records.iter().zip(QUICK.records()) {
        assert_eq!((*key, *cid), (entry.key.as_bytes(), entry.value));
    }
}

#[test]
fn the_counts_are_those_of_the_reference_and_of_the_file() {
    let counts = QUICK.counts();
    let records: Vec<_> = QUICK.records().iter().map(|e| (&*e.key, e.value)).collect();
    assert_eq!(counts.root, reference::build(&records).root().to_string());
    assert_eq!((counts.records, counts.lookups, counts.found), (2_000, 8_000, 8_000));
    let bytes = QUICK.to_file();
    let file = read(&bytes).unwrap();
    let digests = file.lookups.iter().map(|at| *file.records[*at as usize].1.digest());
    let sum: u64 = digests.map(|d| u64::from(u32::from_be_bytes([d[0], d[1], d[2], d[3]]))).sum();
    assert_eq!(u64::from(counts.lookup_checksum), sum % (1 << 32));
}

/// Benchmarks measure these records, so every way of building their tree is checked here.
#[test]
fn the_default_records_make_the_reference_tree_in_order_shuffled_and_in_bulk() {
    let (bytes, root) = &*DEFAULT;
    let file = read(bytes).unwrap();
    let in_order = || file.records.iter().copied();
    let shuffled = file.shuffled.iter().map(|at| file.records[*at as usize]);
    assert_eq!(inserted(in_order()).root(), *root);
    assert_eq!(inserted(shuffled).root(), *root);
    assert_eq!(Tree::from_sorted(in_order()).unwrap().root(), *root);
}

#[test]
fn the_default_records_make_the_reference_tree_with_lookups_in_between() {
    let (bytes, root) = &*DEFAULT;
    let records = read(bytes).unwrap().records;
    for every in [7, 100, 1_000, 4_999, 20_011] {
        let mut tree = Tree::empty();
        for some in records.chunks(every) {
            some.iter().for_each(|(key, cid)| assert_eq!(tree.insert(key, *cid), Ok(None)));
            let (key, cid) = some[some.len() / 2];
            assert_eq!(tree.get(key), Ok(Some(cid.as_cid_ref())));
        }
        assert_eq!(tree.root(), *root, "every {every}");
    }
}

/// The file of [`Spec::default`] and the root of its reference tree.
static DEFAULT: LazyLock<(Vec<u8>, Cid)> = LazyLock::new(|| {
    let corpus = Corpus::generate(&Spec::default());
    let records: Vec<_> = corpus.records().iter().map(|e| (&*e.key, e.value)).collect();
    (corpus.to_file(), reference::build(&records).root())
});

fn inserted<'r>(records: impl Iterator<Item = Record<'r>>) -> Tree {
    let mut tree = Tree::empty();
    records.for_each(|(key, cid)| assert_eq!(tree.insert(key, cid), Ok(None)));
    tree
}

#[test]
fn operations_on_a_tree_have_the_counts_of_the_corpus() {
    let bytes = QUICK.to_file();
    let file = read(&bytes).unwrap();
    let mut tree = Tree::empty();
    let mut counts = OperationCounts { operations: 2_050, ..OperationCounts::default() };
    let mut kinds = [0; 4];
    for some in file.operations.chunks(ROOT_EVERY) {
        for operation in some {
            let record = |at: u32| file.records[at as usize];
            match *operation {
                Operation::Insert(at) => {
                    kinds[0] += 1;
                    assert_eq!(tree.insert(record(at).0, record(at).1), Ok(None));
                }
                Operation::Update { key, value } => {
                    kinds[1] += 1;
                    let before = tree.insert(record(key).0, record(value).1).unwrap();
                    assert!(before.is_some());
                }
                Operation::Delete(at) => {
                    kinds[2] += 1;
                    assert!(tree.remove(record(at).0).unwrap().is_some());
                }
                Operation::Lookup(at) => {
                    kinds[3] += 1;
                    let Some(cid) = tree.get(record(at).0).unwrap() else { continue };
                    let digest = cid.to_cid().unwrap();
                    counts.hits += 1;
                    let word = super::first_four_bytes(&digest);
                    counts.hit_checksum = counts.hit_checksum.wrapping_add(word);
                }
            }
        }
        let word = super::first_four_bytes(&tree.root());
        counts.root_checksum = counts.root_checksum.wrapping_add(word);
    }
    counts.last_root = tree.root().to_string();
    assert_eq!(counts, QUICK.counts().operations);
    assert!(kinds.iter().all(|count| *count > 200) && counts.hits < kinds[3], "{kinds:?}");
}

#[test]
fn an_operation_of_an_unknown_kind_or_record_is_rejected() {
    let spec = Spec { records: 20, lookups: 10, operations: 1, ..Spec::quick() };
    let file = Corpus::generate(&spec).to_file();
    let operation = file.len() - 9;
    for (at, byte) in [(0, 4), (4, 20), (8, 20)] {
        let mut file = file.clone();
        file[operation + at] = byte;
        assert_eq!(read(&file), None, "byte {at}");
    }
}

#[test]
fn collections_have_the_shares_of_an_account() {
    let of = |nsid: &str| QUICK.records().iter().filter(|e| e.key.starts_with(nsid)).count();
    let shares = ["app.bsky.feed.like/", "app.bsky.feed.post/", "app.bsky.actor.profile/"].map(of);
    assert_eq!(shares, [959, 454, 1]);
}

#[test]
fn every_truncation_and_any_tail_is_rejected() {
    let spec = Spec { records: 20, lookups: 10, operations: 10, ..Spec::quick() };
    let small = Corpus::generate(&spec).to_file();
    assert!(read(&small).is_some());
    (0..small.len()).for_each(|cut| assert_eq!(read(&small[..cut]), None, "{cut}"));
    assert_eq!(read(&[&small[..], &[0]].concat()), None);
}

#[test]
fn an_order_with_a_repeated_or_unknown_record_is_rejected() {
    let spec = Spec { records: 20, lookups: 10, operations: 0, ..Spec::quick() };
    let mut file = Corpus::generate(&spec).to_file();
    let last_lookup = file.len() - 4 - 4;
    let last_shuffled = last_lookup - 9 * 4 - 4 - 4;
    let (twice, kept) = (file[last_shuffled - 4..last_shuffled].to_vec(), file.clone());
    file[last_shuffled..][..4].copy_from_slice(&twice);
    assert_eq!(read(&file), None);
    file = kept;
    file[last_lookup..][..4].copy_from_slice(&20u32.to_be_bytes());
    assert_eq!(read(&file), None);
}

/// The corpus file of [`Spec::quick`]. A change needs a recorded reason.
const QUICK_SHA256: &str = "adc3921c47b978827301054e995909f5fa1baae4b3e148ae46a0d9aca4f69c4e";

/// The corpus file of [`Spec::default`], which published measurements name.
const DEFAULT_SHA256: &str = "9088cb11db33399bc5f3de830e4729bf6e0f24a1a8b190ee6c1889e145be8ddf";
