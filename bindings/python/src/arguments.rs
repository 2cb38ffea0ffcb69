//! Arguments of functions: a value of an unexpected type raises `TypeError` with the argument's name.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow_schema::Schema;
use atproto::syntax::Datetime;
use follower::Start;
use program::names;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};

/// `TypeError`: the argument is not of the expected type.
pub(crate) fn wrong_type(name: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let found = found.get_type().name().map_or("?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("argument '{name}': expected {expected}, not {found}"))
}

/// `ValueError`: the argument has the right type, and a value that is not allowed.
pub(crate) fn wrong_value(name: &str, why: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("argument '{name}': {why}"))
}

/// The value of a type with conversions of its own, such as a number or a text.
pub(crate) fn value<'py, T>(name: &str, expected: &str, object: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    object.extract().map_err(|_| wrong_type(name, expected, object))
}

/// Refuses names that `of` has no column for, and names that are there twice.
pub(crate) fn check_columns(of: &str, schema: &Schema, columns: &[String]) -> PyResult<()> {
    for (index, name) in columns.iter().enumerate() {
        if schema.index_of(name).is_err() {
            let names: Vec<&str> = schema.fields().iter().map(|field| &**field.name()).collect();
            let why = format!("{of} has no column {name}; it has {}", names.join(", "));
            return Err(wrong_value("columns", why));
        }
        if columns[..index].contains(name) {
            return Err(wrong_value("columns", format!("{name} is there twice")));
        }
    }
    Ok(())
}

/// A truth value; nothing else counts as one.
pub(crate) fn boolean(name: &str, object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match object.cast::<PyBool>() {
        Ok(boolean) => Ok(boolean.is_true()),
        Err(_) => Err(wrong_type(name, "bool", object)),
    }
}

/// A number of at least `min`.
pub(crate) fn number(name: &str, min: u64, object: &Bound<'_, PyAny>) -> PyResult<u64> {
    if object.is_instance_of::<PyBool>() || !object.is_instance_of::<PyInt>() {
        return Err(wrong_type(name, "int", object));
    }
    match object.extract::<u64>() {
        Ok(number) if number >= min => Ok(number),
        _ => Err(wrong_value(name, format!("expected a number of at least {min}"))),
    }
}

/// A path as text or as an `os.PathLike`.
pub(crate) fn path(name: &str, object: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    value(name, "str or os.PathLike[str]", object)
}

/// A time of more than 0 seconds.
pub(crate) fn seconds(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds: f64 = value(name, "a number of seconds", object)?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(wrong_value(name, "expected more than 0 seconds")),
    }
}

/// A time of more than 0 and at most `max` seconds.
pub(crate) fn bounded_seconds(
    name: &str,
    max: u64,
    object: &Bound<'_, PyAny>,
) -> PyResult<Duration> {
    match seconds(name, object)? {
        time if time <= Duration::from_secs(max) => Ok(time),
        _ => Err(wrong_value(name, format!("expected at most {max} seconds"))),
    }
}

/// One text, or several.
pub(crate) fn texts(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let expected = "str or an iterable of str";
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(vec![text.to_str()?.to_owned()]);
    }
    if object.is_instance_of::<PyBytes>() {
        return Err(wrong_type(name, expected, object));
    }
    let items = object.try_iter().map_err(|_| wrong_type(name, expected, object))?;
    items.map(|item| value(name, expected, &item?)).collect()
}

/// The text of a DID or handle, without the text around it that people copy: `@`, `at://`, the URL of a profile.
pub(crate) fn account(name: &str, text: &str) -> PyResult<String> {
    let parsed = names::account(text).map_err(|failure| wrong_value(name, failure))?;
    Ok(parsed.to_string())
}

/// Where to start with a host: `live`, `oldest` or after a sequence number.
pub(crate) fn start(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Start> {
    if let Ok(text) = object.cast::<PyString>() {
        return match text.to_str()? {
            "live" => Ok(Start::Live),
            "oldest" => Ok(Start::After(0)),
            _ => Err(wrong_value(name, "expected 'live', 'oldest' or a sequence number")),
        };
    }
    match number(name, 0, object) {
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => {
            Err(wrong_type(name, "'live', 'oldest' or int", object))
        }
        seq => Ok(Start::After(seq?)),
    }
}

/// The time of a judgement in microseconds since 1970: the argument `now`, by default the clock's.
pub(crate) fn time_of_judgement(now: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    now.map_or_else(|| Ok(clock_micros()), time_since_1970)
}

/// The argument `now` in microseconds since 1970.
pub(crate) fn time_since_1970(now: &Bound<'_, PyAny>) -> PyResult<u64> {
    u64::try_from(micros("now", now)?).map_err(|_| wrong_value("now", "a time before 1970"))
}

/// A time in microseconds since 1970: of a `datetime` with a time zone, a `date` (its start in UTC), the text of one, or a number.
pub(crate) fn micros(name: &str, time: &Bound<'_, PyAny>) -> PyResult<i64> {
    if let Ok(text) = time.cast::<PyString>() {
        return micros_of_text(name, text.to_str()?);
    }
    if time.is_instance_of::<PyInt>() && !time.is_instance_of::<PyBool>() {
        return time.extract().map_err(|_| wrong_value(name, "a number that is out of range"));
    }
    let datetime = time.py().import("datetime")?;
    if time.is_instance(&datetime.getattr("datetime")?)? {
        return micros_of_datetime(name, &datetime, time);
    }
    if time.is_instance(&datetime.getattr("date")?)? {
        let day: i64 = time.call_method0("toordinal")?.extract()?;
        return Ok((day - ORDINAL_OF_1970) * MICROS_OF_DAY);
    }
    Err(wrong_type(name, "datetime, date, str or int", time))
}

fn micros_of_text(name: &str, text: &str) -> PyResult<i64> {
    let midnight = format!("{text}T00:00:00Z");
    let datetime = if text.len() == "2026-11-24".len() { &midnight } else { text };
    let parsed = Datetime::parse(datetime).map_err(|error| wrong_value(name, error))?;
    Ok(parsed.unix_micros())
}

/// By integers: a float of seconds loses microseconds in later years.
fn micros_of_datetime(
    name: &str,
    datetime: &Bound<'_, PyModule>,
    time: &Bound<'_, PyAny>,
) -> PyResult<i64> {
    if time.call_method0("utcoffset")?.is_none() {
        return Err(wrong_value(name, "a datetime without a time zone"));
    }
    let utc = datetime.getattr("timezone")?.getattr("utc")?;
    let of_1970 = datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
    let since = time.sub(of_1970)?;
    let part = |unit: &str| since.getattr(unit)?.extract::<i64>();
    Ok(part("days")? * MICROS_OF_DAY + part("seconds")? * 1_000_000 + part("microseconds")?)
}

/// The time of the clock in microseconds since 1970.
pub(crate) fn clock_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

const MICROS_OF_DAY: i64 = 86_400_000_000;

/// The value of `date(1970, 1, 1).toordinal()`.
const ORDINAL_OF_1970: i64 = 719_163;
