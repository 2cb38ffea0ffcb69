//! Servers and readers of other projects, run as child processes of a test.
//!
//! | module | contents |
//! |---|---|
//! | [`pds`] | `@did-plc/server`, the reference directory, and `@atproto/pds`, the reference PDS |
//! | [`arroba`] | a PDS of arroba |
//! | [`relay`] | the relay of `indigo` |
//! | [`rainbow`] | rainbow of `indigo`, which serves the events of a relay to clients |
//! | [`postgres`] | a server of PostgreSQL |
//! | [`kafka`] | a broker of Apache Kafka |
//! | [`labeler`] | the labeler of Skyware |
//! | [`nats`] | a server of NATS JetStream |
//! | [`nostr`] | the Nostr relay of rust-nostr |
//! | [`s3`] | a server of S3 with atomic conditional puts |
//! | [`azure`] | a server of Azure blobs |
//! | [`faults`] | a proxy that answers 503, is silent, slow, or cuts and loses responses |
//! | [`proxy`] | a proxy in front of a server that is out of service at times |
//! | [`reader`] | consumers of event streams |
//! | [`program`] | the installed programs, and processes that end with the test |
//!
//! Every server listens on 127.0.0.1 only. An error here is a failed test: functions panic with the reason.

#![forbid(unsafe_code)]

pub mod arroba;
pub mod azure;
pub mod faults;
mod http;
pub mod kafka;
pub mod labeler;
pub mod nats;
pub mod nats_users;
pub mod nostr;
pub mod pds;
pub mod postgres;
pub mod program;
pub mod proxy;
pub mod rainbow;
pub mod reader;
pub mod relay;
pub mod s3;
