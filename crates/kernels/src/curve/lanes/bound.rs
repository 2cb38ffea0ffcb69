//! Upper bounds of field elements, tracked with them in debug builds.
//!
//! A bound covers any data that the same operations could have produced, not only the data of this run. So
//! one run of a formula proves its magnitudes, and a release build has no overhead.

#[cfg(debug_assertions)]
use super::field::{MASK_48, MASK_52};
use super::vector::Vector;

/// Upper bounds of the limbs of an element. Tracked in debug builds only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// Of limbs 0 to 3.
    #[cfg(debug_assertions)]
    pub(super) low: u64,
    /// Of limb 4.
    #[cfg(debug_assertions)]
    pub(super) top: u64,
}

#[cfg(debug_assertions)]
impl Bound {
    pub(super) const REDUCED: Self = Self::of(MASK_52, MASK_48);

    pub(super) const fn of(low: u64, top: u64) -> Self {
        Self { low, top }
    }

    pub(super) fn times<V: Vector>(self, other: Self) -> WideBound {
        let beyond = |top| u128::from(top) + 1;
        let start = u128::from(V::SPARE) << 53;
        WideBound { terms: 9 + V::SPARE, value: beyond(self.top) * beyond(other.top) + start }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let low = self.low.checked_add(other.low).expect("limbs hold 64 bits");
        Self { low, top: self.top + other.top }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), top: self.top.max(other.top) }
    }

    /// The bound of `offset − x` for x within this bound.
    pub(super) fn taken_from(self, offset: [u64; 5]) -> Self {
        let (least, most) = (offset[1].min(offset[0]), offset[1].max(offset[0]));
        assert!(self.low <= least && self.top <= offset[4], "{self:x?} from {offset:x?}");
        Self { low: most, top: offset[4] }
    }

    pub(super) fn carried(self) -> Self {
        let into_next = (0..4).fold(0, |carry, _| (self.low + carry) >> 52);
        let top = self.top + into_next;
        assert!(top <= MASK_52, "a factor's top limb has 52 bits, not {top:#x}");
        Self { low: MASK_52, top }
    }
}

#[cfg(not(debug_assertions))]
impl Bound {
    pub(super) const REDUCED: Self = Self {};

    #[cfg(test)]
    pub(super) const fn of(_: u64, _: u64) -> Self {
        Self {}
    }

    pub(super) fn times<V: Vector>(self, _: Self) -> WideBound {
        WideBound {}
    }

    pub(super) fn plus(self, _: Self) -> Self {
        self
    }

    pub(super) fn or(self, _: Self) -> Self {
        self
    }

    pub(super) fn taken_from(self, _: [u64; 5]) -> Self {
        self
    }

    pub(super) fn carried(self) -> Self {
        self
    }
}

/// Upper bounds of sums of products. Tracked in debug builds only.
#[derive(Clone, Copy, Debug)]
pub(super) struct WideBound {
    /// The most 52-bit terms that any column holds.
    #[cfg(debug_assertions)]
    terms: u64,
    /// The number is below this times 2⁴¹⁶.
    #[cfg(debug_assertions)]
    value: u128,
}

#[cfg(debug_assertions)]
impl WideBound {
    pub(super) fn plus(self, other: Self) -> Self {
        Self { terms: self.terms + other.terms, value: self.value + other.value }
    }

    pub(super) fn folded(self) -> Bound {
        assert!(self.terms < 1 << 11, "columns hold 63 bits");
        assert!(self.value <= 1 << 104, "the last column becomes a factor, of 52 bits");
        // A column receives the low and high halves of the fold from 2²⁶⁰ and one of that from 2²⁵⁶.
        Bound { low: (self.terms + 3) * MASK_52, top: MASK_48 }
    }
}

#[cfg(not(debug_assertions))]
impl WideBound {
    pub(super) fn plus(self, _: Self) -> Self {
        self
    }

    pub(super) fn folded(self) -> Bound {
        Bound {}
    }
}
