//! Speeds as text: units per second, or milliseconds for units that take long.

use crate::{Rate, Row, Task};

/// The heading of a column of speeds.
pub fn heading(rows: &[&Row]) -> String {
    let unit = &rows[0].unit;
    match unit {
        unit if is_long(unit) => "ms".to_owned(),
        unit if rows.iter().all(|row| row.unit == *unit) => format!("{}/s", plural(unit)),
        _ => "per second".to_owned(),
    }
}

/// The speed without its unit.
pub fn number(unit: &str, per_s: f64) -> String {
    if is_long(unit) { milliseconds(1e9 / per_s) } else { thousands(per_s) }
}

/// The least and the greatest number.
pub fn range(unit: &str, rate: Rate) -> String {
    let (least, greatest) = if is_long(unit) { (rate.max, rate.min) } else { (rate.min, rate.max) };
    format!("{} – {}", number(unit, least), number(unit, greatest))
}

/// The speed with its unit.
pub fn sentence(unit: &str, per_s: f64) -> String {
    let number = number(unit, per_s);
    if is_long(unit) { format!("{number} ms") } else { format!("{number} {}/s", plural(unit)) }
}

/// A number of units.
pub fn amount(unit: &str, units: u64) -> String {
    let name = if units == 1 { unit.to_owned() } else { plural(unit) };
    format!("{} {name}", thousands(units as f64))
}

/// Nanoseconds as milliseconds with a meaningful number of digits.
pub fn milliseconds(ns: f64) -> String {
    let ms = ns / 1e6;
    if ms < 10.0 { format!("{ms:.2}") } else { format!("{ms:.1}") }
}

/// A whole number with digits in groups of three.
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn plural(unit: &str) -> String {
    match unit.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{unit}s"),
    }
}

/// Whether a unit takes so long that its time is shown instead of units per second.
pub fn is_long(unit: &str) -> bool {
    unit == Task::Repo.unit()
}
