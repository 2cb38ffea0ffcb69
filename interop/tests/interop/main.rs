//! Interoperability with the programs that run the network.
//!
//! | module | contents |
//! |---|---|
//! | `requests` | requests and proofs, with the responses of the reference PDS and directory |
//! | `arroba` | collections of a PDS of arroba |
//! | `follows` | the client follows the reference PDS, directly and through the relay of `indigo` |
//! | `printed_state` | the lines of `follow --resync` give the records of all accounts, through every failure |
//! | `postgres` | the tables that `follow --to` writes in PostgreSQL, through kills of both sides; refusals |
//! | `kafka` | a topic of Kafka that `follow --to` fills, through kills of both sides and a rebalance of its readers; refusals |
//! | `nats` | a stream of NATS JetStream that `follow --to` fills, through kills of both sides; refusals |
//! | `nostr_deliveries` | PostgreSQL and NATS, which `nostr follow --to` fills from the relay of rust-nostr, through kills |
//! | `nostr_relays` | `nostr follow` and the relay of rust-nostr: pages, filters, new events, a kill, comparison of ids, limits, authentication |
//! | `nostr_databases` | a database that nostrdb writes, read and proved |
//! | `archives` | consumers of other projects, and `follow`, catch up from `wireproof archive serve` |
//! | `hosts` | the judgement of the reference PDS, of the relay of `indigo` and of a PDS of arroba |
//! | `jetstream_archives` | a Python client of hosted Jetstream archives reads the segments of the simulator |
//! | `kafka_logins` | tokens of an identity provider, and the signature for Amazon MSK |
//! | `readers` | consumers of other projects follow the simulator |
//! | `serve_commits` | `wireproof serve` passes on every commit of an account that was reactivated |
//! | `serve_directory` | `@atproto/api` asks `wireproof serve` for accounts and hosts |
//! | `serve_frames` | consumers of other projects follow `wireproof serve`, through kills of both sides |
//! | `serve_jetstreams` | clients of Jetstreams, versions 1 and 2, do the same, with compression and filters |
//! | `serve_refusals` | cursors outside of its window, and handshakes that it refuses by name |
//! | `stores` | archives in an S3 server: kills of both sides, every command; refusals |
//! | `store_races` | races of writers for objects and tables in servers of S3 and of Azure blobs |
//! | `store_upkeep` | an archive in an S3 server is followed, merged, made compact, proved and erased |
//! | `store_faults` | the same store behind a proxy that answers 503, is silent, slow, or cuts and loses responses |
//! | `taps` | the client of tap receives the channel of `wireproof follow --to ws://…` |
//! | `writes` | the importer of the reference PDS and indigo's verifier, with repositories and frames that we write |

#![forbid(unsafe_code)]

mod activity;
mod archives;
mod arroba;
mod certificates;
mod client;
mod delivery;
mod follower;
mod follows;
mod hosts;
mod jetstream_archives;
mod kafka;
mod kafka_logins;
mod nats;
mod nostr_databases;
mod nostr_deliveries;
mod nostr_relays;
mod postgres;
mod printed_state;
mod queue;
mod readers;
mod requests;
mod serve_commits;
mod serve_directory;
mod serve_frames;
mod serve_jetstreams;
mod serve_refusals;
mod served;
mod served_client;
mod store_faults;
mod store_races;
mod store_upkeep;
mod stores;
mod taps;
mod webhooks;
mod writes;

/// The first value for short tests, the second with `WIREPROOF_SOAK=1`, which `cargo xtask soak` sets.
fn scaled<T>(short: T, whole: T) -> T {
    let is_whole = std::env::var_os("WIREPROOF_SOAK").is_some_and(|value| value == "1");
    if is_whole { whole } else { short }
}

/// How long a round of kills lasts, in different moments of a run.
fn round_time(round: usize) -> std::time::Duration {
    std::time::Duration::from_millis(60 + 131 * (round as u64 % 7))
}
