//! Reliability of `follow`: no event is lost.
//!
//! Every test runs the command as a child process against a simulated network in the test process, and
//! compares the printed lines with the events that the network sent.
//!
//! | module | claim |
//! |---|---|
//! | `archived_labels` | an archive has each label of its labelers once, through kills at any moment |
//! | `changed_runs` | other selections, resets of sequences and kills in any order leave no record missing |
//! | `crash_points` | an end between any two durable steps loses nothing and repeats only unacknowledged events |
//! | `delivered_tables` | a delivery to SQLite has every record and no event twice, through kills at any moment |
//! | `disconnects` | every event is delivered through disconnects, host switches and a kill |
//! | `dead_reader` | a reader that ends with lines unread loses none of them |
//! | `served_clients` | clients of `serve` have every record, through kills of the server, the source and clients, and a full disk |
//! | `slow_reader` | a slow reader slows the server down, in bounded memory |
//! | `memory` | waiting data is bounded in bytes, and so is an account's memory |
//! | `memory_group` | fetched repositories fit a container, whose temporary files are in memory too |
//! | `fetched_archives` | repositories that are received or wait stay within a bound, and lists without end delay no other |
//! | `fetched_blobs` | blobs are stored once through kills, in bounded memory, as fast as limits of hosts allow and no faster |
//! | `hostile_hosts` | no host can mute an account, or keep others from being resynced |
//! | `resync_records` | the lines of commits and resyncs have every record |
//! | `schemas` | lines follow the schema of their kind |
//! | `server_limits` | histories come as fast as servers allow, and odd entries of lists cost none |
//! | `stalled_resync` | an account with a stalled resync does not delay others |
//! | `missing_keys` | events wait for keys that cannot be looked up, others do not, and none is lost |
//! | `misbehaviour` | faulty frames and silence are reported and lose nothing |
//! | `false_claims` | a host cannot deactivate an account of another host, and invented accounts take no space |
//! | `stops` | a stop ends in its time under any load, and the next run loses nothing |
//! | `full_disk` | a cursor or a line that cannot be written ends the run |
//! | `kept_archives` | an archive keeps its events while its logs expire or miss entries, and claims bring no erased account back |
//! | `lost_state` | a state that is deleted, emptied or opened twice during a run ends it, with the cursor |
//! | `webhook_receivers` | a receiver of webhooks has every record, through kills of either side, failures and slow answers |
//! | `websocket_clients` | WebSocket clients have every record, through kills of the process and of clients |
//! | `unwritable_archive` | a full disk or a missing permission ends a command about an archive, and loses nothing |
//! | `unusable_state` | a state that cannot be read or written is an error that names the fix, or is recovered |
//!
//! The tests are short by default; `WIREPROOF_SOAK=1`, as set by `cargo xtask soak`, runs them in full.

#![forbid(unsafe_code)]

mod consumed;
mod event_log;
mod follow;

mod archived_labels;
mod changed_runs;
// Other builds have no crash points.
#[cfg(debug_assertions)]
mod crash_points;
mod dead_reader;
mod delivered_tables;
mod disconnects;
mod false_claims;
#[cfg(target_os = "linux")]
mod fetched_archives;
mod fetched_blobs;
mod full_disk;
mod hostile_hosts;
mod kept_archives;
mod lost_state;
mod memory;
#[cfg(target_os = "linux")]
mod memory_group;
mod misbehaviour;
mod missing_keys;
mod resync_records;
#[path = "../schemas/mod.rs"]
mod schemas;
mod served_clients;
mod server_limits;
mod slow_reader;
mod stalled_resync;
mod stops;
mod unusable_state;
mod unwritable_archive;
#[path = "../webhook/mod.rs"]
mod webhook;
mod webhook_receivers;
mod websocket_clients;

/// The first value for short tests, the second for full ones.
fn scaled<T>(short: T, whole: T) -> T {
    let is_whole = std::env::var_os("WIREPROOF_SOAK").is_some_and(|value| value == "1");
    if is_whole { whole } else { short }
}

/// Prints the figure of a test.
fn report(figure: &str) {
    println!("figure: {figure}");
}
