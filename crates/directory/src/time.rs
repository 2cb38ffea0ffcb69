//! Times as JavaScript writes and reads them.

/// The time in the form of `Date.toISOString`. Microseconds that are no milliseconds are written too, so that no order is lost.
pub(crate) fn push_iso(micros: i64, out: &mut String) {
    let (seconds, rest) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date_of(days);
    push_number(year.clamp(0, 9_999), 4, out);
    for (prefix, value) in [('-', month), ('-', day), ('T', second / 3600)] {
        out.push(prefix);
        push_number(value, 2, out);
    }
    for value in [second / 60 % 60, second % 60] {
        out.push(':');
        push_number(value, 2, out);
    }
    out.push('.');
    match rest % 1000 {
        0 => push_number(rest / 1000, 3, out),
        _ => push_number(rest, 6, out),
    }
    out.push('Z');
}

fn push_number(value: i64, digits: u32, out: &mut String) {
    for place in (0..digits).rev() {
        let digit = value / 10_i64.pow(place) % 10;
        out.push(char::from(b'0' + digit as u8));
    }
}

/// Year, month and day of a number of days since 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    // Years that begin in March, so that the leap day is the last one.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, shift) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + shift, month, day)
}

/// The number of days since 1970 of a date.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The time of a text in the format of ECMAScript, in microseconds since 1970: a year, a month or a day, with or without a time
/// and an offset. Digits after the third of a second are ignored; without an offset the time is UTC. `None` for any other text.
pub(crate) fn parse_iso(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4)?;
    let month = parts.next().map_or(Some(1), |part| number(part, 2))?;
    let day = parts.next().map_or(Some(1), |part| number(part, 2))?;
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let micros = time.map_or(Some(0), micros_of_day)?;
    Some(days_of(year, month, day) * DAY_MICROS + micros)
}

/// The microseconds of a time of day, less its offset.
fn micros_of_day(text: &str) -> Option<i64> {
    let (time, offset) = match text.find(['Z', '+', '-']) {
        Some(at) if text[at..].starts_with('Z') => {
            (&text[..at], number_of_offset(&text[at + 1..])?)
        }
        Some(at) => {
            let (hours, minutes) = text[at + 1..].split_once(':')?;
            let minutes = 60 * number(hours, 2)? + number(minutes, 2)?;
            (&text[..at], if text[at..].starts_with('-') { -minutes } else { minutes })
        }
        None => (text, 0),
    };
    let mut parts = time.split(':');
    let (hours, minutes) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let (seconds, millis) = match parts.next() {
        None => (0, 0),
        Some(seconds) => match seconds.split_once('.') {
            None => (number(seconds, 2)?, 0),
            Some((seconds, fraction)) => (number(seconds, 2)?, millis(fraction)?),
        },
    };
    let is_end = (hours, minutes, seconds, millis) == (24, 0, 0, 0);
    let is_time = hours < 24 && minutes < 60 && seconds < 60;
    if parts.next().is_some() || !(is_time || is_end) {
        return None;
    }
    let seconds = (hours * 60 + minutes - offset) * 60 + seconds;
    Some((seconds * 1000 + millis) * 1000)
}

/// The offset after `Z`, which is none.
fn number_of_offset(rest: &str) -> Option<i64> {
    rest.is_empty().then_some(0)
}

fn millis(fraction: &str) -> Option<i64> {
    let is_number = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let digits = is_number.then(|| format!("{fraction:0<3}"))?;
    digits[..3].parse().ok()
}

/// The number of a text of this many digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

const DAY_MICROS: i64 = 86_400 * 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn iso(micros: i64) -> String {
        let mut text = String::new();
        push_iso(micros, &mut text);
        text
    }

    #[test]
    fn times_have_the_text_of_javascript_and_are_read_again() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_681_275_237_057_000, "2023-04-12T04:53:57.057Z"),
            (1_709_164_799_999_000, "2024-02-28T23:59:59.999Z"),
            (1_709_164_800_000_000, "2024-02-29T00:00:00.000Z"),
            (-1_000, "1969-12-31T23:59:59.999Z"),
        ];
        for (micros, text) in cases {
            assert_eq!((iso(micros).as_str(), parse_iso(text)), (text, Some(micros)));
        }
        assert_eq!(iso(1_001), "1970-01-01T00:00:00.001001Z");
        for days in (-100_000..100_000).step_by(17) {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), days);
        }
    }

    #[test]
    fn the_forms_of_ecmascript_are_read_and_no_others() {
        let day = Some(1_672_531_200_000_000);
        for text in ["2023", "2023-01", "2023-01-01", "2023-01-01T00:00", "2023-01-01T01:00+01:00"]
        {
            assert_eq!(parse_iso(text), day, "{text}");
        }
        assert_eq!(parse_iso("2022-12-31T24:00:00Z"), day);
        assert_eq!(parse_iso("2023-01-01T00:00:00.0009Z"), day);
        for text in [
            "",
            "x",
            "2023-13",
            "2023-01-32",
            "2023-01-01T24:01",
            "2023-01-01T00",
            "2023-1-1",
            "2023-01-01T00:00:00.Z",
            "2023-01-01T00:00:60Z",
            "2023-01-01T00:00Zx",
            "-1",
            "2023-01-01T00:00+1",
            "2023-01-01-01",
        ] {
            assert_eq!(parse_iso(text), None, "{text}");
        }
    }
}
