//! Why a text is no line, and where.

use std::str::Utf8Error;

use serde_json::error::Category;

use crate::words::Kind;

/// Why a text is no line, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}, at byte {offset}")]
pub struct LineError {
    /// Bytes from the start of the text to the end of the part that breaks the rule.
    pub offset: usize,
    /// The broken rule.
    pub fault: LineFault,
}

/// The rule that a text breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineFault {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Json(Box<str>),
    /// A value is of another type, or a key is missing or twice there.
    #[error("{0}")]
    Value(Box<str>),
    /// The line is of another version.
    #[error("a line of version {0}; this program reads version 1")]
    Version(u64),
    /// A key is missing that lines of its kind have.
    #[error("a line of kind `{kind}` without `{key}`")]
    Missing {
        /// The kind.
        kind: Kind,
        /// The key.
        key: &'static str,
    },
}

impl LineError {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        "line/malformed"
    }

    /// The error of a text that lacks a key, or has no well-formed value there.
    #[cold]
    pub fn missing(key: &str, text: &[u8]) -> Self {
        let fault = LineFault::Value(format!("no well-formed `{key}`").into());
        Self { offset: text.len(), fault }
    }

    /// The error of bytes that are no text.
    #[cold]
    pub(crate) fn of_utf8(error: Utf8Error) -> Self {
        Self { offset: error.valid_up_to(), fault: LineFault::Json("not UTF-8".into()) }
    }

    /// The error of a reader of `text`.
    #[cold]
    pub(crate) fn of_json(error: &serde_json::Error, text: &[u8]) -> Self {
        let before =
            text.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
        let offset = before.map(<[u8]>::len).sum::<usize>() + error.column();
        let message = error.to_string();
        let rule = message.rsplit_once(" at line ").map_or(&*message, |(rule, _)| rule).into();
        let fault = match error.classify() {
            Category::Data => LineFault::Value(rule),
            _ => LineFault::Json(rule),
        };
        Self { offset: offset.min(text.len()), fault }
    }
}
