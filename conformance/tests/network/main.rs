//! The network clients against simulated servers, with and without faults.
//!
//! | module | tests |
//! |---|---|
//! | `xrpc` | repositories, records and lists from PDSs and relays |
//! | `websockets` | upgrades that are refused, connections that are cut or silent, and too many connections |
//! | `feeds` | the firehose: cursors, sequence numbers, hosts, and errors of servers |
//! | `jetstreams` | both versions: dictionaries, options, cursors, hosts |
//! | `runs` | every event verified, delivered and acknowledged, in order; accounts with gaps |
//!
//! The servers come from `simnet`, on loopback. Every test asserts that the faults it enables have
//! occurred.

#![forbid(unsafe_code)]

mod follower;
mod setup;

mod feeds;
mod jetstreams;
mod runs;
mod websockets;
mod xrpc;
