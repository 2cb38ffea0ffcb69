//! Timestamp identifiers: a microsecond and the identifier of a clock, in 64 bits.
//!
//! | bits | |
//! |---|---|
//! | 63 | 0, by convention |
//! | 62–10 | microseconds since 1970 |
//! | 9–0 | identifier of the clock |
//!
//! As text: 13 characters of a base32 whose alphabet is in ASCII order, so that texts sort as numbers do.
//! The first character is one of the first sixteen. Eight would suffice, but the syntax allows bit 63 to be
//! set; such a text is well formed, with a time in the year 2255 or later.

use std::fmt;
use std::str::{self, FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};

/// A timestamp identifier: a revision, or the key of a record.
///
/// ```
/// use wireproof::atproto::syntax::Tid;
/// let tid = Tid::parse("3jzfcijpj2z2a")?;
/// assert_eq!((tid.micros(), tid.clock_id()), (1_688_137_381_887_007, 6));
/// assert_eq!(Tid::new(tid.micros(), tid.clock_id()), tid);
/// assert_eq!(tid.to_string(), "3jzfcijpj2z2a");
/// # Ok::<(), wireproof::atproto::syntax::SyntaxError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(u64);

impl Tid {
    /// The length of the text, in bytes.
    pub const LEN: usize = 13;

    /// The least, `2222222222222`.
    pub const MIN: Self = Self(0);

    /// The greatest, `jzzzzzzzzzzzz`.
    pub const MAX: Self = Self(u64::MAX);

    /// The identifier of this microsecond and clock. The microseconds are truncated to 53 bits, which is
    /// the year 2255, the clock to 10.
    pub const fn new(micros: u64, clock_id: u16) -> Self {
        Self((micros << CLOCK_BITS | (clock_id & CLOCK_MASK) as u64) & (u64::MAX >> 1))
    }

    /// Reads the text.
    ///
    /// # Errors
    /// If there are not 13 characters of the alphabet, or the number has more than 64 bits.
    #[inline]
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let Ok(symbols) = <&[u8; Self::LEN]>::try_from(text.as_bytes()) else {
            return reject(text);
        };
        let (mut number, mut seen) = (0, 0);
        for symbol in symbols {
            let value = VALUES[usize::from(*symbol)];
            number = number << 5 | u64::from(value & 31);
            seen |= value;
        }
        // The first character has four bits, or the number would not fit.
        if seen > 31 || VALUES[usize::from(symbols[0])] > 15 {
            return reject(text);
        }
        Ok(Self(number))
    }

    /// The identifier of this number.
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> u64 {
        self.0 >> CLOCK_BITS
    }

    /// The identifier of the clock.
    pub const fn clock_id(self) -> u16 {
        self.0 as u16 & CLOCK_MASK
    }

    /// The text, as bytes.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        std::array::from_fn(|at| ALPHABET[(self.0 >> (5 * (Self::LEN - 1 - at))) as usize & 31])
    }
}

/// Finds the broken rule.
#[cold]
fn reject(text: &str) -> Result<Tid, SyntaxError> {
    let is_symbol = |byte: &u8| VALUES[usize::from(*byte)] <= 31;
    let symbols = text.as_bytes().iter().take(Tid::LEN).take_while(|byte| is_symbol(byte)).count();
    match text.len() {
        _ if symbols < text.len().min(Tid::LEN) => {
            fail(SyntaxKind::Tid, SyntaxRule::Symbol, symbols)
        }
        ..Tid::LEN => fail(SyntaxKind::Tid, SyntaxRule::TooShort, symbols),
        Tid::LEN => fail(SyntaxKind::Tid, SyntaxRule::Symbol, 0),
        _ => fail(SyntaxKind::Tid, SyntaxRule::TooLong, symbols),
    }
}

impl FromStr for Tid {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Self::parse(text)
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(str::from_utf8(&self.to_bytes()).expect("the alphabet is ASCII"))
    }
}

impl fmt::Debug for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tid({self})")
    }
}

impl Serialize for Tid {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Tid {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Generates ascending identifiers, even if the time goes backwards.
///
/// ```
/// use wireproof::atproto::syntax::tid::TidClock;
/// let mut clock = TidClock::new(7);
/// let (first, second) = (clock.next(1_688_137_381_887_007), clock.next(1_600_000_000_000_000));
/// assert!(first < second);
/// ```
#[derive(Clone, Debug)]
pub struct TidClock {
    id: u16,
    last: Option<Tid>,
}

impl TidClock {
    /// A clock with this identifier, truncated to 10 bits.
    pub const fn new(id: u16) -> Self {
        Self { id, last: None }
    }

    /// A clock whose identifiers are greater than `last`.
    pub const fn after(last: Tid, id: u16) -> Self {
        Self { id, last: Some(last) }
    }

    /// The next identifier, at `now_micros` since 1970: the identifier of this microsecond, or the
    /// successor of the last one if that is greater. Only [`Tid::MAX`] is repeated.
    pub fn next(&mut self, now_micros: u64) -> Tid {
        let now = Tid::new(now_micros, self.id).0;
        let least = self.last.map_or(0, |last| last.0.saturating_add(1));
        let next = Tid(now.max(least));
        self.last = Some(next);
        next
    }
}

const CLOCK_BITS: u32 = 10;
const CLOCK_MASK: u16 = (1 << CLOCK_BITS) - 1;

const ALPHABET: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";

/// The values of characters; 255 outside the alphabet.
static VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let mut value = 0;
    while value < 32 {
        values[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    values
};
