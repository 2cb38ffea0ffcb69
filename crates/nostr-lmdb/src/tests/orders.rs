//! The contents of a written database: the same for every order of the events, as a plain model
//! says.

use bumpalo::Bump;
use nostr::OwnedEvent;

use super::{example, stored, tag, tagged};
use crate::{Outcome, StrfryWriter};

/// The events that should remain by NIP-01 and NIP-09, computed from all events at once.
fn model(events: &[OwnedEvent]) -> Vec<OwnedEvent> {
    let first = |event: &OwnedEvent, name: &str| {
        let tag = event.tags.iter().find(|tag| tag[0] == name);
        tag.and_then(|tag| tag.get(1)).cloned().unwrap_or_default()
    };
    let address = |event: &OwnedEvent| match event.kind {
        0 | 3 | 10_000..20_000 => Some((event.kind, event.pubkey, String::new())),
        30_000..40_000 => Some((event.kind, event.pubkey, first(event, "d"))),
        _ => None,
    };
    let names = |deletion: &OwnedEvent, event: &OwnedEvent| {
        let by_address = address(event)
            .map(|(kind, pubkey, d)| format!("{kind}:{}:{d}", kernels::hex::encode(&pubkey)));
        deletion.tags.iter().any(|tag| match &*tag[0] {
            "e" => tag[1] == kernels::hex::encode(&event.id),
            "a" => Some(&tag[1]) == by_address.as_ref() && event.created_at <= deletion.created_at,
            _ => false,
        })
    };
    let is_deleted = |event: &OwnedEvent| {
        let by_author = |it: &&OwnedEvent| it.kind == 5 && it.pubkey == event.pubkey;
        event.kind != 5 && events.iter().filter(by_author).any(|deletion| names(deletion, event))
    };
    let is_stored = |event: &&OwnedEvent| !(20_000..30_000).contains(&event.kind);
    let left: Vec<&OwnedEvent> =
        events.iter().filter(is_stored).filter(|event| !is_deleted(event)).collect();
    let is_newest = |event: &OwnedEvent| {
        let newer = |other: &&OwnedEvent| {
            address(other) == address(event)
                && (other.created_at, std::cmp::Reverse(other.id))
                    > (event.created_at, std::cmp::Reverse(event.id))
        };
        address(event).is_none() || !left.iter().copied().any(|other| newer(&other))
    };
    let mut remaining: Vec<OwnedEvent> =
        left.iter().filter(|event| is_newest(event)).map(|event| (*event).clone()).collect();
    remaining.sort_unstable_by_key(|event| event.id);
    remaining.dedup_by_key(|event| event.id);
    remaining
}

/// Calls `visit` with every order of `items`.
fn each_order<T: Clone>(items: &[T], visit: &mut dyn FnMut(&[T])) {
    fn permute<T: Clone>(items: &mut Vec<T>, len: usize, visit: &mut dyn FnMut(&[T])) {
        if len < 2 {
            return visit(items);
        }
        for at in 0..len {
            permute(items, len - 1, visit);
            items.swap(if len.is_multiple_of(2) { at } else { 0 }, len - 1);
        }
    }
    permute(&mut items.to_vec(), items.len(), visit);
}

#[test]
fn what_remains_is_the_same_in_every_order_of_a_few_events() {
    let author = kernels::hex::encode(&example().pubkey);
    let e = |id: u8| tag("e", format!("{id:02x}").repeat(32));
    let article = |id, time| tagged(id, 30_023, time, &[tag("d", "x")]);
    let profile = |id, time| tagged(id, 0, time, &[]);
    let sets: [Vec<OwnedEvent>; 6] = [
        // A note, its deletion, and a deletion of the deletion.
        vec![tagged(1, 1, 10, &[]), tagged(2, 5, 11, &[e(1)]), tagged(3, 5, 12, &[e(2)])],
        // The newest version deleted by its id: the one before is the newest that is not deleted.
        vec![article(1, 10), article(2, 20), article(3, 15), tagged(4, 5, 30, &[e(2)])],
        // Versions up to a time deleted by their address.
        vec![
            article(1, 10),
            article(2, 20),
            article(3, 30),
            tagged(4, 5, 20, &[tag("a", format!("30023:{author}:x"))]),
        ],
        // The same of a replaceable event.
        vec![
            profile(1, 10),
            profile(2, 20),
            profile(3, 20),
            tagged(4, 5, 20, &[tag("a", format!("0:{author}:"))]),
        ],
        // A deletion of another author.
        vec![
            tagged(1, 1, 10, &[]),
            OwnedEvent { pubkey: [9; 32], ..tagged(2, 5, 11, &[e(1)]) },
            tagged(3, 5, 11, &[e(2)]),
            tagged(4, 20_001, 11, &[]),
        ],
        // Repetitions, and versions of one time.
        vec![article(2, 10), article(1, 10), article(2, 10), tagged(3, 5, 11, &[e(1)])],
    ];
    for set in sets {
        let expected = model(&set);
        each_order(&set, &mut |order| assert_eq!(stored(order), expected, "{order:?}"));
    }
}

#[test]
fn what_remains_is_the_same_in_random_orders_of_many_events() {
    // A generator of numbers below a bound.
    let mut state = 7_u64;
    let mut below = move |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let authors = [[8; 32], [9; 32]];
    let mut events: Vec<OwnedEvent> = Vec::new();
    for number in 0..400_u64 {
        let pubkey = authors[below(2) as usize];
        let kind = [0, 1, 3, 5, 5, 10_002, 20_001, 30_023, 30_024, 1][below(10) as usize];
        let mut tags = vec![tag("d", ["", "x", "y"][below(3) as usize])];
        if kind == 30_023 && below(4) == 0 {
            tags.clear();
        }
        if kind == 5 {
            let author = kernels::hex::encode(&authors[below(2) as usize]);
            let address = match below(3) {
                0 => format!("30023:{author}:{}", ["", "x"][below(2) as usize]),
                1 => format!("0:{author}:"),
                _ => format!("3:{author}:x"),
            };
            let named = events.get(below(number + 1) as usize).map_or([7; 32], |event| event.id);
            tags.push(if below(2) == 0 {
                tag("a", address)
            } else {
                tag("e", kernels::hex::encode(&named))
            });
        }
        let mut id = [0; 32];
        id[..8].copy_from_slice(&below(1 << 30).to_le_bytes());
        id[8..16].copy_from_slice(&number.to_le_bytes());
        let event = tagged(0, kind, 1_000 + below(40) as i64, &tags);
        events.push(OwnedEvent { id, pubkey, ..event });
    }
    events.extend_from_within(..20);
    let expected = model(&events);
    assert!((50..300).contains(&expected.len()), "{}", expected.len());
    for _ in 0..12 {
        for at in (1..events.len()).rev() {
            events.swap(at, below(at as u64 + 1) as usize);
        }
        assert_eq!(stored(&events), expected);
    }
}

#[test]
fn of_two_events_with_one_id_the_same_one_remains_in_every_order() {
    let one = tagged(1, 1, 10, &[]);
    let other = OwnedEvent { sig: [7; 64], ..one.clone() };
    let forged =
        OwnedEvent { kind: 30_023, tags: vec![vec!["d".into(), "x".into()]], ..one.clone() };
    let mut found = Vec::new();
    each_order(&[one, other, forged], &mut |order| found.push(stored(order)));
    assert!(
        found.len() == 6 && found.iter().all(|events| *events == found[0] && events.len() == 1)
    );
}

#[test]
fn addresses_of_long_tags_are_kept_apart_or_left_out_by_name() {
    let with_d = |id, len: usize, end: &str| {
        tagged(id, 30_023, 10, &[tag("d", "x".repeat(len - end.len()) + end)])
    };
    let all = [with_d(1, 255, "a"), with_d(2, 255, "b"), with_d(3, 256, "a"), with_d(4, 301, "b")];
    // A deletion whose tag is longer than the tags of a summary.
    let author = kernels::hex::encode(&example().pubkey);
    let address = format!("30023:{author}:{}a", "x".repeat(254));
    let deletion = tagged(5, 5, 10, &[tag("a", address)]);
    let (arena, folder) = (Bump::new(), tempfile::tempdir().unwrap());
    let mut writer = StrfryWriter::create(folder.path()).unwrap();
    let events = all.each_ref().map(|event| event.borrow_in(&arena));
    let outcomes = writer.write(&events).unwrap();
    let fault = nostr::EncodeError::Unsupported(
        "a tag `d` longer than 255 bytes, which strfry does not keep apart from others",
    );
    let stored = Ok(Outcome::Stored);
    assert_eq!(outcomes, [stored, stored, Err(fault), Err(fault)]);
    writer.write(&[deletion.borrow_in(&arena)]).unwrap();
    let counts = writer.finish().unwrap();
    assert_eq!((counts.stored, counts.deleted, counts.replaced), (2, 1, 0));
    // A long `d` of another kind is no address, and an event may be as long as readers take.
    let note = OwnedEvent { kind: 1, ..all[3].clone() };
    let long = OwnedEvent { content: "x".repeat(16 << 20), ..tagged(7, 1, 10, &[]) };
    let folder = tempfile::tempdir().unwrap();
    let mut writer = StrfryWriter::create(folder.path()).unwrap();
    let outcomes = writer.write(&[note.borrow_in(&arena), long.borrow_in(&arena)]).unwrap();
    let fault = nostr::EncodeError::Unsupported("an event longer than 16 MiB");
    assert_eq!(outcomes, [stored, Err(fault)]);
}
