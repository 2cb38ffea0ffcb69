//! The results that the tests read: a little of everything.

use bench::Results;

/// Those of the file, read by the harness's own types.
pub(crate) fn results() -> Results {
    crate::parse(include_bytes!("../fixtures/everything.json")).unwrap()
}
