//! Does our side of the network lose nothing, whatever a server does?
//!
//! | module | what it asks |
//! |---|---|
//! | `websockets` | upgrades that are refused, connections that are cut, silent or too much |
//! | `feeds` | the firehose: cursors, numbers, hosts, and what servers say of them |
//!
//! The servers are those of the simulated network, with one fault after the other; a test that
//! switches one on shows that it has happened.

#![forbid(unsafe_code)]

mod line;

mod feeds;
mod websockets;
