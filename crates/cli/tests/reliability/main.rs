//! Does `follow` lose nothing, whatever happens to it?
//!
//! Each test drives the command's binary as a child process against a simulated network in this one,
//! and holds what it printed against what the network told.
//!
//! | module | what it asks |
//! |---|---|
//! | `disconnects` | is every event delivered through disconnects, other hosts and a kill? |
//! | `slow_reader` | does a slow reader slow the server down, and not fill our memory? |
//! | `stalled_resync` | does an account whose repository does not come hold up others? |
//! | `misbehaviour` | is whatever a server sends told, and is silence noticed? |
//! | `full_disk` | what happens when a cursor cannot be stored? |
//!
//! They are short by default; with `WIREPROOF_SOAK=1`, as `cargo xtask soak` runs them, they are whole.

#![forbid(unsafe_code)]

mod child;
mod heard;
mod ledger;
mod state;

mod disconnects;
mod full_disk;
mod misbehaviour;
mod slow_reader;
mod stalled_resync;

/// The first if the tests are short, the second if they are whole.
fn scaled<T>(short: T, whole: T) -> T {
    let is_whole = std::env::var_os("WIREPROOF_SOAK").is_some_and(|value| value == "1");
    if is_whole { whole } else { short }
}

/// What a test found, for whoever writes it down.
fn tell(figure: &str) {
    println!("figure: {figure}");
}
