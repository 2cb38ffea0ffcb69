//! Do we and the programs that the network runs on understand each other?
//!
//! | module | what it holds against each other |
//! |---|---|
//! | `asks_pds` | our questions and proofs, and the answers of the reference PDS and directory |
//! | `follows_pds` | our client and the reference PDS, which is killed on the way |
//! | `follows_relay` | our client and the relay of `indigo` between it and that PDS |
//! | `readers` | our simulator and the consumers of other people |

#![forbid(unsafe_code)]

mod client;
mod life;
mod mirror;

mod asks_pds;
mod follows_pds;
mod follows_relay;
mod readers;
