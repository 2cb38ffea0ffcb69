//! Random ids.

/// A random UUID.
pub(crate) fn uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}
