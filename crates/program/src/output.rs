//! Standard output: colour, JSON documents, text and tables.

use std::io::{StdoutLock, Write, stdout};

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use codec::printable::{PrintableLines, escape_json};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::failure::Failure;

/// When output is coloured.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// Standard output, and whether it is coloured.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    choice: ColorChoice,
}

impl Output {
    /// Applies `color` to standard output and standard error.
    pub fn new(color: Color) -> Self {
        let choice = match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        choice.write_global();
        Self { choice }
    }

    /// Locks standard output. Styles are stripped where colour is off.
    pub fn stdout(self) -> AutoStream<StdoutLock<'static>> {
        AutoStream::new(stdout().lock(), self.choice)
    }

    /// Locks standard output for bytes that are not text and must not be stripped.
    pub fn bytes(self) -> StdoutLock<'static> {
        stdout().lock()
    }

    /// Prints `text`, which may quote strangers.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn text(self, text: &str) -> Result<(), Failure> {
        Ok(write!(self.stdout(), "{}", PrintableLines(text))?)
    }

    /// Prints text with styles of our own, which quotes no strangers.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn styled(self, text: &str) -> Result<(), Failure> {
        self.raw(text.as_bytes())
    }

    /// Prints bytes of our own, which quote no strangers.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn raw(self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.stdout().write_all(bytes)?)
    }

    /// Returns the result. With `json`, a failure is printed as a document before, so that there is one in every case.
    ///
    /// # Errors
    /// The given failure, and if standard output cannot be written.
    pub fn or_failure_document<T>(
        self,
        json: bool,
        result: Result<T, Failure>,
    ) -> Result<T, Failure> {
        if let Err(failure) = &result
            && let Some(error) = failure.message().filter(|_| json)
        {
            self.document(&FailureDocument { error }, true, |_| String::new())?;
        }
        result
    }

    /// Prints `document` as one JSON document if `json` is set, else as text.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn document<T: Serialize>(
        self,
        document: &T,
        json: bool,
        to_text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        if !json {
            return self.text(&to_text(document));
        }
        let mut json = serde_json::to_vec_pretty(document).map_err(std::io::Error::from)?;
        escape_json(&mut json, 0);
        json.push(b'\n');
        Ok(self.stdout().write_all(&json)?)
    }
}

/// The document of a command without a result.
#[derive(Serialize)]
struct FailureDocument<'f> {
    error: &'f str,
}

/// Writes `value` as one line of JSON.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_json_line(out: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    let mut json = serde_json::to_vec(value)?;
    escape_json(&mut json, 0);
    json.push(b'\n');
    out.write_all(&json)
}

/// A table without rules: the first column aligned left, the others right.
pub fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt() + "\n"
}

/// The line that stands for `total - shown` entries, if there are any.
pub fn and_more(total: usize, shown: usize) -> String {
    match total.saturating_sub(shown) {
        0 => String::new(),
        more => format!("… and {more} more: --all or --json shows them\n"),
    }
}
