//! The time, as archives have it.

/// Microseconds since 1970, as archives have them.
pub fn now_micros() -> i64 {
    i64::try_from(base::now_micros()).unwrap_or(i64::MAX)
}
