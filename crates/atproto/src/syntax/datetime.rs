//! Datetimes that are valid in RFC 3339, ISO 8601 and the HTML standard alike.
//!
//! ```text
//! 1985-04-12T23:20:50.123Z        1985-04-12T23:20:50+01:45
//! ```
//!
//! Capital `T` and `Z`, seconds, a zone other than `-00:00`, any number of fractional digits, at most 64
//! bytes. The moment must exist: no 30 February, no hour 24, no leap second. Converted to UTC it must still
//! be in the years 0000 to 9999.

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::text::text_type;

text_type! {
    /// A datetime. Compares as its text; for the order of moments see
    /// [`unix_micros`](Self::unix_micros).
    ///
    /// ```
    /// use wireproof::atproto::syntax::Datetime;
    /// let datetime = Datetime::parse("1970-01-01T01:00:00.25+01:00")?;
    /// assert_eq!(datetime.unix_micros(), 250_000);
    /// assert_eq!(datetime.to_normalized(), "1970-01-01T00:00:00.250Z");
    /// # Ok::<(), wireproof::atproto::syntax::SyntaxError>(())
    /// ```
    Datetime, DatetimeBuf, as_datetime, check_datetime
}

impl Datetime<'_> {
    /// The maximum length in bytes.
    pub const MAX_LEN: usize = 64;

    /// Microseconds since 1970, without leap seconds; smaller fractions are truncated.
    pub fn unix_micros(self) -> i64 {
        moment(self.0.as_bytes()).expect("checked when parsed")
    }

    /// The same moment in UTC with milliseconds, the recommended form. Smaller fractions are truncated.
    pub fn to_normalized(self) -> DatetimeBuf {
        DatetimeBuf::from_unix_micros(self.unix_micros()).expect("checked when parsed")
    }
}

impl DatetimeBuf {
    /// Formats a moment in UTC with milliseconds. `None` if it is not in the years 0000 to 9999.
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

fn check_datetime(text: &str) -> Result<(), SyntaxError> {
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

    /// Reads a number of `digits` digits, from `least` to `most`.
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

    /// Reads the microseconds of a fraction; 0 if there is none.
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

    /// Reads the minutes ahead of UTC, and checks that the text ends.
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
            // In RFC 3339 it means that the zone is unknown.
            0 if sign < 0 => fail(SyntaxKind::Datetime, SyntaxRule::Reserved, start),
            _ => Ok(sign * minutes),
        }
    }
}

/// 0000-01-01T00:00:00Z.
const FIRST_SECOND: i64 = -62_167_219_200;
/// 9999-12-31T23:59:59Z.
const LAST_SECOND: i64 = 253_402_300_799;

/// Days from 1970-01-01 to a date of the Gregorian calendar, extended back to the year 0. Years are counted
/// from 1 March, so that the leap day is the last of its year.
pub(super) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * DAYS_OF_ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - DAYS_TO_1970
}

/// Year, month and day of the date that is `days` after 1970-01-01.
pub(super) fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let (era, of_era) = (days.div_euclid(DAYS_OF_ERA), days.rem_euclid(DAYS_OF_ERA));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (400 * era + year_of_era + i64::from(month <= 2), month, day)
}

/// The number of days of a month.
pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days in 400 years.
const DAYS_OF_ERA: i64 = 146_097;
/// Days from 1 March of the year 0 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;
