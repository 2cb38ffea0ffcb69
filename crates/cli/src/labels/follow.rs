//! `wireproof labels follow`: the arguments of [`label_follower`].

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use follower::{DELIVERY, Destination, DestinationParser, OutboxArgs, Status, state_folder};
use label_follower::{LabelFollowOptions, LabelFollower, Start};

use crate::connection::ConnectionArgs;
use crate::failure::Failure;
use crate::network::{self, NetworkArgs};

/// Follow labelers: print every label with its verdict, or deliver it.
///
/// A label is verified if the key #atproto_label of its source has signed it. A source's key is looked up again before a label is
/// refused for its signature. Of labels with the same source, subject and value, the one that was created last counts; the table
/// `label` of databases has those in force. A run resumes after the last label that was taken or stored.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FollowArgs {
    /// Labelers to follow, all at once.
    #[arg(value_name = "DID|HANDLE", required = true)]
    labelers: Vec<String>,
    /// Begin with the labels that are made from now on [default: the oldest label of the service].
    #[arg(long)]
    new: bool,
    /// Also accept labels that a key signed which the labeler had earlier, as far as an earlier run has seen it.
    #[arg(long)]
    earlier_keys: bool,
    /// End after N lines.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    events: Option<u64>,
    /// Deliver labels here instead of printing them: file:///FOLDER (files of lines), sqlite:///FILE or
    /// postgres://USER@HOST/DATABASE (a table of the labels in force), kafka://HOST/TOPIC, nats://HOST/PREFIX (stream of
    /// NATS JetStream), or https://… (signed webhook). An outbox on disk keeps labels until they are acknowledged.
    #[arg(long, value_name = "URI", value_delimiter = ',')]
    #[arg(value_parser = DestinationParser, help_heading = DELIVERY)]
    to: Vec<Destination>,
    #[command(flatten)]
    delivery: OutboxArgs,
    /// Folder for cursors and keys [default: wireproof in $XDG_STATE_HOME or ~/.local/state].
    #[arg(long, env = "WIREPROOF_STATE", value_name = "DIR", value_hint = ValueHint::DirPath)]
    state: Option<PathBuf>,
    /// Milliseconds for which few labels wait for more, to be verified together; 0 never waits.
    #[arg(long, env = "WIREPROOF_GATHER_MS", value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=1_000))]
    gather_ms: u64,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn run(args: &FollowArgs) -> Result<(), Failure> {
    let status = if args.to.is_empty() { Status::new() } else { Status::of_deliveries() };
    let follower = LabelFollower::new(args.options()?)?;
    let runtime = network::runtime()?;
    let result = runtime.block_on(follower.run_as_command(status));
    // A thread that waits for a disk must not delay the end.
    runtime.shutdown_background();
    result
}

impl FollowArgs {
    fn options(&self) -> Result<LabelFollowOptions, Failure> {
        let mut options =
            LabelFollowOptions::of_command(&self.labelers, &self.network, &self.connection)?;
        if self.new {
            options.start = Start::Now;
        }
        options.accept_earlier_keys = self.earlier_keys;
        options.events = self.events;
        options.checkpoints = Some(state_folder(self.state.as_deref())?.join("labels"));
        if !self.to.is_empty() {
            options.outbox_folder = self.outbox_folder()?;
        }
        options.to = self.to.clone();
        options.outbox = self.delivery.clone();
        options.max_gather = Duration::from_millis(self.gather_ms);
        Ok(options)
    }

    /// The folder of the outbox and of refused events, apart from the folders of other commands.
    fn outbox_folder(&self) -> Result<PathBuf, Failure> {
        let folder = match &self.delivery.outbox {
            Some(folder) => folder.clone(),
            None => state_folder(self.state.as_deref())?.join("outbox"),
        };
        Ok(folder.join("labels"))
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof labels follow moderation.bsky.app
  wireproof labels follow did:plc:ar7c4by46qjdydhdevvrndac --to sqlite:///var/lib/labels.db
  wireproof labels follow moderation.bsky.app | jq -r 'select(.verdict == \"verified\") | .uri + \" \" + .val'";
