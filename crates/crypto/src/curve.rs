//! The two curves of the AT Protocol: their names, codes and orders.

/// A curve of the AT Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Curve {
    /// secp256k1, `ES256K`.
    K256,
    /// NIST P-256, `ES256`.
    P256,
}

impl Curve {
    /// Both curves.
    pub const ALL: [Self; 2] = [Self::K256, Self::P256];

    /// The curve of a legacy verification method's type.
    pub fn of_legacy_type(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|curve| curve.legacy_type() == name)
    }

    /// The type of a legacy verification method with a key on this curve.
    pub fn legacy_type(self) -> &'static str {
        match self {
            Self::K256 => "EcdsaSecp256k1VerificationKey2019",
            Self::P256 => "EcdsaSecp256r1VerificationKey2019",
        }
    }

    /// The name of the signature algorithm in a JSON web token.
    pub fn jwt_algorithm(self) -> &'static str {
        match self {
            Self::K256 => "ES256K",
            Self::P256 => "ES256",
        }
    }

    /// The multicodec of a public key, as a varint.
    pub(crate) fn multicodec(self) -> [u8; 2] {
        match self {
            Self::K256 => [0xe7, 0x01],
            Self::P256 => [0x80, 0x24],
        }
    }

    /// The curve whose public keys have this multicodec.
    pub(crate) fn of_multicodec(code: [u8; 2]) -> Option<Self> {
        Self::ALL.into_iter().find(|curve| curve.multicodec() == code)
    }

    /// Whether a big-endian number is from 1 to n − 1.
    #[inline]
    pub(crate) fn has_scalar(self, number: &[u8; 32]) -> bool {
        number != &[0; 32] && number < self.order()
    }

    /// The order n of the group, big-endian.
    #[inline]
    pub(crate) fn order(self) -> &'static [u8; 32] {
        match self {
            Self::K256 => &K256_ORDER,
            Self::P256 => &P256_ORDER,
        }
    }

    /// ⌊n/2⌋, the greatest low s, big-endian.
    #[inline]
    pub(crate) fn half_order(self) -> &'static [u8; 32] {
        match self {
            Self::K256 => &K256_HALF_ORDER,
            Self::P256 => &P256_HALF_ORDER,
        }
    }
}

/// SEC 2 §2.4.1.
const K256_ORDER: [u8; 32] =
    bytes(0xffffffffffffffff_fffffffffffffffe, 0xbaaedce6af48a03b_bfd25e8cd0364141);
const K256_HALF_ORDER: [u8; 32] =
    bytes(0x7fffffffffffffff_ffffffffffffffff, 0x5d576e7357a4501d_dfe92f46681b20a0);

/// SEC 2 §2.4.2.
const P256_ORDER: [u8; 32] =
    bytes(0xffffffff00000000_ffffffffffffffff, 0xbce6faada7179e84_f3b9cac2fc632551);
const P256_HALF_ORDER: [u8; 32] =
    bytes(0x7fffffff80000000_7fffffffffffffff, 0xde737d56d38bcf42_79dce5617e3192a8);

/// The big-endian bytes of a number of 256 bits.
const fn bytes(high: u128, low: u128) -> [u8; 32] {
    let (high, low) = (high.to_be_bytes(), low.to_be_bytes());
    let mut bytes = [0; 32];
    let mut at = 0;
    while at < 16 {
        bytes[at] = high[at];
        bytes[16 + at] = low[at];
        at += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_half_order_is_half_of_the_order() {
        for curve in Curve::ALL {
            let mut carry = 0;
            let halved = curve.order().map(|byte| {
                let half = byte >> 1 | carry;
                carry = byte << 7;
                half
            });
            assert_eq!(&halved, curve.half_order(), "{curve:?}");
        }
    }

    #[test]
    fn scalars_are_the_numbers_from_one_to_the_order() {
        for curve in Curve::ALL {
            let mut one = [0; 32];
            let mut last = *curve.order();
            let order = *curve.order();
            one[31] = 1;
            last[31] -= 1;
            assert!(curve.has_scalar(&one) && curve.has_scalar(&last));
            assert!(!curve.has_scalar(&[0; 32]) && !curve.has_scalar(&order));
            assert!(!curve.has_scalar(&[0xff; 32]));
        }
    }

    #[test]
    fn a_curve_is_found_by_its_names_and_codes() {
        for curve in Curve::ALL {
            assert_eq!(Curve::of_legacy_type(curve.legacy_type()), Some(curve));
            assert_eq!(Curve::of_multicodec(curve.multicodec()), Some(curve));
        }
        assert_eq!(Curve::of_legacy_type("Multikey"), None);
        assert_eq!(Curve::of_multicodec([0xed, 0x01]), None);
    }
}
