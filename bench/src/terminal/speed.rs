//! How is a speed told? As units a second; of a unit that takes long, as milliseconds.

use super::thousands;
use crate::{Rate, Row, Task};

/// What the numbers of these rows are.
pub fn heading(rows: &[&Row]) -> String {
    let unit = &rows[0].unit;
    match unit {
        unit if is_long(unit) => "ms".to_owned(),
        unit if rows.iter().all(|row| row.unit == *unit) => format!("{}/s", plural(unit)),
        _ => "a second".to_owned(),
    }
}

/// The number under that heading.
pub fn number(unit: &str, per_s: f64) -> String {
    if is_long(unit) { milliseconds(1e9 / per_s) } else { thousands(per_s) }
}

/// The least and the greatest of those numbers.
pub fn range(unit: &str, rate: Rate) -> String {
    let (least, greatest) = if is_long(unit) { (rate.max, rate.min) } else { (rate.min, rate.max) };
    format!("{} – {}", number(unit, least), number(unit, greatest))
}

/// The number with what it is.
pub fn sentence(unit: &str, per_s: f64) -> String {
    let number = number(unit, per_s);
    if is_long(unit) { format!("{number} ms") } else { format!("{number} {}/s", plural(unit)) }
}

/// So many units, in words.
pub fn amount(unit: &str, units: u64) -> String {
    let name = if units == 1 { unit.to_owned() } else { plural(unit) };
    format!("{} {name}", thousands(units as f64))
}

/// With as many digits as a run can tell.
pub fn milliseconds(ns: f64) -> String {
    let ms = ns / 1e6;
    if ms < 10.0 { format!("{ms:.2}") } else { format!("{ms:.1}") }
}

fn plural(unit: &str) -> String {
    match unit.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{unit}s"),
    }
}

/// Whether a unit takes so long that its time is told, not how many there are a second.
pub fn is_long(unit: &str) -> bool {
    unit == Task::Repo.unit()
}
