//! `wireproof archive labels`: stores the labels of labelers in an archive.
//!
//! ```text
//! labeler ── LabelFollower ── LabelsToArchive::take ── buffer ── Archive::seal_labels: labels and cursors, in one commit
//!                                   ▲ a cursor is of the archive, and of no other file
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive::{Archive, ArchiveError, ArchivedLabel, JUDGE, LabelRange, Sealed};
use base::StopSignal;
use clap::{Args, ValueHint};
use crypto::CompressedKey;
use follower::{Status, state_folder};
use label_follower::{
    FollowedLabel, LabelFollowOptions, LabelFollower, LabelStore, Labeler, Start,
};
use program::connection::ConnectionArgs;
use tokio::runtime::Handle;

use crate::archive::arguments::AddressArgs;
use crate::failure::Failure;
use crate::network::{self, NetworkArgs};

/// Store the labels of labelers in an archive, each with its verdict and the key of its time.
///
/// Labels are judged as `labels follow` does, and refused ones are stored too. They are stored every few minutes and at the end,
/// together with the cursors of the labelers: after a crash the next run receives again what was not stored, and stores nothing
/// twice. `archive verify` proves them again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ArchiveLabelsArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// Labelers to follow, all at once.
    #[arg(value_name = "DID|HANDLE", required = true)]
    labelers: Vec<String>,
    /// Begin with the labels that are made from now on, if the archive has none of the labeler [default: the oldest label of the
    /// service].
    #[arg(long)]
    new: bool,
    /// End after N labels, and the rest of the last message.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    events: Option<u64>,
    /// Minutes after which received labels are stored.
    #[arg(long, value_name = "N", env = "WIREPROOF_SEAL_MINUTES", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_440))]
    seal_minutes: u64,
    /// Memory in MiB of received labels at which they are stored; storing takes about as much again.
    #[arg(long, value_name = "N", env = "WIREPROOF_SEAL_MIB", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=4_096))]
    seal_mib: u64,
    /// Folder for keys [default: wireproof in $XDG_STATE_HOME or ~/.local/state].
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

pub(crate) fn run(args: &ArchiveLabelsArgs) -> Result<(), Failure> {
    follower::keep_memory_small();
    let archive = args.address.create()?;
    let runtime = network::runtime()?;
    let result = runtime.block_on(store(args, archive));
    runtime.shutdown_background();
    result
}

async fn store(args: &ArchiveLabelsArgs, archive: Archive) -> Result<(), Failure> {
    // A damaged log is reported before a label is received.
    archive.check_logs().await?;
    let status = Status::new();
    let follower = LabelFollower::new(args.options()?)?;
    let store = LabelsToArchive {
        archive,
        runtime: Handle::current(),
        stop: follower.stop_signal(),
        status: status.clone(),
        max_age: Duration::from_secs(args.seal_minutes * 60),
        max_bytes: usize::try_from(args.seal_mib << 20).unwrap_or(usize::MAX),
        buffer: Buffer::default(),
        cursors: BTreeMap::new(),
        sealed: Sealed::default(),
    };
    follower.store_as_command(store, status).await
}

impl ArchiveLabelsArgs {
    fn options(&self) -> Result<LabelFollowOptions, Failure> {
        let mut options =
            LabelFollowOptions::of_command(&self.labelers, &self.network, &self.connection)?;
        if self.new {
            options.start = Start::Now;
        }
        options.events = self.events;
        options.checkpoints = Some(state_folder(self.state.as_deref())?.join("archive-labels"));
        options.max_gather = Duration::from_millis(self.gather_ms);
        Ok(options)
    }
}

/// Collects labels, and stores them in the archive.
struct LabelsToArchive {
    archive: Archive,
    runtime: Handle,
    stop: StopSignal,
    status: Status,
    /// Maximum age of the oldest label that is not stored.
    max_age: Duration,
    /// Size of labels that are not stored, with their places, in bytes.
    max_bytes: usize,
    buffer: Buffer,
    /// The cursors of services in the archive, by service and host.
    cursors: BTreeMap<Stream, Option<i64>>,
    sealed: Sealed,
}

/// Service and host.
type Stream = (String, String);

/// Labels that are not stored yet.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    labels: Vec<Entry>,
    /// The number of the last message, by service and host.
    up_to: BTreeMap<Stream, i64>,
    since: Option<Instant>,
}

/// A label in the buffer.
struct Entry {
    stream: Arc<Stream>,
    seq: i64,
    idx: i16,
    received: i64,
    code: &'static str,
    key: Option<Arc<str>>,
    /// The end of its bytes.
    end: usize,
}

impl LabelStore for LabelsToArchive {
    fn cursor(&mut self, labeler: &Labeler) -> Result<Option<u64>, Failure> {
        let stream = (labeler.did.to_string(), labeler.origin());
        let cursor = self.runtime.block_on(self.archive.label_cursor(&stream.0, &stream.1))?;
        self.cursors.insert(stream, cursor);
        Ok(cursor.and_then(|cursor| u64::try_from(cursor).ok()))
    }

    fn take(
        &mut self,
        labeler: &Labeler,
        labels: &[FollowedLabel<'_>],
        up_to: Option<u64>,
    ) -> Result<(), Failure> {
        self.buffer.add((labeler.did.to_string(), labeler.origin()), labels, up_to);
        let is_due = self.buffer.since.is_some_and(|since| since.elapsed() >= self.max_age);
        if is_due || self.buffer.size() >= self.max_bytes { self.seal() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.seal()?;
        let Sealed { events, files, bytes, .. } = self.sealed;
        self.status.print(&format!("{events} labels stored: {bytes} bytes in {files} files"));
        Ok(())
    }
}

impl LabelsToArchive {
    /// Stores the labels of the buffer. A store that is away is waited for until a stop is requested.
    fn seal(&mut self) -> Result<(), Failure> {
        let range = |(stream, up_to): (&Stream, &i64)| LabelRange {
            service: stream.0.clone(),
            host: stream.1.clone(),
            after: self.cursors.get(stream).copied().flatten(),
            up_to: *up_to,
        };
        let ranges: Vec<LabelRange> = self.buffer.up_to.iter().map(range).collect();
        if ranges.is_empty() {
            return Ok(());
        }
        let sealed = loop {
            let labels = self.buffer.labels();
            match self.runtime.block_on(self.archive.seal_labels(labels, &ranges)) {
                Err(error) if error.is_temporary() && !self.stop.is_requested() => {
                    self.wait(&error);
                }
                sealed => break sealed?,
            }
        };
        self.sealed += sealed;
        for (stream, up_to) in std::mem::take(&mut self.buffer).up_to {
            self.cursors.insert(stream, Some(up_to));
        }
        Ok(())
    }

    fn wait(&self, error: &ArchiveError) {
        self.status.warn("store-away", || error.to_string());
        std::thread::sleep(RETRY_EVERY);
    }
}

impl Buffer {
    fn add(&mut self, stream: Stream, labels: &[FollowedLabel<'_>], up_to: Option<u64>) {
        let Some(up_to) = up_to else { return };
        self.since.get_or_insert_with(Instant::now);
        let shared = Arc::new(stream);
        let mut last: Option<(CompressedKey, Arc<str>)> = None;
        for label in labels {
            self.bytes.extend_from_slice(label.bytes);
            let key = label.key.map(|key| match &last {
                Some((known, text)) if *known == key => text.clone(),
                _ => {
                    let text: Arc<str> = key.to_did_key().into();
                    last = Some((key, text.clone()));
                    text
                }
            });
            self.labels.push(Entry {
                stream: shared.clone(),
                seq: i64::try_from(label.seq).unwrap_or(i64::MAX),
                // A message has fewer labels than its index has numbers.
                idx: i16::try_from(label.index).unwrap_or(i16::MAX),
                received: label.judged_micros,
                code: label.code,
                key,
                end: self.bytes.len(),
            });
        }
        let stream = Arc::unwrap_or_clone(shared);
        self.up_to.insert(stream, i64::try_from(up_to).unwrap_or(i64::MAX));
    }

    /// Size in bytes.
    fn size(&self) -> usize {
        self.bytes.len() + self.labels.len() * LABEL_BYTES
    }

    fn labels(&self) -> Vec<ArchivedLabel<'_>> {
        let starts = std::iter::once(0).chain(self.labels.iter().map(|entry| entry.end));
        let archived = self.labels.iter().zip(starts).map(|(entry, start)| ArchivedLabel {
            service: &entry.stream.0,
            host: &entry.stream.1,
            seq: entry.seq,
            idx: entry.idx,
            received: entry.received,
            verdict: entry.code,
            key: entry.key.as_deref(),
            judge: JUDGE,
            label: &self.bytes[start..entry.end],
        });
        archived.collect()
    }
}

/// Memory of a label that is not stored, next to its bytes.
const LABEL_BYTES: usize = size_of::<Entry>() + 2 * size_of::<ArchivedLabel<'_>>();

/// Time after which storing is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  wireproof archive labels archive moderation.bsky.app
  wireproof archive labels s3://history/labels did:plc:ar7c4by46qjdydhdevvrndac --seal-minutes 30
  wireproof archive query archive \"SELECT val, count(*) FROM labels GROUP BY val\"";
