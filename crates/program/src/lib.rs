//! The common parts of the programs: configuration, messages, files, clients of the network, output, exit codes.
//!
//! Every program defines its arguments and calls the libraries; nothing here is a command.

#![forbid(unsafe_code)]

pub mod account;
pub mod args;
pub mod arguments;
pub mod batch;
pub mod clock;
pub mod config;
#[cfg(feature = "firehose")]
pub mod connection;
pub mod controls;
pub mod corpus_file;
pub mod download;
pub mod failure;
pub mod files;
pub mod findings;
#[cfg(feature = "firehose")]
pub mod first_contact;
pub mod help;
pub mod in_order;
pub mod inputs;
pub mod interrupt;
pub mod json;
pub mod key_files;
pub mod library_messages;
pub mod list_floor;
pub mod log;
pub mod manual;
#[cfg(feature = "store")]
pub mod mirrored_accounts;
pub mod names;
pub mod network;
pub mod output;
pub mod page;
pub mod programs;
pub mod progress;
pub mod stage;
pub mod standard_streams;
#[cfg(feature = "firehose")]
pub mod stream;
