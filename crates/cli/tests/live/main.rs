//! What do commands print of a network, and what have they kept when they end?
//!
//! | module | what it asks |
//! |---|---|
//! | `jetstreams` | the lines of what nobody signed |
//! | `lines` | what a line says of an event, of whatever kind and verdict |
//! | `places` | where a run goes on, and how it ends: interrupted, refused, out of disk |
//! | `servers` | whose accounts a server may tell of |
//! | `watching` | what Prometheus gets |
//! | `interrupting` | what a `verify` leaves behind that is interrupted |
//! | `encrypted` | streams and directories over TLS, and whose certificates are taken |
//! | `capturing` | the files of a capture, and that the benchmark takes them |
//!
//! The network is the simulated one, on loopback; the command is a process of its own.

#![forbid(unsafe_code)]

mod capturing;
mod encrypted;
mod interrupting;
mod jetstreams;
mod lines;
mod places;
mod running;
mod servers;
mod watching;
