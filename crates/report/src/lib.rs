//! Results for readers: what did a run find, and what has changed since another?
//!
//! [`page()`] writes one HTML file that holds all there is to see, asks no server for anything, and shows
//! its tables to a browser without scripts too. [`charts()`] writes the same numbers as pictures for a
//! document. [`compare`] says which ratios moved between two runs. [`read()`] reads the files, and names the
//! file and the field of one that is none.
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
//! Nothing here measures, and no number is here that the results do not hold. Files are written by the
//! command.

#![forbid(unsafe_code)]

mod about;
mod assets;
mod charts;
pub mod compare;
mod html;
mod markdown;
mod page;
mod picture;
mod ratios;
mod read;
#[cfg(test)]
mod samples;
mod scale;
mod table;

use bench::terminal::Baseline;

pub use charts::{Chart, charts};
pub use page::page;
pub use ratios::Ratio;
pub use read::{ReadError, ReadFault, parse, read};

/// What a reader may wish of a page.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What ratios are held against, instead of the usual rows.
    pub baseline: Option<Baseline>,
}
