//! A did:plc directory from a verified mirror.
//!
//! | part | content |
//! |---|---|
//! | [`Server`] | answers documents, logs and exports as the reference server does |

#![forbid(unsafe_code)]

mod answer;
mod document;
mod lines;
mod readers;
mod route;
mod server;
mod stream;
mod time;

pub use answer::Answer;
pub use server::{Options, Server, ServerError};

#[cfg(test)]
mod tests;
