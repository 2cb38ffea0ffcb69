//! Verification in lanes: the same steps for several signatures at once, written once for every kind of vector.

#![expect(
    clippy::needless_range_loop,
    reason = "iterator adaptors over vectors are closures, which are not compiled with the features \
              of the function around them"
)]

mod bound;
mod doubles;
mod field;
#[cfg(target_arch = "x86_64")]
mod fma;
#[cfg(target_arch = "x86_64")]
mod ifma;
mod inverse;
mod ladder;
#[cfg(target_arch = "aarch64")]
mod neon;
mod p256;
mod point;
mod rounds;
mod rows;
mod secp256k1;
mod single;
mod table;
mod terms;
#[cfg(test)]
mod tests;
mod vector;
mod verify;
mod words;

use super::equation::{Equation, Rule};
use super::p256::P256;
use super::portable::Affine;
use super::secp256k1::Secp256k1;
use super::table::{KeyTable, Window};
use super::{Backend, Curve, Key, Verdict};
pub(super) use field::Prime;
#[cfg(target_arch = "x86_64")]
use fma::Fma;
#[cfg(target_arch = "x86_64")]
use ifma::Ifma;
#[cfg(target_arch = "aarch64")]
use neon::Neon;
use vector::Engine;
use words::Words;

/// Runs a body with the engine of a back end for a curve; `None` if the processor does not have it.
macro_rules! with_engine {
    ($curve:ty, $backend:expr, |$engine:ident| $body:expr) => {
        match $backend {
            Backend::Words => Words::<$curve>::detect().map(|$engine| $body),
            #[cfg(target_arch = "x86_64")]
            Backend::Fma => Fma::<$curve>::detect().map(|$engine| $body),
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma => Ifma::<$curve>::detect().map(|$engine| $body),
            #[cfg(target_arch = "aarch64")]
            Backend::Neon => Neon::<$curve>::detect().map(|$engine| $body),
            _ => None,
        }
    };
}

#[cfg(test)]
use with_engine;

/// Whether the back end is one with lanes, and the processor has its instructions.
pub(super) fn is_available(backend: Backend) -> bool {
    with_engine!(Secp256k1, backend, |_engine| ()).is_some()
}

/// A curve's verification in lanes. Implemented per curve and not for all at once, so that this crate has its code: a generic
/// function is compiled in every crate that calls it.
pub(super) trait InLanes: Sized {
    /// Writes the verdicts on the equations to `verdicts` at the equations' indices, if the back end is one with lanes and
    /// available. Returns whether it did.
    fn check_many(
        backend: Backend,
        equations: &[Equation<'_, Self>],
        rule: Rule,
        verdicts: &mut [Verdict],
    ) -> bool
    where
        Self: Curve;

    /// The tables of the keys by the fastest lanes here, if there are any; `None` where the bytes are not a key.
    fn tables_of(keys: &[Key<'_, Self>]) -> Option<Vec<Option<KeyTable<Self>>>>
    where
        Self: Curve;

    /// The windows of the points by the fastest lanes here, if there are any.
    fn windows_of(points: &[Affine<Self>]) -> Option<Vec<Window>>
    where
        Self: Curve;
}

macro_rules! in_lanes {
    ($($curve:ty),*) => {
        $(
            impl InLanes for $curve {
                fn check_many(
                    backend: Backend,
                    equations: &[Equation<'_, Self>],
                    rule: Rule,
                    verdicts: &mut [Verdict],
                ) -> bool {
                    with_engine!(Self, backend, |engine| {
                        verify::check(engine, equations, rule, verdicts)
                    })
                    .is_some()
                }

                fn tables_of(keys: &[Key<'_, Self>]) -> Option<Vec<Option<KeyTable<Self>>>> {
                    with_engine!(Self, Backend::best(), |engine| table::tables_of(engine, keys))
                }

                fn windows_of(points: &[Affine<Self>]) -> Option<Vec<Window>> {
                    with_engine!(Self, Backend::best(), |engine| table::windows_of(engine, points))
                }
            }
        )*
    };
}

in_lanes!(P256, Secp256k1);

/// The most lanes that two vectors of any engine have.
const MOST_LANES: usize = 16;
