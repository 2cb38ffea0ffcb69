//! Arguments of functions: what is not of the expected type raises `TypeError` with the argument's name.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};
use wireproof::atproto::syntax::Datetime;

/// `TypeError`: the argument is not what is expected.
pub(crate) fn wrong_type(name: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let found = found.get_type().name().map_or("?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{name}: expected {expected}, got {found}"))
}

/// `ValueError`: the argument has the right type, and a value that is not allowed.
pub(crate) fn wrong_value(name: &str, why: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{name}: {why}"))
}

/// The value of a type with conversions of its own, such as a number or a text.
pub(crate) fn value<'py, T>(name: &str, expected: &str, object: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    object.extract().map_err(|_| wrong_type(name, expected, object))
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

/// Microseconds since 1970: of the clock, or of a `datetime`, ISO text or number.
pub(crate) fn micros(name: &str, time: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    let Some(time) = time else { return Ok(clock_micros()) };
    let before_1970 = || wrong_value(name, "a time before 1970");
    if let Ok(text) = time.cast::<PyString>() {
        let parsed = Datetime::parse(text.to_str()?).map_err(|error| wrong_value(name, error))?;
        return u64::try_from(parsed.unix_micros()).map_err(|_| before_1970());
    }
    if time.is_instance_of::<PyInt>() {
        return number(name, 0, time);
    }
    let expected = "datetime, str, or int (microseconds since 1970)";
    let zone = time.getattr("tzinfo").map_err(|_| wrong_type(name, expected, time))?;
    if zone.is_none() {
        return Err(wrong_value(name, "a datetime without a time zone"));
    }
    let seconds: f64 = time.call_method0("timestamp")?.extract()?;
    match seconds >= 0.0 {
        true => Ok((seconds * 1e6).round() as u64),
        false => Err(before_1970()),
    }
}

fn clock_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
