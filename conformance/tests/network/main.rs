//! What do the clients make of a network that serves, fails and lies?
//!
//! | module | what it asks |
//! |---|---|
//! | `xrpc` | repositories, records and lists from PDSs and relays |
//! | `websockets` | upgrades that are refused, connections that are cut, silent or too much |
//! | `feeds` | the firehose: cursors, numbers, hosts, and what servers say of them |
//! | `jetstreams` | both versions: dictionaries, wishes, cursors, hosts |
//! | `runs` | the whole of it: every event judged, handed over and acknowledged, in order |
//! | `resyncs` | repositories of accounts that are out of step |
//!
//! The servers are those of `simnet`, on loopback. Every fault that a test switches on is shown to have
//! happened.

#![forbid(unsafe_code)]

mod follower;
mod line;

mod feeds;
mod jetstreams;
mod resyncs;
mod runs;
mod websockets;
mod xrpc;
