//! A did:plc directory from a verified mirror.
//!
//! | part | content |
//! |---|---|
//! | [`MirrorRun`] | fills a mirror from the pages and the stream of a directory |
//! | [`Server`] | answers documents, logs and exports as the reference server does |

#![forbid(unsafe_code)]

mod answer;
mod document;
mod lines;
mod mirror_run;
mod readers;
mod route;
mod server;
mod stream;
mod time;

pub use answer::Answer;
pub use mirror_run::{MirrorCounts, MirrorError, MirrorNews, MirrorOptions, MirrorRun};
pub use server::{Options, Server, ServerError};

#[cfg(test)]
mod tests;
