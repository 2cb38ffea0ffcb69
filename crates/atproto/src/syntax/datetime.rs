//! Datetimes: what RFC 3339, ISO 8601 and the HTML standard all call one.
//!
//! ```text
//! 1985-04-12T23:20:50.123Z        1985-04-12T23:20:50+01:45
//! ```
//!
//! Capital `T` and `Z`, seconds, a zone, never `-00:00`; any number of fractional digits, at most 64
//! bytes. It must be a moment that exists: no 30 February, no hour 24, no leap second; and in UTC too
//! it must be in the years 0000 to 9999.

use super::calendar::{date_of, days_in_month, days_of};
use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::text::{borrowed, owned};

borrowed! {
    /// A datetime. Compares as its text; for the order of moments see
    /// [`unix_micros`](Self::unix_micros).
    ///
    /// ```
    /// use wireproof_atproto::syntax::Datetime;
    /// let datetime = Datetime::parse("1970-01-01T01:00:00.25+01:00")?;
    /// assert_eq!(datetime.unix_micros(), 250_000);
    /// assert_eq!(datetime.to_normalized(), "1970-01-01T00:00:00.250Z");
    /// # Ok::<(), wireproof_atproto::syntax::SyntaxError>(())
    /// ```
    Datetime, DatetimeBuf
}

owned! {
    /// A datetime, owned. Compares as its text.
    DatetimeBuf, Datetime, as_datetime
}

impl Datetime<'_> {
    /// The most bytes there can be.
    pub const MAX_LEN: usize = 64;

    /// Microseconds since 1970, leap seconds left out; smaller fractions are cut off.
    pub fn unix_micros(self) -> i64 {
        moment(self.0.as_bytes()).expect("checked when it was made")
    }

    /// The same moment in UTC with milliseconds, which is how datetimes should be written. Smaller
    /// fractions are cut off.
    pub fn to_normalized(self) -> DatetimeBuf {
        DatetimeBuf::from_unix_micros(self.unix_micros()).expect("checked when it was made")
    }
}

impl DatetimeBuf {
    /// Writes a moment in UTC with milliseconds. `None` if it is not in the years 0000 to 9999.
    pub fn from_unix_micros(micros: i64) -> Option<Self> {
        let millis = micros.div_euclid(1000);
        let (days, in_day) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
        let (year, month, day) = date_of(days);
        let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
        let (second, milli) = (in_day / 1000 % 60, in_day % 1000);
        (0..=9999).contains(&year).then(|| {
            Self(
                format!(
                    "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"
                )
                .into(),
            )
        })
    }
}

fn check(text: &str) -> Result<(), SyntaxError> {
    if text.len() > Datetime::MAX_LEN {
        return fail(SyntaxKind::Datetime, SyntaxRule::TooLong, Datetime::MAX_LEN);
    }
    moment(text.as_bytes()).map(drop)
}

/// Microseconds since 1970.
fn moment(text: &[u8]) -> Result<i64, SyntaxError> {
    let mut cursor = Cursor { text, at: 0 };
    let year = cursor.number(4, 0, 9999)?;
    let month = cursor.symbol(b'-')?.number(2, 1, 12)?;
    let day = cursor.symbol(b'-')?.number(2, 1, days_in_month(year, month))?;
    let hour = cursor.symbol(b'T')?.number(2, 0, 23)?;
    let minute = cursor.symbol(b':')?.number(2, 0, 59)?;
    let second = cursor.symbol(b':')?.number(2, 0, 59)?;
    let micros = cursor.fraction()?;
    let offset_minutes = cursor.zone()?;
    let minutes = (days_of(year, month, day) * 24 + hour) * 60 + minute - offset_minutes;
    let seconds = minutes * 60 + second;
    if !(FIRST_SECOND..=LAST_SECOND).contains(&seconds) {
        return fail(SyntaxKind::Datetime, SyntaxRule::Moment, 0);
    }
    Ok(seconds * 1_000_000 + micros)
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn symbol(&mut self, symbol: u8) -> Result<&mut Self, SyntaxError> {
        match self.text.get(self.at) {
            Some(byte) if *byte == symbol => self.at += 1,
            Some(_) => return fail(SyntaxKind::Datetime, SyntaxRule::Symbol, self.at),
            None => return fail(SyntaxKind::Datetime, SyntaxRule::TooShort, self.at),
        }
        Ok(self)
    }

    /// A number of so many digits, from `least` to `most`.
    fn number(&mut self, digits: usize, least: i64, most: i64) -> Result<i64, SyntaxError> {
        let start = self.at;
        let mut number = 0;
        for _ in 0..digits {
            number = number * 10 + self.digit()?;
        }
        if number < least || number > most {
            return fail(SyntaxKind::Datetime, SyntaxRule::Moment, start);
        }
        Ok(number)
    }

    fn digit(&mut self) -> Result<i64, SyntaxError> {
        match self.text.get(self.at) {
            Some(byte @ b'0'..=b'9') => {
                self.at += 1;
                Ok(i64::from(byte - b'0'))
            }
            Some(_) => fail(SyntaxKind::Datetime, SyntaxRule::Symbol, self.at),
            None => fail(SyntaxKind::Datetime, SyntaxRule::TooShort, self.at),
        }
    }

    /// The microseconds of a fraction; 0 if there is none.
    fn fraction(&mut self) -> Result<i64, SyntaxError> {
        if self.text.get(self.at) != Some(&b'.') {
            return Ok(0);
        }
        self.at += 1;
        let mut unit = 100_000;
        let mut micros = self.digit()? * unit;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            unit /= 10;
            micros += self.digit()? * unit;
        }
        Ok(micros)
    }

    /// Minutes ahead of UTC, and then the end of the text.
    fn zone(&mut self) -> Result<i64, SyntaxError> {
        let start = self.at;
        let sign = match self.text.get(self.at) {
            Some(b'Z') => 0,
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return fail(SyntaxKind::Datetime, SyntaxRule::Symbol, self.at),
            None => return fail(SyntaxKind::Datetime, SyntaxRule::TooShort, self.at),
        };
        self.at += 1;
        let mut minutes = 0;
        if sign != 0 {
            let hours = self.number(2, 0, 23)?;
            minutes = hours * 60 + self.symbol(b':')?.number(2, 0, 59)?;
        }
        match minutes {
            _ if self.at < self.text.len() => {
                fail(SyntaxKind::Datetime, SyntaxRule::TooLong, self.at)
            }
            // RFC 3339 has it say that the zone is not known.
            0 if sign < 0 => fail(SyntaxKind::Datetime, SyntaxRule::Reserved, start),
            _ => Ok(sign * minutes),
        }
    }
}

/// 0000-01-01T00:00:00Z.
const FIRST_SECOND: i64 = -62_167_219_200;
/// 9999-12-31T23:59:59Z.
const LAST_SECOND: i64 = 253_402_300_799;
