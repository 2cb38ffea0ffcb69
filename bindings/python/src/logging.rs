//! Messages for the logger `wireproof` of the module `logging`, which wait until a thread of Python writes them.

use std::collections::VecDeque;

use pyo3::prelude::*;

/// Messages that wait. Beyond [`MAX_LINES`] the oldest one is dropped.
#[derive(Debug, Default)]
pub(crate) struct LogLines(VecDeque<LogLine>);

#[derive(Debug)]
struct LogLine {
    /// A level of the module `logging`.
    level: u8,
    text: String,
}

impl LogLines {
    /// No messages.
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Adds a message.
    pub(crate) fn add(&mut self, level: u8, text: String) {
        if self.0.len() >= MAX_LINES {
            self.0.pop_front();
        }
        self.0.push_back(LogLine { level, text });
    }

    /// Writes the messages.
    pub(crate) fn write(self, py: Python<'_>) -> PyResult<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let logger = py.import("logging")?.call_method1("getLogger", ("wireproof",))?;
        for line in self.0 {
            logger.call_method1("log", (line.level, "%s", line.text))?;
        }
        Ok(())
    }
}

/// Maximum number of messages that wait.
const MAX_LINES: usize = 100;

/// Levels of the module `logging`.
pub(crate) const DEBUG: u8 = 10;
pub(crate) const INFO: u8 = 20;
pub(crate) const WARNING: u8 = 30;
pub(crate) const ERROR: u8 = 40;
