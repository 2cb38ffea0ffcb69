//! The acknowledgements of a consumer: its cursor, and the acknowledged positions beyond it.

use std::collections::VecDeque;

/// The cursor of a consumer, up to which all events are acknowledged, and which of the next [`MAX_AHEAD`] ones are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckWindow {
    cursor: u64,
    // For every position from `cursor + 1` on, whether it is acknowledged. The first is not, and the last is.
    ahead: VecDeque<bool>,
}

impl AckWindow {
    /// Everything up to `cursor` is acknowledged.
    pub(crate) fn new(cursor: u64) -> Self {
        Self { cursor, ahead: VecDeque::new() }
    }

    /// The last position of the contiguous acknowledged ones.
    pub(crate) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The last position that may be acknowledged.
    pub(crate) fn end(&self) -> u64 {
        self.cursor.saturating_add(MAX_AHEAD)
    }

    /// Number of acknowledged positions beyond the cursor.
    pub(crate) fn ahead(&self) -> usize {
        self.ahead.iter().filter(|is_acked| **is_acked).count()
    }

    /// Whether a position is acknowledged.
    pub(crate) fn has(&self, position: u64) -> bool {
        position <= self.cursor || self.ahead.get(self.index(position)).is_some_and(|acked| *acked)
    }

    /// Acknowledges a position up to [`end`](Self::end). Whether it was not acknowledged before.
    pub(crate) fn acknowledge(&mut self, position: u64) -> bool {
        if self.has(position) || position > self.end() {
            return false;
        }
        let index = self.index(position);
        if index >= self.ahead.len() {
            self.ahead.resize(index + 1, false);
        }
        self.ahead[index] = true;
        self.advance();
        true
    }

    /// Acknowledges every position up to this one.
    pub(crate) fn acknowledge_through(&mut self, position: u64) {
        let passed = position.saturating_sub(self.cursor);
        let passed = usize::try_from(passed).unwrap_or(usize::MAX).min(self.ahead.len());
        self.ahead.drain(..passed);
        self.cursor = self.cursor.max(position);
        self.advance();
    }

    /// Moves the cursor over the acknowledged positions that follow it.
    fn advance(&mut self) {
        while self.ahead.front() == Some(&true) {
            self.ahead.pop_front();
            self.cursor += 1;
        }
    }

    /// The index in `ahead` of a position beyond the cursor.
    fn index(&self, position: u64) -> usize {
        usize::try_from(position - self.cursor - 1).unwrap_or(usize::MAX)
    }

    /// The positions beyond the cursor, one bit each.
    pub(crate) fn to_bits(&self) -> Vec<u8> {
        let mut bits = vec![0; self.ahead.len().div_ceil(8)];
        for (at, _) in self.ahead.iter().enumerate().filter(|(_, is_acked)| **is_acked) {
            bits[at / 8] |= 1 << (at % 8);
        }
        bits
    }

    /// The window of a cursor and the bits of [`to_bits`](Self::to_bits); `None` for too many bits.
    pub(crate) fn from_bits(cursor: u64, bits: &[u8]) -> Option<Self> {
        if bits.len() as u64 > MAX_AHEAD / 8 {
            return None;
        }
        let mut window = Self::new(cursor);
        let is_set = |at: &u64| bits[(*at / 8) as usize] & (1 << (*at % 8)) != 0;
        for at in (0..bits.len() as u64 * 8).filter(is_set) {
            window.acknowledge(cursor.checked_add(at + 1)?);
        }
        Some(window)
    }
}

/// Maximum distance of an acknowledged position from the cursor, and of a delivered one: a multiple of 8.
pub(crate) const MAX_AHEAD: u64 = 65_536;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cursor_moves_over_a_contiguous_prefix_only() {
        let mut window = AckWindow::new(10);
        assert!(window.acknowledge(12) && window.acknowledge(13) && !window.acknowledge(12));
        assert_eq!((window.cursor(), window.ahead()), (10, 2));
        assert!(window.acknowledge(11) && !window.acknowledge(3));
        assert_eq!((window.cursor(), window.ahead()), (13, 0));
    }

    #[test]
    fn a_position_beyond_the_window_is_not_acknowledged() {
        let mut window = AckWindow::new(5);
        assert!(!window.acknowledge(5 + MAX_AHEAD + 1) && window.acknowledge(5 + MAX_AHEAD));
        assert_eq!(window.to_bits().len() as u64, MAX_AHEAD / 8);
        assert_eq!(AckWindow::from_bits(5, &window.to_bits()), Some(window));
        assert_eq!(AckWindow::from_bits(5, &[0; MAX_AHEAD as usize / 8 + 1]), None);
    }

    proptest! {
        #[test]
        fn a_window_is_a_set_of_positions(
            start in 0..50_u64,
            acks in prop::collection::vec((0..200_u64, prop::bool::weighted(0.05)), 0..200),
        ) {
            let (mut window, mut set): (_, BTreeSet<u64>) = (AckWindow::new(start), (0..=start).collect());
            for (position, is_prefix) in acks {
                if is_prefix {
                    window.acknowledge_through(position);
                    set.extend(0..=position);
                } else {
                    prop_assert_eq!(window.acknowledge(position), set.insert(position));
                }
                let cursor = (0..).find(|at| !set.contains(&(at + 1))).unwrap();
                prop_assert_eq!(window.cursor(), cursor);
                prop_assert_eq!(window.ahead(), set.iter().filter(|at| **at > cursor).count());
                prop_assert!((0..220).all(|at| window.has(at) == set.contains(&at)));
                let read = AckWindow::from_bits(cursor, &window.to_bits());
                prop_assert_eq!(read.as_ref(), Some(&window));
            }
        }
    }
}
