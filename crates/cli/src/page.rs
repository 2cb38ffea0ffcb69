//! `wireproof page`: writes the page that verifies where it is opened.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use program::page::{PAGE, WITHOUT_PAGE};

use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Write the page that verifies in a browser: one HTML file without requests of its own.
///
/// Open the file, then drop a repository, a firehose frame, Nostr events or a DID log on it, or enter a handle. It verifies with the
/// same library, offline too.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PageArgs {
    /// The file to write; `-` for standard output.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, default_value = "wireproof.html")]
    out: PathBuf,
}

pub(crate) fn run(args: &PageArgs, output: Output) -> Result<(), Failure> {
    write(PAGE, &args.out, output)
}

fn write(page: Option<&[u8]>, out: &Path, output: Output) -> Result<(), Failure> {
    let page = page.ok_or_else(|| Failure::Usage(WITHOUT_PAGE.to_owned()))?;
    if files::is_standard_stream(out) {
        Ok(output.bytes().write_all(page)?)
    } else {
        files::write(out, page)
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof page
  wireproof page --out public/verify.html";

#[cfg(test)]
mod tests {
    use program::output::Color;

    use super::*;

    #[test]
    fn a_program_with_the_page_writes_it_and_one_without_says_how_to_get_it() {
        let folder = tempfile::tempdir().unwrap();
        let (out, output) = (folder.path().join("page.html"), Output::new(Color::Never));
        write(Some(b"<!doctype html>"), &out, output).unwrap();
        assert_eq!(std::fs::read(&out).unwrap(), b"<!doctype html>");
        let failure = write(None, &folder.path().join("other.html"), output).unwrap_err();
        assert_eq!((failure.code(), failure.message()), (2, Some(WITHOUT_PAGE)));
        assert!(!folder.path().join("other.html").exists());
    }
}
