//! A message of a comparison of ids is answered within its limit or refused, and two sides find the ids that one of
//! them lacks.

use std::collections::BTreeSet;

use nostr::negentropy::{self, Item, Items, MIN_MESSAGE_BYTES};

/// Runs the target on one input: the first byte decides if the rest is a message, or the items of two sides.
pub(crate) fn run(input: &[u8]) {
    match input.split_first() {
        Some((0..128, message)) => receive(message),
        Some((_, plan)) => exchange(plan),
        None => {}
    }
}

fn receive(message: &[u8]) {
    let ours = Items::from_iter((0..100).map(|number| item(number, number as u8)));
    if let Ok(answer) = negentropy::answer(&ours, message, MIN_MESSAGE_BYTES) {
        assert!(answer.len() <= MIN_MESSAGE_BYTES);
    }
    if let Ok(round) = negentropy::compare(&ours, message, MIN_MESSAGE_BYTES) {
        assert!(round.missing.len() <= message.len() / 32);
        assert!(round.reply.is_none_or(|reply| reply.len() <= MIN_MESSAGE_BYTES));
    }
}

/// Every three bytes of the plan are the time and the id of an item, and the sides that have it.
fn exchange(plan: &[u8]) {
    let (mut ours, mut theirs) = (BTreeSet::new(), BTreeSet::new());
    for [time, id, sides] in plan.as_chunks::<3>().0 {
        let item = item((*time).into(), *id);
        let _ = (sides & 1 == 1 && ours.insert(item), sides & 2 == 2 && theirs.insert(item));
    }
    let [our_items, their_items]: [Items; 2] =
        [&ours, &theirs].map(|items| items.iter().copied().collect());
    let (mut missing, mut message) = (BTreeSet::new(), negentropy::open(&our_items));
    for _ in 0..MAX_ROUNDS {
        let answered = negentropy::answer(&their_items, &message, MIN_MESSAGE_BYTES);
        let answer = answered.expect("the message of the other side");
        let round = negentropy::compare(&our_items, &answer, MIN_MESSAGE_BYTES);
        let round = round.expect("the answer of the other side");
        missing.extend(round.missing);
        match round.reply {
            Some(next) => message = next,
            None => {
                let expected: BTreeSet<[u8; 32]> =
                    theirs.difference(&ours).map(|item| item.id).collect();
                assert_eq!(missing, expected);
                return;
            }
        }
    }
    panic!("no end after {MAX_ROUNDS} rounds");
}

/// An id that differs from others late.
fn item(created_at: u64, byte: u8) -> Item {
    let mut id = [created_at as u8; 32];
    id[31] = byte;
    Item { created_at, id }
}

const MAX_ROUNDS: usize = 1_000;
