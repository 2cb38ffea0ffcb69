//! What is a row's number, and where does it stand between nothing and the greatest?

use bench::Row;
use bench::terminal::speed;

/// The number of a row that did `per_s` units a second: as it is told, a speed or a time.
pub(crate) fn value(unit: &str, per_s: f64) -> f64 {
    if speed::is_long(unit) { 1e3 / per_s } else { per_s }
}

/// The row's number at the median.
pub(crate) fn median(row: &Row) -> Option<f64> {
    row.median().map(|per_s| value(&row.unit, per_s))
}

/// The number of each of its passes.
pub(crate) fn passes(row: &Row) -> Vec<f64> {
    let per_s = |ns: &u64| row.units as f64 * 1e9 / (*ns).max(1) as f64;
    row.passes_ns.iter().map(|ns| value(&row.unit, per_s(ns))).collect()
}

/// The greatest number of any pass of these rows that may be ranked; more than zero.
pub(crate) fn greatest<'r>(rows: impl IntoIterator<Item = &'r Row>) -> f64 {
    let passes = rows.into_iter().filter(|row| row.is_ranked()).flat_map(passes);
    passes.fold(f64::MIN_POSITIVE, f64::max)
}

/// A part of the whole as an attribute of SVG; what is beyond the whole ends there.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    format!("{:.2}%", 100.0 * share(part, whole))
}

/// A part of the whole, from none to all of it; what is no number is nothing.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    let share = part / whole;
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
}

/// A ratio with as many digits as it can tell.
pub(crate) fn ratio(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 100.0 => format!("{ratio:.0}"),
        ratio if ratio >= 10.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.2}"),
    }
}

/// Bytes in words.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes >= 1e6 => format!("{:.1} MB", bytes / 1e6),
        bytes if bytes >= 1e3 => format!("{:.1} kB", bytes / 1e3),
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stays_on_the_paper() {
        assert_eq!(percent(1.0, 4.0), "25.00%");
        assert_eq!(percent(5.0, 4.0), "100.00%");
        assert_eq!(percent(f64::INFINITY, f64::INFINITY), "0.00%");
    }

    #[test]
    fn a_ratio_has_three_digits_or_all_of_a_great_one() {
        assert_eq!([0.456, 7.0, 30.04, 1234.4].map(ratio), ["0.46", "7.00", "30.0", "1234"]);
    }
}
