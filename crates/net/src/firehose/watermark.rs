//! How far has everything been acknowledged?

use std::collections::VecDeque;

/// Follows the events of one host from arrival to acknowledgement, and knows the cursor that may be
/// stored: that of the last event before which, in the order of arrival, nothing is open.
///
/// The order is that of arrival and not that of numbers: a server whose numbers begin anew, or go back,
/// is followed where it goes. What has no number is waited for like the rest.
#[derive(Clone, Debug, Default)]
pub struct Watermark {
    /// What has not been passed yet, the oldest first.
    open: VecDeque<Open>,
    /// How many events have been passed: the ticket of the first one that is open.
    passed: u64,
    cursor: Option<u64>,
}

/// The place of one event in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

#[derive(Clone, Copy, Debug)]
struct Open {
    seq: Option<u64>,
    is_done: bool,
}

impl Watermark {
    /// Begins at the cursor that is stored, if there is one.
    pub fn new(cursor: Option<u64>) -> Self {
        Self { cursor, ..Self::default() }
    }

    /// An event has come, with this number if it has one.
    pub fn begin(&mut self, seq: Option<u64>) -> Ticket {
        self.open.push_back(Open { seq, is_done: false });
        Ticket(self.passed + self.open.len() as u64 - 1)
    }

    /// It is acknowledged. Doing so twice changes nothing.
    pub fn done(&mut self, ticket: Ticket) {
        let at = ticket.0.checked_sub(self.passed).and_then(|at| usize::try_from(at).ok());
        if let Some(open) = at.and_then(|at| self.open.get_mut(at)) {
            open.is_done = true;
        }
        while let Some(first) = self.open.pop_front_if(|open| open.is_done) {
            self.passed += 1;
            self.cursor = first.seq.or(self.cursor);
        }
    }

    /// The host counts anew: there is no cursor until an event that comes from now on is passed.
    pub fn forget(&mut self) {
        self.cursor = None;
        self.open.iter_mut().for_each(|open| open.seq = None);
    }

    /// The cursor that may be stored.
    pub fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// How many events are between the first that is open and the last that came.
    pub fn open(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_passes_only_what_is_done_without_a_gap() {
        let mut mark = Watermark::new(Some(4));
        let [five, seven, nine] = [5, 7, 9].map(|seq| mark.begin(Some(seq)));
        mark.done(seven);
        mark.done(seven);
        assert_eq!(mark.cursor(), Some(4));
        mark.done(five);
        assert_eq!((mark.cursor(), mark.open()), (Some(7), 1));
        mark.done(nine);
        mark.done(five);
        assert_eq!((mark.cursor(), mark.open()), (Some(9), 0));
    }

    #[test]
    fn every_order_of_acknowledgement_keeps_behind_the_first_open_one() {
        for order in permutations(5) {
            let mut mark = Watermark::default();
            let tickets: Vec<Ticket> = (0..5).map(|seq| mark.begin(Some(seq))).collect();
            let mut done = [false; 5];
            for at in order {
                mark.done(tickets[at]);
                done[at] = true;
                let behind = done.iter().position(|done| !done).unwrap_or(5);
                assert_eq!(mark.cursor(), (behind as u64).checked_sub(1));
            }
        }
    }

    fn permutations(len: usize) -> Vec<Vec<usize>> {
        if len == 0 {
            return vec![vec![]];
        }
        let put = |shorter: Vec<usize>| {
            (0..len).map(move |at| {
                let mut longer = shorter.clone();
                longer.insert(at, len - 1);
                longer
            })
        };
        permutations(len - 1).into_iter().flat_map(put).collect()
    }

    #[test]
    fn what_has_no_number_is_waited_for() {
        let mut mark = Watermark::new(Some(1));
        let (garbage, next) = (mark.begin(None), mark.begin(Some(2)));
        mark.done(next);
        assert_eq!(mark.cursor(), Some(1));
        mark.done(garbage);
        assert_eq!(mark.cursor(), Some(2));
    }

    #[test]
    fn numbers_that_go_back_are_followed() {
        let mut mark = Watermark::new(Some(1_000));
        let low = mark.begin(Some(3));
        mark.done(low);
        assert_eq!(mark.cursor(), Some(3));
    }

    #[test]
    fn a_host_that_counts_anew_has_no_cursor_until_something_new_is_done() {
        let mut mark = Watermark::new(Some(1_000));
        let old = mark.begin(Some(1_001));
        mark.forget();
        mark.done(old);
        assert_eq!(mark.cursor(), None);
        let new = mark.begin(Some(1));
        mark.done(new);
        assert_eq!(mark.cursor(), Some(1));
    }
}
