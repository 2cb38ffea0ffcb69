//! `wireproof nostr follow`: the arguments of [`nostr_follower`].

mod args;
mod auth_key;
mod known;

use follower::Status;
use nostr_follower::NostrFollower;

use crate::failure::Failure;
use crate::network;

pub(crate) use args::NostrFollowArgs;

pub(super) fn run(args: &NostrFollowArgs) -> Result<(), Failure> {
    let status = if args.delivers() { Status::of_deliveries() } else { Status::new() };
    let follower = NostrFollower::new(args.options(&status)?)?;
    let runtime = network::runtime()?;
    let result = runtime.block_on(follower.run_as_command(status));
    // A thread that waits for a disk must not delay the end.
    runtime.shutdown_background();
    result
}
