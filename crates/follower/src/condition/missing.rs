//! Conditions of a build without them: none can be parsed.

use std::str::FromStr;

use super::{ConditionCounts, Subject};
use program::programs::WIREPROOF;

/// A condition, of which there are none.
#[derive(Clone, Debug)]
pub(crate) enum Condition {}

impl FromStr for Condition {
    type Err = String;

    fn from_str(_: &str) -> Result<Self, String> {
        Err(WIREPROOF.missing_feature("--where", "where"))
    }
}

impl Condition {
    pub(crate) fn matches(&self, _: &Subject<'_>) -> bool {
        match *self {}
    }

    pub(crate) fn text(&self) -> &str {
        match *self {}
    }

    pub(crate) fn counts(&self) -> &ConditionCounts {
        match *self {}
    }
}
