//! Results for readers: a page, charts, and the comparison of two runs.
//!
//! [`page()`] writes one self-contained HTML file that shows its tables without scripts too. [`charts()`] writes the same
//! numbers as SVG files for documents. [`publish`] makes the documents of a run. [`compare`] finds the ratios that changed between two runs. [`read()`] reads result
//! files, and names the file and field of an invalid one.
//!
//! ```
//! # use wireproof_report as report;
//! let json = include_bytes!("../fixtures/everything.json");
//! let results = report::parse(json)?;
//! let page = report::page(&[results], &report::Options::default()).expect("a run");
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), report::ReadFault>(())
//! ```
//!
//! This crate does not measure and shows only numbers of the results. The command writes the files.

#![forbid(unsafe_code)]

mod about;
mod assets;
mod charts;
pub mod compare;
mod html;
mod machine;
mod markdown;
mod page;
mod picture;
pub mod publish;
mod ratios;
mod read;
mod standing;

use results::terminal::Baseline;

pub use charts::{Chart, charts};
pub use page::page;
pub use ratios::Ratio;
pub use read::{ReadError, ReadFault, parse, read};

/// The file of results in the folder of a page, which the page links to.
pub const RAW: &str = "results.json";

/// Options of a page.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The baseline of ratios, instead of the default rows.
    pub baseline: Option<Baseline>,
}

#[cfg(test)]
mod samples {
    use std::path::Path;

    use results::Results;

    /// The newest published run with AVX-512.
    pub(crate) fn published() -> Results {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        crate::publish::Run::newest(&root, true).unwrap().unwrap().results
    }

    /// Results with a little of everything.
    pub(crate) fn results() -> Results {
        crate::parse(include_bytes!("../fixtures/everything.json")).unwrap()
    }
}
