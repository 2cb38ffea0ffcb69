//! The documents of a published run: every number in README, docs and charts comes from one committed run, except the README's
//! column for processors without AVX-512, which comes from a second one.
//!
//! A document is written by hand except between markers, `<!-- NAME:begin -->` and `<!-- NAME:end -->`, within a line
//! or over several. [`documents`] replaces the text between them; [`refusal`] says why a run may not be published.

mod headline;
mod parts;
mod refusal;
mod runs;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::ReadError;

pub use refusal::{UnpublishedRun, refusal, refusal_without_avx512};
pub use runs::Run;
pub(crate) use runs::used_avx512;

/// A file of the repository, as the run has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// From the root of the repository, with `/` between folders.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// Fills every document below `root` that has numbers of a run, and draws every chart. All numbers come from `run`, except the
/// ratios without AVX-512, which come from `without_avx512`.
///
/// # Errors
/// If a document cannot be read, its markers are unknown or do not match, or the run lacks numbers that a document
/// shows.
pub fn documents(
    root: &Path,
    run: &Run,
    without_avx512: Option<&Run>,
) -> Result<Vec<Document>, PublishError> {
    let mut documents = Vec::new();
    for path in markdown_files(root)? {
        let file = root.join(&path);
        let text = fs::read_to_string(&file).map_err(|error| PublishError::Io(file, error))?;
        if !text.contains(BEGIN) {
            continue;
        }
        let depth = path.matches('/').count();
        let text = replaced(&path, &text, &parts::PublishedRun { run, without_avx512, depth })?;
        documents.push(Document { path, text });
    }
    let mut charts = crate::charts(&run.results, None);
    for name in CHARTS {
        let at = charts.iter().position(|chart| chart.name == name);
        let chart = charts.swap_remove(at.ok_or(PublishError::NoChart(name))?);
        documents.push(Document { path: format!("docs/charts/{name}.svg"), text: chart.svg });
    }
    Ok(documents)
}

/// The paths of all documents that differ from the run.
///
/// # Errors
/// See [`documents`].
pub fn stale(
    root: &Path,
    run: &Run,
    without_avx512: Option<&Run>,
) -> Result<Vec<String>, PublishError> {
    let documents = documents(root, run, without_avx512)?.into_iter();
    let is_stale = |document: &Document| {
        fs::read_to_string(root.join(&document.path)).ok().as_ref() != Some(&document.text)
    };
    Ok(documents.filter(is_stale).map(|document| document.path).collect())
}

/// README and every Markdown file below `docs`, sorted.
fn markdown_files(root: &Path) -> Result<Vec<String>, PublishError> {
    let mut files = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        let fault = |error| PublishError::Io(path.clone(), error);
        for entry in fs::read_dir(&path).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.file_type().map_err(fault)?.is_dir() {
                folders.push(name);
            } else if name.ends_with(".md") {
                files.push(name);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The text with every part between markers made again.
fn replaced(path: &str, text: &str, run: &parts::PublishedRun<'_>) -> Result<String, PublishError> {
    let fault = |name: &str, fault| PublishError::Part {
        document: path.to_owned(),
        part: name.to_owned(),
        fault,
    };
    let (mut done, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(BEGIN) {
        let before = &rest[..at];
        let name = before.rsplit_once(OPEN).map_or(before, |(_, name)| name);
        let end = format!("{OPEN}{name}:end -->");
        let (begun, old) = rest.split_at(at + BEGIN.len());
        let (old, after) = old.split_once(&end).ok_or_else(|| fault(name, "its end is missing"))?;
        if old.contains(BEGIN) {
            return Err(fault(name, "another part begins inside it"));
        }
        let new = run.part(name).ok_or_else(|| fault(name, "unknown, or the run lacks it"))?;
        done += begun;
        done += &if old.contains('\n') { format!("\n{}\n", new.trim_end()) } else { new };
        done += &end;
        rest = after;
    }
    Ok(done + rest)
}

const OPEN: &str = "<!-- ";
const BEGIN: &str = ":begin -->";

/// The charts that documents show.
const CHARTS: [&str; 5] =
    ["commit-full", "decode-verified", "mst-lookup", "nostr-size-speed", "repo-stages"];

/// Why documents cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// A file or folder cannot be read.
    #[error("{}: {_1}", _0.display())]
    Io(PathBuf, io::Error),
    /// A run cannot be read.
    #[error(transparent)]
    Run(#[from] ReadError),
    /// A part of a document cannot be made.
    #[error("{document}: part `{part}`: {fault}")]
    Part {
        /// The document.
        document: String,
        /// The name in the part's markers.
        part: String,
        /// The fault.
        fault: &'static str,
    },
    /// The run has no rows for a chart.
    #[error("docs/charts/{_0}.svg: the run has no such chart")]
    NoChart(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn with(text: &str) -> Result<String, String> {
        let run = Run { name: "a-run".to_owned(), results: samples::results() };
        let run = parts::PublishedRun { run: &run, without_avx512: None, depth: 1 };
        replaced("docs/a.md", text, &run).map_err(|error| error.to_string())
    }

    #[test]
    fn a_part_within_a_line_and_one_over_lines_are_replaced_and_the_rest_is_kept() {
        let text = "a <!-- run:begin -->x<!-- run:end --> b\n<!-- date:begin -->\n1\n2\n<!-- date:end -->\nc";
        let day = "21 November 2026";
        let run = "[bench/results/a-run](../bench/results/a-run/results.json)";
        let expected = format!(
            "a <!-- run:begin -->{run}<!-- run:end --> b\n<!-- date:begin -->\n{day}\n<!-- date:end -->\nc"
        );
        assert_eq!(with(text).unwrap(), expected);
        assert_eq!(with(&expected).unwrap(), expected);
        assert_eq!(with("none").unwrap(), "none");
    }

    #[test]
    fn a_part_that_is_unknown_or_not_closed_is_named() {
        let refused = |text: &str| with(text).unwrap_err();
        assert!(
            refused("<!-- of:begin --><!-- of:end -->")
                .starts_with("docs/a.md: part `of`: unknown")
        );
        assert!(refused("<!-- run:begin -->").ends_with("its end is missing"));
        assert!(
            refused("<!-- run:begin --><!-- date:begin --><!-- date:end --><!-- run:end -->")
                .ends_with("another part begins inside it")
        );
    }
}
