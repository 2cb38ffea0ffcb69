//! Other people's servers and readers, running beside a test.
//!
//! | module | what it runs |
//! |---|---|
//! | [`plc`] | `@did-plc/server`, the reference directory, in memory |
//! | [`pds`] | `@atproto/pds`, the reference PDS, and its API for those who write |
//! | [`relay`] | the relay of `indigo` |
//! | [`reader`] | consumers of event streams |
//!
//! [`kit`](mod@kit) says where they are installed, [`program`] sees that each of them ends. Everything listens
//! on 127.0.0.1, and what goes wrong here is a failed test: functions panic and say why.

#![forbid(unsafe_code)]

mod http;
pub mod kit;
pub mod pds;
pub mod plc;
pub mod program;
pub mod reader;
pub mod relay;
