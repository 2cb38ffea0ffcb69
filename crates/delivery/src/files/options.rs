//! The bounds of files of events.

use std::time::Duration;

use crate::line_form::LineForm;

/// Options of a [`FileSink`](crate::FileSink).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileOptions {
    /// Size in bytes at which a file is complete. Default: 256 MiB.
    pub max_bytes: u64,
    /// Age at which a file is complete. Default: an hour.
    pub max_age: Duration,
    /// The unit of a line. Default: an event.
    pub form: LineForm,
}

impl Default for FileOptions {
    fn default() -> Self {
        let form = LineForm::default();
        Self { max_bytes: 256 << 20, max_age: Duration::from_secs(3600), form }
    }
}
