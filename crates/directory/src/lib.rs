//! A did:plc directory from a verified mirror.
//!
//! | part | content |
//! |---|---|
//! | [`MirrorRun`] | fills a mirror from the pages and the stream of a directory |
//! | [`MirrorTree`] | the tree of a mirror after any of its operations, for checkpoints and proofs |
//! | [`diff`] | histories that differ between two mirrors |
//! | [`BundleFolder`] | bundles of operations that others keep |
//! | [`Server`] | answers documents, logs and exports as the reference server does |

#![forbid(unsafe_code)]

mod accounts;
mod answer;
mod body;
mod bundles;
mod checkpoint;
mod diff;
mod document;
mod kept_answers;
mod lines;
mod mirror_run;
mod readers;
mod route;
mod server;
mod stream;
mod time;

pub use answer::Answer;
pub use bundles::{BundleError, BundleFolder, write_bundles};
pub use checkpoint::MirrorTree;
pub use diff::{DiffCounts, Difference, DifferenceKind, diff};
pub use mirror_run::{MirrorCounts, MirrorError, MirrorNews, MirrorOptions, MirrorRun};
pub use server::{Options, Server, ServerError};

#[cfg(test)]
mod tests;
