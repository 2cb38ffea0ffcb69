//! Which identifier, and which date, has this instant?
//!
//! | bits of a TID | |
//! |---|---|
//! | 63 | 0 |
//! | 62–10 | microseconds since 1970 |
//! | 9–0 | clock identifier |
//!
//! As text: 13 symbols of sortable base32, so that the order of texts is the order of numbers.

use std::fmt;

/// A timestamp identifier: the name of a record, or a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(u64);

impl Tid {
    /// The identifier of this microsecond by this clock; only 10 bits of the clock count.
    pub const fn new(micros: u64, clock: u64) -> Self {
        Self(((micros << 10) | (clock & 0x3ff)) & (u64::MAX >> 1))
    }

    /// The number that the text spells.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> u64 {
        self.0 >> 10
    }

    /// The same clock, `micros` later.
    pub const fn later(self, micros: u64) -> Self {
        Self(self.0 + (micros << 10))
    }

    /// The text, as bytes.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        std::array::from_fn(|at| SYMBOLS[(self.0 >> (5 * (Self::LEN - 1 - at))) as usize & 31])
    }

    /// Reads the text. `None` if it is not an identifier.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != Self::LEN {
            return None;
        }
        let number = text.bytes().try_fold(0u64, |number, symbol| {
            let digit = SYMBOLS.iter().position(|known| *known == symbol)?;
            number.checked_mul(32).map(|high| high | digit as u64)
        })?;
        (number >> 63 == 0).then_some(Self(number))
    }

    /// The length of the text, in bytes.
    pub const LEN: usize = 13;
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_bytes()).expect("the symbols are ASCII"))
    }
}

/// The date of an instant, in UTC with milliseconds: `2026-07-01T00:00:00.000Z`.
pub fn datetime(micros: u64) -> String {
    let millis = micros / 1000;
    let (days, in_day) = (millis / DAY_MILLIS, millis % DAY_MILLIS);
    let (year, month, day) = civil(days);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1000 % 60, in_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Year, month and day of a count of days since 1970, by counting from 1 March of year 0, so that
/// the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (400 * era + year_of_era + u64::from(month <= 2), month, day)
}

const DAY_MILLIS: u64 = 86_400_000;

const SYMBOLS: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_are_in_the_same_order_and_come_back() {
        let tids = [0, 1, 31, 32, 1 << 40, (1 << 53) - 1].map(|micros| Tid::new(micros, 7));
        let texts = tids.map(|tid| tid.to_string());
        assert!(texts.is_sorted());
        assert_eq!(texts.each_ref().map(|text| Tid::parse(text)), tids.map(Some));
        assert_eq!(Tid::new(0, 0).to_string(), "2222222222222");
    }

    #[test]
    fn what_is_no_tid_is_not_read() {
        for text in ["", "222222222222", "k222222222222", "2222222222221", "3JQFCQZM3FO2J"] {
            assert_eq!(Tid::parse(text), None, "{text}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(datetime(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(datetime(951_782_400_123_999), "2000-02-29T00:00:00.123Z");
        assert_eq!(datetime(1_782_863_999_999_000), "2026-06-30T23:59:59.999Z");
        assert_eq!(datetime(1_782_864_000_000_000), "2026-07-01T00:00:00.000Z");
    }
}
