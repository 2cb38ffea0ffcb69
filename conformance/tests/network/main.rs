//! The network clients against simulated servers that serve, fail and lie.
//!
//! | module | what it tests |
//! |---|---|
//! | `xrpc` | repositories, records and lists from PDSs and relays |
//! | `websockets` | upgrades that are refused, connections that are cut, silent or too much |
//! | `feeds` | the firehose: cursors, numbers, hosts, and what servers say of them |
//! | `jetstreams` | both versions: dictionaries, options, cursors, hosts |
//! | `runs` | every event judged, delivered and acknowledged, in order; accounts that are out of step |
//!
//! The servers are those of `simnet`, on loopback. Every fault that a test switches on is shown to have
//! happened.

#![forbid(unsafe_code)]

mod follower;
mod setup;

mod feeds;
mod jetstreams;
mod runs;
mod websockets;
mod xrpc;
