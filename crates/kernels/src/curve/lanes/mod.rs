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
mod ladder;
#[cfg(target_arch = "aarch64")]
mod neon;
mod point;
mod single;
mod table;
#[cfg(test)]
mod tests;
mod vector;
mod verify;

use super::equation::{Equation, Rule};
use super::portable::Affine;
use super::table::{KeyTable, Window};
use super::{Backend, Key, Verdict};
#[cfg(target_arch = "x86_64")]
use fma::Fma;
#[cfg(target_arch = "x86_64")]
use ifma::Ifma;
#[cfg(target_arch = "aarch64")]
use neon::Neon;
use vector::Engine;

/// Runs a body with the engine of a back end; `None` if the processor does not have it.
macro_rules! with_engine {
    ($backend:expr, |$engine:ident| $body:expr) => {
        match $backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Fma => Fma::detect().map(|$engine| $body),
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma => Ifma::detect().map(|$engine| $body),
            #[cfg(target_arch = "aarch64")]
            Backend::Neon => Neon::detect().map(|$engine| $body),
            _ => None,
        }
    };
}

#[cfg(test)]
use with_engine;

/// Whether the back end is one with lanes, and the processor has its instructions.
pub(super) fn is_available(backend: Backend) -> bool {
    with_engine!(backend, |_engine| ()).is_some()
}

/// Writes the verdict on each equation to `verdicts` at the equation's index, if the back end is one with lanes and
/// available. Returns whether it did.
pub(super) fn check_many(
    backend: Backend,
    equations: &[Equation<'_>],
    rule: Rule,
    verdicts: &mut [Verdict],
) -> bool {
    with_engine!(backend, |engine| verify::check(engine, equations, rule, verdicts)).is_some()
}

/// The table of each key by the fastest lanes here, if there are any; `None` where the bytes are not a key.
pub(super) fn tables_of(keys: &[Key<'_>]) -> Option<Vec<Option<KeyTable>>> {
    with_engine!(Backend::best(), |engine| table::tables_of(engine, keys))
}

/// The window of each point by the fastest lanes here, if there are any.
pub(super) fn windows_of(points: &[Affine]) -> Option<Vec<Window>> {
    with_engine!(Backend::best(), |engine| table::windows_of(engine, points))
}

/// The most lanes that two vectors of any engine have.
const MOST_LANES: usize = 16;
