//! The curve P-256 (SEC 2 §2.4.2, there secp256r1): y² = x³ − 3x + b.

use std::sync::OnceLock;

use super::digits::{self, KEY_DIGITS, KEY_WINDOW, signed_digits};
use super::modular::{self, Field, Modulus, Residue, Scalar, Words};
use super::plan::Plans;
use super::portable::Affine;
use super::table::GeneratorTables;
use super::{Curve, Parameters};

/// NIST P-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P256;

/// The field prime, 2²⁵⁶ − 2²²⁴ + 2¹⁹² + 2⁹⁶ − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct P;

/// The number of points on the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct N;

impl Curve for P256 {}

impl Parameters for P256 {
    type P = P;
    type N = N;

    const A_IS_MINUS_3: bool = true;
    const B: Field<Self> = Residue::new([
        0x3bce_3c3e_27d2_604b,
        0x651d_06b0_cc53_b0f6,
        0xb3eb_bd55_7698_86bc,
        0x5ac6_35d8_aa3a_93e7,
    ]);
    const BETA: Option<Field<Self>> = None;
    const GENERATOR: Affine<Self> = Affine {
        x: Residue::new([
            0xf4a1_3945_d898_c296,
            0x7703_7d81_2deb_33a0,
            0xf8bc_e6e5_63a4_40f2,
            0x6b17_d1f2_e12c_4247,
        ]),
        y: Residue::new([
            0xcbb6_4068_37bf_51f5,
            0x2bce_3357_6b31_5ece,
            0x8ee7_eb4a_7c0f_9e16,
            0x4fe3_42e2_fe1a_7f9b,
        ]),
    };

    fn key_digits(u2: Scalar<Self>) -> [u16; KEY_DIGITS] {
        signed_digits::<KEY_WINDOW, KEY_DIGITS, 5>(digits::odd(u2))
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
    const VALUE: Words = [u64::MAX, 0xffff_ffff, 0, 0xffff_ffff_0000_0001];

    /// 2²⁶⁰: the lanes hold numbers in Montgomery's form.
    const TO_LANES: Words = [0x10, 0xffff_fff0_0000_0000, u64::MAX, 0xf_ffff_ffef];

    const FROM_LANES: Words = [
        0xe000_0000_3000_0000,
        0x2000_0000_1fff_ffff,
        0x3fff_ffff_d000_0000,
        0x0fff_ffff_e000_0000,
    ];

    fn reduce(product: [u64; 8]) -> Words {
        modular::montgomery::<Self>(product, 1, &SQUARE_MODULO_P)
    }
}

impl Modulus for N {
    const VALUE: Words =
        [0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, u64::MAX, 0xffff_ffff_0000_0000];

    fn reduce(product: [u64; 8]) -> Words {
        modular::montgomery::<Self>(product, 0xccd1_c8aa_ee00_bc4f, &SQUARE_MODULO_N)
    }
}

/// 2⁵¹² mod p.
const SQUARE_MODULO_P: Words = [3, 0xffff_fffb_ffff_ffff, 0xffff_ffff_ffff_fffe, 0x4_ffff_fffd];

/// 2⁵¹² mod n.
const SQUARE_MODULO_N: Words =
    [0x8324_4c95_be79_eea2, 0x4699_799c_49bd_6fa6, 0x2845_b239_2b6b_ec59, 0x66e1_2d94_f3d9_5620];
