use proptest::prelude::*;

use super::*;
use crate::Reason;

/// An item whose id begins with some bytes that others share. The rest is a hash, as in real ids: a fingerprint is made of
/// the sum of ids, and sums of ids that grow with their numbers are often equal.
fn item(created_at: u64, number: u64) -> Item {
    let mut id = [7; 32];
    id[20..].copy_from_slice(&sha256::digest(&number.to_be_bytes())[..12]);
    Item { created_at, id }
}

/// Items of which several have the same time.
fn items(numbers: impl IntoIterator<Item = u64>) -> Items {
    numbers.into_iter().map(|number| item(number / 3, number)).collect()
}

/// The cost and the findings of an exchange.
#[derive(Debug)]
struct Exchange {
    missing: Vec<[u8; 32]>,
    rounds: usize,
    bytes: usize,
}

/// Runs an exchange; no message is longer than `max_bytes`.
fn exchange(ours: &Items, theirs: &Items, max_bytes: usize) -> Exchange {
    let mut message = open(ours);
    let mut exchange = Exchange { missing: Vec::new(), rounds: 0, bytes: 0 };
    loop {
        let reply = answer(theirs, &message, max_bytes).unwrap();
        assert!(message.len() <= max_bytes && reply.len() <= max_bytes);
        let round = compare(ours, &reply, max_bytes).unwrap();
        exchange.rounds += 1;
        exchange.bytes += message.len() + reply.len();
        exchange.missing.extend(round.missing);
        match round.reply {
            Some(next) => message = next,
            None => break,
        }
    }
    exchange.missing.sort_unstable();
    exchange.missing.dedup();
    exchange
}

fn missing(ours: &Items, theirs: &Items) -> Vec<[u8; 32]> {
    let mut missing: Vec<_> =
        theirs.0.iter().filter(|item| !ours.contains(item)).map(|item| item.id).collect();
    missing.sort_unstable();
    missing
}

#[test]
fn all_pairs_of_subsets_of_seven_items_are_reconciled() {
    let subset = |bits: u32| items((0..7).filter(|number| bits >> number & 1 == 1));
    for ours in 0..128 {
        for theirs in 0..128 {
            let (ours, theirs) = (subset(ours), subset(theirs));
            let exchange = exchange(&ours, &theirs, MIN_MESSAGE_BYTES);
            assert_eq!(exchange.missing, missing(&ours, &theirs));
            assert_eq!(exchange.rounds, 1);
        }
    }
}

proptest! {
    #[test]
    fn what_one_side_lacks_is_found_within_the_limits_of_messages(
        all in prop::collection::btree_set(0_u64..5_000, 0..600),
        bits in prop::collection::vec(0_u8..16, 600),
        max_bytes in MIN_MESSAGE_BYTES..3 * MIN_MESSAGE_BYTES,
    ) {
        let having = |bit: u8| {
            let chosen = all.iter().zip(&bits).filter(move |(_, bits)| **bits & bit > 0 || **bits > 2);
            items(chosen.map(|(number, _)| *number))
        };
        let (ours, theirs) = (having(1), having(2));
        prop_assert_eq!(exchange(&ours, &theirs, max_bytes).missing, missing(&ours, &theirs));
    }

    #[test]
    fn any_bytes_are_refused_or_answered_within_the_limit(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        set_version in any::<bool>(),
    ) {
        if let (Some(first), true) = (bytes.first_mut(), set_version) {
            *first = 0x61;
        }
        let has_version = bytes.first() == Some(&0x61);
        let ours = items(0..500);
        if let Ok(answer) = answer(&ours, &bytes, MIN_MESSAGE_BYTES) {
            prop_assert!(answer.len() <= MIN_MESSAGE_BYTES && has_version);
        }
        if let Ok(round) = compare(&ours, &bytes, MIN_MESSAGE_BYTES) {
            prop_assert!(round.missing.len() <= bytes.len() / 32);
            prop_assert!(round.reply.is_none_or(|reply| reply.len() <= MIN_MESSAGE_BYTES));
        }
    }

    #[test]
    fn numbers_have_seven_bits_a_byte_most_significant_first(number in any::<u64>()) {
        let written = varint_of(number);
        prop_assert_eq!(written.len(), number.max(1).ilog2() as usize / 7 + 1);
        let value = written.iter().fold(0, |value: u64, byte| value << 7 | u64::from(byte & 0x7f));
        prop_assert_eq!(value, number);
        prop_assert!(written[..written.len() - 1].iter().all(|byte| byte & 0x80 > 0));
    }
}

fn varint_of(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_varint(number, &mut bytes);
    bytes
}

#[test]
fn the_implementation_of_others_finds_the_same_on_either_side() {
    use negentropy::{Id, Negentropy, NegentropyStorageVector};

    let stored = |items: &Items| {
        let mut storage = NegentropyStorageVector::new();
        for item in &items.0 {
            storage.insert(item.created_at, Id::from_byte_array(item.id)).unwrap();
        }
        storage.seal().unwrap();
        storage
    };
    for (ours, theirs) in [
        (items(0..0), items(0..40)),
        (items(0..3_000), items((0..3_000).chain(9_000..9_001))),
        (items((0..9_000).filter(|n| n % 101 > 0)), items((0..9_000).filter(|n| n % 97 > 0))),
        (items(0..5_000), items(5_000..7_000)),
    ] {
        for max_bytes in [MIN_MESSAGE_BYTES, 60_000] {
            let limit = max_bytes as u64;
            // They answer.
            let storage = stored(&theirs);
            let mut server = Negentropy::borrowed(&storage, limit).unwrap();
            let (mut found, mut message) = (Vec::new(), Some(open(&ours)));
            while let Some(sent) = message {
                let round = compare(&ours, &server.reconcile(&sent).unwrap(), max_bytes).unwrap();
                found.extend(round.missing);
                message = round.reply;
            }
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, missing(&ours, &theirs));
            // They open.
            let storage = stored(&ours);
            let mut client = Negentropy::borrowed(&storage, limit).unwrap();
            let (mut have, mut need) = (Vec::new(), Vec::new());
            let first = client.initiate().unwrap();
            assert_eq!(first, open(&ours), "the same message in the same bytes");
            let mut message = Some(first);
            while let Some(sent) = message {
                let reply = answer(&theirs, &sent, max_bytes).unwrap();
                message = client.reconcile_with_ids(&reply, &mut have, &mut need).unwrap();
            }
            let mut need: Vec<[u8; 32]> = need.iter().map(|id| id.to_bytes()).collect();
            need.sort_unstable();
            need.dedup();
            assert_eq!(need, missing(&ours, &theirs));
        }
    }
}

#[test]
fn equal_sides_exchange_one_short_message_each() {
    let all = items(0..100_000);
    let exchange = exchange(&all, &all, MIN_MESSAGE_BYTES);
    assert_eq!((exchange.missing.len(), exchange.rounds), (0, 1));
    assert!(exchange.bytes < 800, "{exchange:?}");
}

#[test]
fn one_in_a_hundred_of_many_items_is_found_in_few_rounds_and_bytes() {
    let theirs = items(0..100_000);
    let ours = items((0..100_000).filter(|number| number % 100 != 57));
    let exchange = exchange(&ours, &theirs, 60_000);
    assert_eq!(exchange.missing, missing_of_hundredths());
    // A list of all ids has 3.2 MB.
    let Exchange { bytes, rounds, .. } = exchange;
    assert!(bytes < 1_400_000 && rounds < 40, "{bytes} bytes in {rounds} rounds");
}

fn missing_of_hundredths() -> Vec<[u8; 32]> {
    let mut ids: Vec<_> = (0..1_000).map(|number| item(0, number * 100 + 57).id).collect();
    ids.sort_unstable();
    ids
}

/// A message with these ranges after the version.
fn message(ranges: &[&[u8]]) -> Vec<u8> {
    [&[0x61][..], &ranges.concat()].concat()
}

#[test]
fn every_broken_rule_of_a_message_is_named_with_its_place() {
    let refused = |bytes: &[u8]| compare(&items(0..100), bytes, MIN_MESSAGE_BYTES).unwrap_err();
    let prefix_of_33 = [&[5, 33][..], &[0; 33], &[0]].concat();
    let falling = [[5, 1, 9, 0], [1, 1, 8, 0]].concat();
    let overflow = [&[0x81][..], &[0xff; 9], &[0x7f]].concat();
    for (bytes, offset, reason) in [
        (Vec::new(), 0, Reason::Truncated),
        (vec![0x62], 0, Reason::Version(0x62)),
        (message(&[&[0]]), 2, Reason::Truncated),
        (message(&[&[0, 0]]), 3, Reason::Truncated),
        (message(&[&[0, 0, 3]]), 3, Reason::Expected("mode 0, 1 or 2")),
        (message(&[&[0, 0, 1], &[0; 15]]), 4, Reason::Truncated),
        (message(&[&[0, 0, 2, 2], &[0; 63]]), 5, Reason::Truncated),
        (message(&[&prefix_of_33]), 2, Reason::Expected("a prefix of up to 32 bytes")),
        (message(&[&falling]), 5, Reason::Expected("a bound after the one before")),
        (message(&[&[0x80, 5]]), 1, Reason::NotMinimal),
        (message(&[&overflow]), 1, Reason::Expected("an integer of 64 bits")),
        // A number of ids whose length in bytes has no 64 bits.
        (message(&[&[0, 0, 2], &varint_of(u64::MAX)]), 14, Reason::Truncated),
    ] {
        let error = refused(&bytes);
        assert_eq!((error.offset, error.reason), (offset, reason), "{bytes:02x?}");
        assert!(answer(&items(0..100), &bytes, MIN_MESSAGE_BYTES).is_err());
    }
}

#[test]
fn ids_that_are_repeated_or_ours_are_not_missing_twice() {
    let ours = items(0..5);
    let (known, new) = (ours.0[0].id, [9; 32]);
    let list = message(&[&[0, 0, 2, 3], &new, &known, &new]);
    let round = compare(&ours, &list, MIN_MESSAGE_BYTES).unwrap();
    assert_eq!(round, Round { missing: vec![new], reply: None });
}
