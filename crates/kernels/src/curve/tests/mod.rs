//! Numbers against a big-integer library, verdicts against libsecp256k1, AWS-LC and `p256`.

mod directed;
mod libraries;
mod numbers;
mod plans;
mod schemes;
mod verdicts;

use num_bigint::BigUint;

use super::modular::Words;
use super::*;
use libraries::Library;
use schemes::{Ecdsa, Scheme, Schnorr};

/// Declares tests that run a body with every signature scheme.
macro_rules! with_each_scheme {
    ($($name:ident<$scheme:ident> $body:block)*) => {$(
        #[test]
        fn $name() {
            fn body<$scheme: Scheme>() $body
            body::<Ecdsa<Secp256k1>>();
            body::<Ecdsa<P256>>();
            body::<Schnorr>();
        }
    )*};
}

/// Declares tests that run a body with every curve.
macro_rules! on_each_curve {
    ($($name:ident<$curve:ident> $body:block)*) => {$(
        #[test]
        fn $name() {
            fn body<$curve: Library>() $body
            body::<Secp256k1>();
            body::<P256>();
        }
    )*};
}

use {on_each_curve, with_each_scheme};

/// A stream of bytes that is the same in every run.
pub(super) struct Noise(u64);

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn word(&mut self) -> u64 {
        let mut mix = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 >> 32
        };
        mix() << 32 | mix()
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.word() % bound as u64) as usize
    }

    pub(super) fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for chunk in bytes.as_chunks_mut::<8>().0 {
            *chunk = self.word().to_be_bytes();
        }
        bytes
    }

    /// A number from 1 to n − 1, often a small one or one close to n.
    pub(super) fn scalar<C: Curve>(&mut self) -> BigUint {
        let small = BigUint::from(self.below(40) + 1);
        match self.below(10) {
            0 => small,
            1 => order::<C>() - small,
            _ => BigUint::from_bytes_be(&self.bytes()) % (order::<C>() - 1u8) + 1u8,
        }
    }
}

pub(super) fn big(words: &[u64]) -> BigUint {
    words.iter().rev().fold(BigUint::ZERO, |number, word| (number << 64u8) + *word)
}

pub(super) fn prime<C: Curve>() -> BigUint {
    big(&C::P::VALUE)
}

pub(super) fn order<C: Curve>() -> BigUint {
    big(&C::N::VALUE)
}

/// The number in 32 big-endian bytes.
pub(super) fn bytes_of(number: &BigUint) -> [u8; 32] {
    let bytes = number.to_bytes_be();
    let mut out = [0; 32];
    out[32 - bytes.len()..].copy_from_slice(&bytes);
    out
}

pub(super) fn words(number: &BigUint) -> Words {
    modular::words_of(&bytes_of(number))
}

/// A signature to verify, with its true verdict.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// The digest or the challenge.
    hash: [u8; 32],
    signature: [u8; 64],
    key: [u8; 33],
    /// The verdict of a complete implementation.
    valid: bool,
}

impl Claim {
    fn ecdsa<'a, C: Curve>(&'a self, key: Key<'a, C>) -> EcdsaItem<'a, C> {
        EcdsaItem { digest: &self.hash, signature: &self.signature, key }
    }

    fn schnorr<'a>(&'a self, key: Key<'a, Secp256k1>) -> SchnorrItem<'a> {
        SchnorrItem { challenge: &self.hash, signature: &self.signature, key }
    }

    fn x(&self) -> &[u8; 32] {
        self.key.last_chunk().expect("33 bytes end in 32")
    }

    fn table<C: Curve>(&self, size: TableSize) -> Option<KeyTable<C>> {
        KeyTable::new(Key::Compressed(&self.key)).map(|table| table.resized(size))
    }
}

/// The back ends that are here.
fn backends() -> impl Iterator<Item = Backend> {
    Backend::ALL.into_iter().filter(|backend| backend.is_available())
}

/// How keys are given. Keys that are of no point are given compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Compressed,
    Point,
    /// In tables of all sizes in turn.
    Cached,
}

impl Form {
    const ALL: [Self; 3] = [Self::Compressed, Self::Point, Self::Cached];
}

/// The verdicts of a back end on claims.
fn verify<S: Scheme>(backend: Backend, claims: &[Claim], form: Form) -> Vec<Verdict> {
    let mut verdicts = vec![Verdict::Undecided; claims.len()];
    let sizes = TableSize::ALL.into_iter().cycle();
    let table = |(claim, size): (&Claim, TableSize)| match form {
        Form::Compressed => None,
        Form::Point => claim.table(TableSize::Small),
        Form::Cached => claim.table(size),
    };
    let tables: Vec<Option<KeyTable<S::Curve>>> = claims.iter().zip(sizes).map(table).collect();
    let y = |table: &Option<KeyTable<S::Curve>>| {
        table.as_ref().map_or([0; 32], |table| bytes_of(&big(&table.point().y.words())))
    };
    let ys: Vec<[u8; 32]> = tables.iter().map(y).collect();
    let key = |i: usize| match (form, &tables[i]) {
        (Form::Cached, Some(table)) => Key::Cached(table),
        (Form::Point, Some(_)) => Key::Point { x: claims[i].x(), y: &ys[i] },
        _ => Key::Compressed(&claims[i].key),
    };
    let keyed: Vec<_> = claims.iter().enumerate().map(|(i, claim)| (claim, key(i))).collect();
    S::verify(backend, &keyed, &mut verdicts);
    verdicts
}

/// Asserts that no verdict contradicts the truth, and returns how many are undecided.
fn assert_true(verdicts: &[Verdict], claims: &[Claim], what: &str) -> usize {
    assert_eq!(verdicts.len(), claims.len());
    for (i, (verdict, claim)) in verdicts.iter().zip(claims).enumerate() {
        let contradicts = match verdict {
            Verdict::Valid => !claim.valid,
            Verdict::Invalid => claim.valid,
            Verdict::Undecided => false,
        };
        assert!(!contradicts, "{what}: {verdict:?} at {i} of {}: {claim:x?}", claims.len());
    }
    verdicts.iter().filter(|verdict| **verdict == Verdict::Undecided).count()
}
