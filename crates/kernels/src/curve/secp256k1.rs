//! The curve secp256k1 (SEC 2 §2.4.1): y² = x³ + 7, with an endomorphism.

use std::sync::OnceLock;

use super::digits::{KEY_DIGITS, KEY_WINDOW, signed_digits};
use super::endomorphism;
use super::modular::{self, Field, Modulus, Residue, Scalar, Words};
use super::plan::Plans;
use super::portable::Affine;
use super::table::GeneratorTables;
use super::{Curve, Parameters};

/// secp256k1, called K-256 in the AT Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secp256k1;

/// The field prime, 2²⁵⁶ − 2³² − 977.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct P;

/// The number of points on the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct N;

impl Curve for Secp256k1 {}

impl Parameters for Secp256k1 {
    type P = P;
    type N = N;

    const A_IS_MINUS_3: bool = false;
    const B: Field<Self> = Residue::new([7, 0, 0, 0]);
    const BETA: Option<Field<Self>> = Some(BETA);
    const GENERATOR: Affine<Self> = Affine {
        x: Residue::new([
            0x59f2_815b_16f8_1798,
            0x029b_fcdb_2dce_28d9,
            0x55a0_6295_ce87_0b07,
            0x79be_667e_f9dc_bbac,
        ]),
        y: Residue::new([
            0x9c47_d08f_fb10_d4b8,
            0xfd17_b448_a685_5419,
            0x5da4_fbfc_0e11_08a8,
            0x483a_da77_26a3_c465,
        ]),
    };

    fn key_digits(u2: Scalar<Self>) -> [u16; KEY_DIGITS] {
        const HALF: usize = KEY_DIGITS / 2;
        let [k1, k2] = endomorphism::split(u2).map(signed_digits::<KEY_WINDOW, HALF, 3>);
        let mut digits = [0; KEY_DIGITS];
        digits[..HALF].copy_from_slice(&k1);
        digits[HALF..].copy_from_slice(&k2);
        digits
    }

    fn generator_tables() -> &'static OnceLock<GeneratorTables> {
        static TABLES: OnceLock<GeneratorTables> = OnceLock::new();
        &TABLES
    }

    fn plans() -> &'static OnceLock<Plans> {
        static PLANS: OnceLock<Plans> = OnceLock::new();
        &PLANS
    }
}

impl Modulus for P {
    const VALUE: Words = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];

    fn reduce(product: [u64; 8]) -> Words {
        modular::fold::<Self>(product)
    }
}

impl Modulus for N {
    const VALUE: Words =
        [0xbfd2_5e8c_d036_4141, 0xbaae_dce6_af48_a03b, 0xffff_ffff_ffff_fffe, u64::MAX];

    fn reduce(product: [u64; 8]) -> Words {
        modular::fold::<Self>(product)
    }
}

/// A cube root of one modulo p.
const BETA: Residue<P> = Residue::new([
    0xc139_6c28_7195_01ee,
    0x9cf0_4975_12f5_8995,
    0x6e64_479e_ac34_34e9,
    0x7ae9_6a2b_657c_0710,
]);
