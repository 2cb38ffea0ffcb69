//! Parts of a filter, for a second that has more events than a relay sends at once.

use nostr::Filter;

/// The parts of a filter, all with fewer ids, kinds or authors; `None` if it has one of each, or any author.
pub(super) fn parts(filter: &Filter) -> Option<Vec<Filter>> {
    if filter.ids.len() > 1 {
        let part = |ids: &[[u8; 32]]| Filter { ids: ids.to_vec(), ..filter.clone() };
        return Some(halves(&filter.ids).map(part).to_vec());
    }
    if filter.kinds.is_empty() {
        let part = |first: u16| {
            let kinds = (first..=first + (KINDS_OF_SLICE - 1)).collect();
            Filter { kinds, ..filter.clone() }
        };
        return Some((0..=u16::MAX).step_by(KINDS_OF_SLICE.into()).map(part).collect());
    }
    if filter.kinds.len() > 1 {
        let part = |kinds: &[u16]| Filter { kinds: kinds.to_vec(), ..filter.clone() };
        return Some(halves(&filter.kinds).map(part).to_vec());
    }
    let part = |authors: &[[u8; 32]]| Filter { authors: authors.to_vec(), ..filter.clone() };
    (filter.authors.len() > 1).then(|| halves(&filter.authors).map(part).to_vec())
}

fn halves<T>(list: &[T]) -> [&[T]; 2] {
    let (left, right) = list.split_at(list.len() / 2);
    [left, right]
}

/// The maximum number of events that can match, where the filter names ids. Of a replaceable event older ones may be stored too.
pub(super) fn most_events(filter: &Filter) -> Option<u64> {
    (!filter.ids.is_empty()).then_some(filter.ids.len() as u64)
}

/// Kinds in a request for a part of a second: 12 KB.
const KINDS_OF_SLICE: u16 = 2_048;
