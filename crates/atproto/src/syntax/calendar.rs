//! Days and dates: the Gregorian calendar, carried back to the year 0.
//!
//! Years are counted from 1 March, so that the leap day is the last of its year.

/// Days from 1970-01-01 to this date.
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

/// How many days a month has.
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
