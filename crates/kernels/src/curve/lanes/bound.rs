//! Upper bounds of field elements, tracked with them in debug builds.
//!
//! A bound covers any data that the same operations could have produced, not only the data of this run. So
//! one run of a formula proves its magnitudes, and a release build has no overhead.

#[cfg(debug_assertions)]
use super::field::{MASK_48, MASK_52, Prime, PrimeOf};
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
        let [low @ .., top] = offset;
        let least = low.into_iter().min().expect("four limbs");
        assert!(self.low <= least && self.top <= top, "{self:x?} from {offset:x?}");
        Self { low: low.into_iter().max().expect("four limbs"), top }
    }

    pub(super) fn settled<V: Vector>(self) -> Self {
        let [low, top] = PrimeOf::<V>::settled([self.low, self.top]);
        Self { low, top }
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

    pub(super) fn settled<V: Vector>(self) -> Self {
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

    /// With limbs added to the lower five columns.
    pub(super) fn with_low(self, limbs: Bound) -> Self {
        let terms = limbs.low.max(limbs.top).div_ceil(MASK_52);
        Self { terms: self.terms + terms, value: self.value + 1 }
    }

    pub(super) fn folded<V: Vector>(self) -> Bound {
        let terms = self.terms + PrimeOf::<V>::FOLD_TERMS;
        assert!(terms < 1 << 11, "columns hold 63 bits");
        Bound { low: terms * MASK_52, top: PrimeOf::<V>::folded_top(self.value) }
    }
}

#[cfg(not(debug_assertions))]
impl WideBound {
    pub(super) fn plus(self, _: Self) -> Self {
        self
    }

    pub(super) fn with_low(self, _: Bound) -> Self {
        self
    }

    pub(super) fn folded<V: Vector>(self) -> Bound {
        Bound {}
    }
}
