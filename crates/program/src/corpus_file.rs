//! Files of a corpus or a capture, with JSON descriptions next to them.

use std::path::Path;

use serde::Serialize;

use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// A data file with the line that is printed about it.
pub struct CorpusFile<'a> {
    /// The name in its folder.
    pub name: &'a str,
    /// The content.
    pub bytes: &'a [u8],
    /// The SHA-256 in hexadecimal.
    pub sha256: &'a str,
    /// Its content, for a person.
    pub content: String,
}

impl CorpusFile<'_> {
    /// Writes the file, then its description next to it, and prints a line about it.
    ///
    /// # Errors
    /// If one of them cannot be written.
    pub fn write(
        &self,
        folder: &Path,
        description: &impl Serialize,
        output: Output,
    ) -> Result<(), Failure> {
        let Self { name, bytes, sha256, content } = self;
        let path = folder.join(name);
        files::replace(&path, bytes)?;
        // Where there is a description, the file is whole.
        files::replace_json(&path.with_extension("json"), description)?;
        let (path, len) = (path.display(), bytes.len());
        output.text(&format!("{path}: {content}, {len} bytes, SHA-256 {sha256}\n"))
    }
}
