//! The coordinates of a key that was given in bytes.

use super::Curve;
use super::modular::{Field, Residue};
use super::portable::Affine;
use super::table::Row;

/// Coordinates that may be of no point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coordinates<C: Curve> {
    pub(super) x: Field<C>,
    pub(super) y: Y<C>,
}

/// The y of a point: known, or known to be even or odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Y<C: Curve> {
    Given(Field<C>),
    Even,
    Odd,
}

impl<C: Curve> Coordinates<C> {
    /// Of no point.
    pub(super) const NONE: Self = Self { x: Residue::ZERO, y: Y::Even };

    /// Whether y is odd.
    pub(super) fn is_odd(self) -> bool {
        match self.y {
            Y::Given(y) => y.is_odd(),
            Y::Even => false,
            Y::Odd => true,
        }
    }

    /// x, and y where it is given.
    pub(super) fn row(self) -> Row {
        match self.y {
            Y::Given(y) => Row::new(self.x.words(), y.words()),
            Y::Even | Y::Odd => Row::new(self.x.words(), [0; 4]),
        }
    }

    /// Whether the point with this x and the parity of y has the given y.
    pub(super) fn allow(self, point: Affine<C>) -> bool {
        self.y == Y::Given(point.y) || !matches!(self.y, Y::Given(_))
    }

    /// The point, if there is one.
    pub(super) fn to_point(self) -> Option<Affine<C>> {
        Affine::on_curve(self.x, self.is_odd()).filter(|point| self.allow(*point))
    }
}
