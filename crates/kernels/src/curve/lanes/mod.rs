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

/// Writes the verdict on each equation to `verdicts` at the equation's index, if the back end is one with lanes and
/// available. Returns whether it did.
pub(super) fn check_many<C: Curve>(
    backend: Backend,
    equations: &[Equation<'_, C>],
    rule: Rule,
    verdicts: &mut [Verdict],
) -> bool {
    with_engine!(C, backend, |engine| verify::check(engine, equations, rule, verdicts)).is_some()
}

/// The table of each key by the fastest lanes here, if there are any; `None` where the bytes are not a key.
pub(super) fn tables_of<C: Curve>(keys: &[Key<'_, C>]) -> Option<Vec<Option<KeyTable<C>>>> {
    with_engine!(C, Backend::best(), |engine| table::tables_of(engine, keys))
}

/// The window of each point by the fastest lanes here, if there are any.
pub(super) fn windows_of<C: Curve>(points: &[Affine<C>]) -> Option<Vec<Window>> {
    with_engine!(C, Backend::best(), |engine| table::windows_of(engine, points))
}

/// The most lanes that two vectors of any engine have.
const MOST_LANES: usize = 16;
