//! `cargo xtask speed`: speed and memory of the release build of `follow`.
//!
//! A simulated network, `follow` and the receiver of its events are processes of their own.

mod archive;
mod collections;
mod delay;
mod delivery;
mod follow;
mod nostr;
mod relay;
mod running;
mod scraped;
mod serve;
mod table;
mod tap;

use clap::Subcommand;

use crate::process;

/// What to measure.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Measurement {
    /// Measure verified lines to standard output, in turn with another build.
    Follow(follow::Options),
    /// Measure delivery into each destination, in turn with standard output.
    Delivery(delivery::Options),
    /// Measure `archive follow` in turn with standard output, and then bytes, proofs and queries of archives.
    Archive(archive::Options),
    /// Measure what one collection takes of many repositories.
    Collections(collections::Options),
    /// Measure the delay from an event's time to a WebSocket client.
    Delay(delay::Options),
    /// Measure verified events of a Nostr relay to standard output.
    Nostr(nostr::Options),
    /// Measure `serve` in turn with the relay of indigo and the official Jetstream, for the same clients.
    Serve(serve::Options),
    /// Measure delivery to a WebSocket client in turn with tap of indigo, over the same network.
    Tap(tap::Options),
}

/// Builds the command and measures it.
pub(crate) fn measure(measurement: &Measurement) -> Result<(), String> {
    let packages = match measurement {
        // The relay and the directory need no query engine, which takes most of the time of a build.
        Measurement::Serve(_) => &SERVE_PACKAGES[..],
        _ => &process::PROGRAM_PACKAGES,
    };
    process::cargo(&[&["build", "--release"][..], packages].concat())?;
    let program = release("wireproof")?;
    match measurement {
        Measurement::Follow(options) => follow::measure(&program, options),
        Measurement::Delivery(options) => delivery::measure(&program, options),
        Measurement::Archive(options) => archive::measure(&program, options),
        Measurement::Collections(options) => collections::measure(&program, options),
        Measurement::Delay(options) => delay::measure(&program, options),
        Measurement::Nostr(options) => nostr::measure(&program, options),
        Measurement::Serve(options) => serve::measure(&program, options),
        Measurement::Tap(options) => tap::measure(&program, options),
    }
}

/// The programs that `serve` and its simulated networks need.
const SERVE_PACKAGES: [&str; 6] =
    ["-p", "wireproof-cli", "-p", "wireproof-archive-cli", "-p", "wireproof-bench-cli"];

/// Builds an example of the crate of deliveries and returns its path.
fn example(name: &str) -> Result<String, String> {
    example_of("wireproof-delivery", name)
}

/// Builds an example of a crate and returns its path.
fn example_of(package: &str, name: &str) -> Result<String, String> {
    process::cargo(&["build", "--release", "-p", package, "--example", name])?;
    release(&format!("examples/{name}"))
}

/// The path of a program of the release build.
fn release(name: &str) -> Result<String, String> {
    let path = process::target_folder()?.join("release").join(name);
    Ok(path.to_string_lossy().into_owned())
}
