//! Walks over relays in memory, in every order and with every limit.

use nostr::negentropy;

use super::*;

/// A relay in memory.
#[derive(Clone, Copy, Debug)]
struct Relay {
    order: Order,
    cap: usize,
    hints: bool,
    compares: bool,
}

/// Which events a page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The newest ones, in this order or another, as NIP-01 promises.
    Newest,
    /// The oldest ones.
    Oldest,
    /// Any.
    Random,
}

/// An event: its creation time, kind and author.
type Stored = (Id, i64, u16, Id);

fn stored(number: usize, created_at: i64, kind: u16, author: u8) -> Stored {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&(number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    (id, created_at, kind, [author; 32])
}

impl Relay {
    fn matching(events: &[Stored], filter: &Filter) -> Vec<Stored> {
        let matches = |(id, at, kind, author): &&Stored| {
            (filter.ids.is_empty() || filter.ids.contains(id))
                && (filter.kinds.is_empty() || filter.kinds.contains(kind))
                && (filter.authors.is_empty() || filter.authors.contains(author))
                && filter.since.is_none_or(|since| *at >= since)
                && filter.until.is_none_or(|until| *at <= until)
        };
        events.iter().filter(matches).copied().collect()
    }

    fn page(&self, events: &[Stored], filter: &Filter, round: u64) -> (Vec<Stored>, Option<Hint>) {
        let mut matching = Self::matching(events, filter);
        let all = matching.len();
        let mix = |id: &Id| {
            let word = u64::from_be_bytes(id[..8].try_into().unwrap());
            (word ^ round).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 7
        };
        match self.order {
            Order::Newest => matching.sort_by_key(|event| (std::cmp::Reverse(event.1), event.0)),
            Order::Oldest => matching.sort_by_key(|event| (event.1, event.0)),
            Order::Random => matching.sort_by_key(|event| mix(&event.0)),
        }
        matching.truncate(self.cap.min(filter.limit.unwrap() as usize));
        // The order within a page is of no interest.
        matching.sort_by_key(|event| mix(&event.0));
        let hint = if matching.len() < all { Hint::More } else { Hint::Finish };
        (matching, self.hints.then_some(hint))
    }

    /// Walks to the end. The events, why some may be missing, and the number of requests.
    fn walk(&self, events: &[Stored], filter: &Filter) -> (HashSet<Id>, Option<Gap>, u64) {
        let mut walk = Walk::new(filter.clone(), 1_700_000_000);
        let (mut received, mut requests) = (HashSet::new(), 0);
        while let Some(step) = walk.next() {
            requests += 1;
            assert!(requests < 100_000, "no end: {self:?}");
            match step {
                Step::Request(request) => {
                    let (page, hint) = self.page(events, &request, requests);
                    let is_probing = walk.is_probing();
                    for event in page {
                        if walk.take(Some(event.0), Some(event.1)) && !is_probing {
                            received.insert(event.0);
                        }
                    }
                    walk.end_page(hint);
                }
                Step::Compare(..) if !self.compares => walk.not_compared(),
                Step::Compare(filter, known) => walk.compared(missing(events, &filter, &known)),
            }
        }
        (received, walk.gap().cloned(), requests)
    }
}

fn missing(events: &[Stored], filter: &Filter, known: &Items) -> Vec<Id> {
    let item = |event: &Stored| Item { created_at: event.1 as u64, id: event.0 };
    let theirs: Items = Relay::matching(events, filter).iter().map(item).collect();
    let (mut message, mut missing) = (negentropy::open(known), Vec::new());
    loop {
        let answer = negentropy::answer(&theirs, &message, 60_000).unwrap();
        let round = negentropy::compare(known, &answer, 60_000).unwrap();
        missing.extend(round.missing);
        match round.reply {
            Some(reply) => message = reply,
            None => return missing,
        }
    }
}

fn ids(events: &[Stored]) -> HashSet<Id> {
    events.iter().map(|event| event.0).collect()
}

/// Sets of events: apart, in pairs, and all in few seconds.
fn corpora() -> Vec<Vec<Stored>> {
    let corpus = |count: usize, seconds: i64, kinds: u16| -> Vec<Stored> {
        let event = |number: usize| {
            let at = 1_000_000 + (number as i64 * 7_919) % seconds;
            stored(number, at, number as u16 % kinds, number as u8 % 3)
        };
        (0..count).map(event).collect()
    };
    vec![
        Vec::new(),
        corpus(1, 1, 1),
        corpus(60, 1_000_000, 3),
        corpus(60, 30, 4),
        corpus(60, 5, 7),
        corpus(40, 1, 40),
        corpus(40, 1, 1),
        corpus(200, 90, 9),
    ]
}

const ORDERS: [Order; 3] = [Order::Newest, Order::Oldest, Order::Random];

#[test]
fn every_order_and_limit_of_a_relay_brings_all_events_or_says_what_is_missing() {
    let filter = Filter::default();
    for events in corpora() {
        for order in ORDERS {
            for cap in (1..=8).chain([20, 39, 40, 41, 59, 60, 61, 100, 199, 200, 201, 500]) {
                // Any events, which NIP-01 does not allow, are noticed where many are left out.
                let is_few_left_out = cap < events.len() && 3 * cap > events.len();
                if order == Order::Random && is_few_left_out {
                    continue;
                }
                for (hints, compares) in
                    [(false, false), (true, false), (false, true), (true, true)]
                {
                    let relay = Relay { order, cap, hints, compares };
                    let (received, gap, requests) = relay.walk(&events, &filter);
                    let is_whole = received == ids(&events);
                    let what =
                        format!("{relay:?}: {} of {}, {requests}", received.len(), events.len());
                    assert!(is_whole || gap.is_some(), "{what}");
                    // With ids compared every second can be proved.
                    assert!(gap.is_none() || !compares, "{what}: {gap:?}");
                }
            }
        }
    }
}

#[test]
fn a_relay_with_the_newest_first_is_asked_for_each_page_once() {
    let events: Vec<Stored> = (0..3_000).map(|at| stored(at, at as i64, 1, 1)).collect();
    let relay = Relay { order: Order::Newest, cap: 300, hints: false, compares: false };
    let (received, gap, requests) = relay.walk(&events, &Filter::default());
    assert_eq!((received.len(), gap), (3_000, None));
    assert!(requests <= 15, "{requests}");
    let hinted = Relay { hints: true, ..relay };
    assert_eq!(hinted.walk(&events[..200], &Filter::default()).2, 1, "finish ends the walk");
}

#[test]
fn a_full_second_is_divided_by_kinds_authors_and_ids() {
    let at = 1_000;
    let events: Vec<Stored> = (0..1_200)
        .map(|number| stored(number, at, 1 + number as u16 % 5, (number % 50) as u8))
        .collect();
    for order in ORDERS {
        let relay = Relay { order, cap: 300, hints: false, compares: false };
        let (received, gap, _) = relay.walk(&events, &Filter::default());
        assert_eq!((received.len(), gap), (1_200, None), "{order:?}");
        // One kind has 240 events, and the first 30 authors have 720.
        let relay = Relay { cap: 50, ..relay };
        let authors: Vec<Id> = (0..30).map(|author| [author; 32]).collect();
        let (received, gap, _) = relay.walk(&events, &Filter { authors, ..Filter::default() });
        assert_eq!((received.len(), gap), (720, None), "{order:?}");
        let wanted: Vec<Id> = events.iter().map(|event| event.0).collect();
        let (received, gap, _) = relay.walk(&events, &Filter { ids: wanted, ..Filter::default() });
        assert_eq!((received.len(), gap), (1_200, None), "{order:?}");
        let one_kind = Filter { kinds: vec![1], ..Filter::default() };
        assert_eq!(relay.walk(&events, &one_kind).1, Some(Gap::FullSecond(at)), "{order:?}");
    }
}

#[test]
fn the_only_second_of_a_filter_is_proved_by_a_larger_page_of_another() {
    let mut events = vec![stored(0, 5, 1, 1)];
    let relay = Relay { order: Order::Newest, cap: 10, hints: false, compares: false };
    let filter = Filter { kinds: vec![1], ..Filter::default() };
    assert_eq!(relay.walk(&events, &filter).1, Some(Gap::FullSecond(5)));
    events.push(stored(1, 9, 2, 2));
    assert_eq!(relay.walk(&events, &filter).1, None);
    let filter = Filter { ids: vec![events[0].0], ..Filter::default() };
    assert_eq!(relay.walk(&events[..1], &filter).1, None);
}

#[test]
fn a_limit_is_met_by_several_pages() {
    let events: Vec<Stored> = (0..900).map(|at| stored(at, at as i64 / 2, 1, 1)).collect();
    for (cap, limit) in [(100, 250), (7, 250), (500, 3), (500, 0), (500, 2_000), (500, 900)] {
        let relay = Relay { order: Order::Newest, cap, hints: false, compares: true };
        let filter = Filter { limit: Some(limit), ..Filter::default() };
        let (received, gap, requests) = relay.walk(&events, &filter);
        let expected = ids(&events[900 - (limit as usize).min(900)..]);
        assert_eq!(received.len(), expected.len(), "{cap} {limit}");
        assert!(limit % 2 == 1 || received == expected, "{cap} {limit}");
        assert_eq!(gap, None, "{cap} {limit}");
        assert!(limit > 3 || requests == 1, "{cap} {limit}: {requests}");
    }
}

#[test]
fn a_relay_that_does_not_keep_to_the_times_is_named() {
    let mut walk = Walk::new(Filter::default(), 1_000);
    walk.next();
    walk.take(Some([1; 32]), Some(10));
    walk.end_page(None);
    while walk.next().is_some() {
        walk.take(Some([1; 32]), Some(10));
        walk.take(Some([2; 32]), Some(2_000));
        walk.end_page(None);
    }
    assert_eq!(walk.gap(), Some(&Gap::TimesIgnored));
    let mut walk = Walk::new(Filter::default(), 1_000);
    walk.next();
    walk.end_page(Some(Hint::More));
    assert!(walk.next().is_none());
    assert_eq!(walk.gap(), Some(&Gap::Unsent));
}

/// Answers every request as `relay` does, and says `finish` every time. The ids of the events.
fn walk_with_finish(relay: Relay, events: &[Stored], filter: &Filter) -> (HashSet<Id>, u64) {
    let mut walk = Walk::new(filter.clone(), 1_700_000_000);
    let (mut received, mut requests) = (HashSet::new(), 0);
    while let Some(step) = walk.next() {
        let Step::Request(request) = step else { panic!("{step:?}") };
        requests += 1;
        for (id, at, ..) in relay.page(events, &request, requests).0 {
            assert!(walk.take(Some(id), Some(at)), "no event is dropped");
            received.insert(id);
        }
        walk.end_page(Some(Hint::Finish));
    }
    assert_eq!(walk.gap(), None);
    (received, requests)
}

#[test]
fn finish_is_not_believed_after_a_page_that_a_limit_may_have_cut_off() {
    let events: Vec<Stored> = (0..4_000).map(|at| stored(at, at as i64, 1, 1)).collect();
    let relay = |cap| Relay { order: Order::Newest, cap, hints: false, compares: false };
    // The limit of the request, or of the store behind it.
    for cap in [usize::MAX, 500, 501, 777] {
        let (received, requests) = walk_with_finish(relay(cap), &events, &Filter::default());
        assert_eq!(received.len(), 4_000, "{cap}");
        assert!(requests <= 15, "{cap}: {requests}");
    }
    // A smaller one is believed: the relay hides the events that it does not send.
    assert_eq!(
        walk_with_finish(relay(499), &events, &Filter::default()),
        (ids(&events[3_501..]), 1)
    );
}

#[test]
fn finish_is_not_believed_where_the_page_lacks_an_event_that_was_sent_before() {
    let answer = |walk: &mut Walk, events: &[(usize, i64)], hint| {
        let Some(Step::Request(filter)) = walk.next() else { panic!("no request") };
        for (number, at) in events {
            walk.take(Some(stored(*number, *at, 1, 1).0), Some(*at));
        }
        walk.end_page(hint);
        filter.until
    };
    for (page, is_believed) in
        [(&[(3, 20), (4, 20), (5, 10)][..], true), (&[(3, 20), (5, 10)], false)]
    {
        let mut walk = Walk::new(Filter::default(), 1_700_000_000);
        let first = [(1, 40), (2, 30), (3, 20), (4, 20)];
        assert_eq!(answer(&mut walk, &first, Some(Hint::More)), None);
        assert_eq!(answer(&mut walk, &[(1, 40)], None), None, "whether there are newer ones");
        assert_eq!(answer(&mut walk, page, Some(Hint::Finish)), Some(20));
        let is_older_wanted = walk.tasks.iter().any(|task| matches!(task, Task::Range { .. }));
        assert_eq!(is_older_wanted, !is_believed, "{page:?}");
    }
}

#[test]
fn a_walk_continues_on_another_connection() {
    let events: Vec<Stored> = (0..1_000).map(|at| stored(at, at as i64, 1, 1)).collect();
    let relay = Relay { order: Order::Newest, cap: 100, hints: false, compares: false };
    let mut walk = Walk::new(Filter::default(), 1_700_000_000);
    let (mut received, mut requests) = (HashSet::new(), 0);
    while let Some(step) = walk.next() {
        let Step::Request(filter) = step else { panic!("{step:?}") };
        requests += 1;
        let (page, hint) = relay.page(&events, &filter, requests);
        // Every third answer is cut off with its connection.
        let is_lost = requests % 3 == 0;
        for event in page.iter().take(if is_lost { 50 } else { 100 }) {
            walk.take(Some(event.0), Some(event.1));
            received.insert(event.0);
        }
        if is_lost { walk.reconnect(3) } else { walk.end_page(hint) }
    }
    assert_eq!((received, walk.gap()), (ids(&events), None));
    assert!(requests < 80, "{requests}");
}
