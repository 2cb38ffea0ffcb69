//! `wireproof archive follow`: stores the verified events of a stream in an archive.
//!
//! ```text
//! hosts ── Firehose ── Printer::event on the workers ── EventsToArchive ── Wal ── Archive::seal, on a thread
//!              │ <──────────────── ack ──────────── once an event is synced ┘
//! ```

mod frame_quota;
mod series;

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use archive::{
    self, ActiveAccounts, Archive, ArchivedEvent, ArchivedRepository, JUDGE, Sealed, Wal,
    WalOptions,
};
use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};
use mapping::MappedFile;
use net::firehose::{Ack, ServerStatuses};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use verify::repository;

use crate::erasure_key::ErasureKeyArgs;
use crate::failure::Failure;
use crate::network;
use crate::stream::{Start, StreamArgs};
use follower::{
    AdminArgs, EventLine, FollowArgs, LineRecipient, RecipientOptions, ResyncLines, Run, Setup,
    Status, Unstored, micros,
};
use frame_quota::{FrameQuota, is_undecodable};
use series::ArchiveCounts;

pub(crate) use series::ServeSeries;

/// Store the verified events of a stream in an archive.
///
/// An event is acknowledged once it is synced to the write-ahead log. The log is sealed into the tables every hour and
/// at the end. After a crash at any point, the next run continues: nothing is lost, and nothing is stored twice.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ArchiveFollowArgs {
    /// The archive: a folder, file:///FOLDER, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX. It is created
    /// if it is missing; a bucket is not.
    #[arg(long, value_name = "ARCHIVE", env = "WIREPROOF_ARCHIVE")]
    to: String,
    /// Folder of the write-ahead log and, without --state, of cursors, keys and account states [default: wal in the
    /// archive's folder].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_ARCHIVE_WAL", value_hint = ValueHint::DirPath)]
    wal: Option<PathBuf>,
    /// Minutes after which the write-ahead log is sealed into the tables.
    #[arg(long, value_name = "N", env = "WIREPROOF_SEAL_MINUTES", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_440))]
    seal_minutes: u64,
    /// Size of the write-ahead log in MiB at which it is sealed; sealing takes about as much memory.
    #[arg(long, value_name = "N", env = "WIREPROOF_SEAL_MIB", default_value_t = 192)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=4_096))]
    seal_mib: u64,
    #[command(flatten)]
    erasure_key: ErasureKeyArgs,
    #[command(flatten)]
    stream: StreamArgs,
    /// Store only commits with operations in these collections: app.bsky.feed.post, or app.bsky.graph.* for a prefix
    /// [default: all].
    #[arg(long, env = "WIREPROOF_COLLECTIONS", value_name = "LIST", value_delimiter = ',')]
    collections: Vec<String>,
    /// Store only events of these accounts: DIDs, or handles, which are resolved at the start; `@FILE` names a file
    /// with one DID per line, which SIGHUP reads again [default: all].
    #[arg(long, env = "WIREPROOF_DIDS", value_name = "LIST|@FILE", value_delimiter = ',')]
    dids: Vec<String>,
    /// Download and verify the repository of an account whose chain is broken, and store its records: `archive thin` needs them
    /// for the commits after it.
    #[arg(long, env = "WIREPROOF_RESYNC", value_parser = FalseyValueParser::new())]
    resync: bool,
    /// Folder for cursors, keys and account states [default: the folder of the write-ahead log].
    #[arg(long, env = "WIREPROOF_STATE", value_name = "DIR", value_hint = ValueHint::DirPath)]
    state: Option<PathBuf>,
    /// Where to start with a host that has no stored cursor: `live`, `oldest`, or after a sequence number.
    #[arg(long, env = "WIREPROOF_CURSOR", value_name = "CURSOR", default_value = "live")]
    cursor: Start,
    /// Serve Prometheus metrics at /metrics of this address, and /health and /ready.
    #[arg(long, env = "WIREPROOF_METRICS", value_name = "ADDRESS:PORT")]
    metrics: Option<std::net::SocketAddr>,
    /// End after N events.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    events: Option<u64>,
    /// Number of verifying threads [default: one per core].
    #[arg(long, env = "WIREPROOF_WORKERS", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
}

impl ArchiveFollowArgs {
    /// The options of the run, which delivers nothing.
    fn into_follow(self, wal: &Path) -> Result<FollowArgs, Failure> {
        FollowArgs::for_recipient(RecipientOptions {
            stream: self.stream,
            collections: self.collections,
            dids: self.dids,
            state: self.state.unwrap_or_else(|| wal.to_owned()),
            cursor: self.cursor,
            resync: self.resync,
            whole_repositories: true,
            metrics: self.metrics,
            admin: AdminArgs::default(),
            events: self.events,
            more_hosts: None,
            gather_ms: 2,
            workers: self.workers,
        })
    }

    fn wal_options(&self) -> WalOptions {
        let mut options = WalOptions::default();
        options.max_segment_age = Duration::from_secs(self.seal_minutes * 60);
        options.max_segment_bytes = self.seal_mib << 20;
        options
    }
}

pub(crate) fn run_to_archive(args: ArchiveFollowArgs) -> Result<(), Failure> {
    follower::keep_memory_small();
    let archive = args.erasure_key.add_to(Archive::open(&args.to)?)?;
    let folder = wal_folder(args.wal.as_deref(), &archive)?;
    let (wal, dropped) = Wal::open(&folder, args.wal_options())?;
    let follow = args.into_follow(&folder)?;
    let runtime = network::runtime()?;
    let result = runtime.block_on(store(&follow, Arc::new(wal), archive, dropped));
    runtime.shutdown_background();
    result
}

async fn store(
    args: &FollowArgs,
    wal: Arc<Wal>,
    archive: Archive,
    dropped: u64,
) -> Result<(), Failure> {
    let counts = Arc::new(ArchiveCounts::new(wal.clone()));
    let mut setup = Setup::new(args).await?;
    setup.series = Some(counts.clone());
    let run = Run::new(setup, None, None)?;
    check_tables(&archive, &run.status).await?;
    if dropped > 0 {
        run.status.print(&format!(
            "{dropped} bytes of an incomplete group were dropped: its events were not acknowledged, and are sent again"
        ));
    }
    let unstored = Unstored::new(run.stop.clone());
    let quota = Arc::<FrameQuota>::default();
    let servers = account_servers(run.statuses.clone());
    let sealer =
        Sealer::start(wal.clone(), archive.clone(), servers.clone(), counts, run.status.clone())?;
    let recipient = EventsToArchive {
        wal: wal.clone(),
        archive: archive.clone(),
        runtime: Handle::current(),
        unstored: unstored.clone(),
        status: run.status.clone(),
        quota: quota.clone(),
    };
    let status = run.status.clone();
    let followed = run.follow_into(recipient).await;
    sealer.stop().await;
    let shutdown = followed.check("stored")?;
    if let Some(error) = unstored.error() {
        return Err(Failure::Local(error));
    }
    let sealed = seal_all(&wal, &archive, &*servers).await?;
    status.print(&sealed_text(&sealed));
    if let Some(dropped) = quota.dropped_text() {
        status.print(&dropped);
    }
    shutdown.result()
}

/// Appends events to the write-ahead log, and stores repositories.
struct EventsToArchive {
    wal: Arc<Wal>,
    archive: Archive,
    runtime: Handle,
    unstored: Arc<Unstored>,
    status: Status,
    quota: Arc<FrameQuota>,
}

impl LineRecipient for EventsToArchive {
    fn event(&self, line: &EventLine<'_, '_>, _: &mut Vec<u8>, ack: Ack) {
        let event = line.event;
        let received = micros(event.received) as i64;
        if is_undecodable(event.verdict.code())
            && !self.quota.admits(line.host, received, event.frame.len())
        {
            self.status.warn("frame-quota", || self.quota.message(line.host));
            return ack.done();
        }
        let key = event.key.map(|key| key.to_did_key());
        let archived = ArchivedEvent {
            did: event.did.filter(|did| atproto::syntax::Did::parse(did).is_ok()),
            arrival: 0,
            host: line.host,
            seq: event.seq.and_then(|seq| i64::try_from(seq).ok()),
            kind: archive::kind(event.frame),
            received,
            verdict: event.verdict.code(),
            key: key.as_deref(),
            judge: JUDGE,
            frame: event.frame,
        };
        let unstored = self.unstored.clone();
        self.wal.append(&archived, move |stored| match stored {
            Ok(_) => ack.done(),
            Err(error) => unstored.refuse(ack, error.to_string()),
        });
    }

    fn repository(&self, lines: &mut ResyncLines<'_, '_>, ack: Ack) -> io::Result<()> {
        let resynced = lines.repository();
        let car = MappedFile::of(resynced.file())?;
        let options = repository::Options::default();
        let repository = repository::verify(&car, Some(&resynced.did), &resynced.key, &options);
        let repository = repository.map_err(io::Error::other)?;
        let fetched = micros(SystemTime::now()) as i64;
        loop {
            let repository = &repository;
            let key = &resynced.key;
            let host = &*resynced.host;
            let archived = vec![ArchivedRepository { repository, key, host, fetched }];
            // An unacknowledged repository is fetched again: a repeated revision counts once.
            match self.runtime.block_on(self.archive.seal_repositories(archived, None)) {
                Ok(_) => ack.done(),
                Err(error) if error.is_temporary() && !self.unstored.is_stopping() => {
                    self.status.warn("store-away", || error.to_string());
                    std::thread::sleep(RETRY_EVERY);
                    continue;
                }
                Err(error) => self.unstored.refuse(ack, error.to_string()),
            }
            return Ok(());
        }
    }
}

/// Reads the logs of all tables, so that wrong credentials and damaged logs are reported at once and not after an hour of events. A
/// store that is away for a while is waited for by the write-ahead log.
async fn check_tables(archive: &Archive, status: &Status) -> Result<(), Failure> {
    match archive.check_logs().await {
        Err(error) if error.is_temporary() => status.warn("store-away", || error.to_string()),
        read => drop(read?),
    }
    Ok(())
}

/// The servers of accounts, which say whether an erased account is active again.
pub(crate) type Servers = Arc<dyn ActiveAccounts>;

/// Accounts' own servers, asked over the network of the run.
struct AccountServers(ServerStatuses);

impl ActiveAccounts for AccountServers {
    fn is_active<'a>(&'a self, did: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async { self.0.status(did).await.is_ok_and(|status| status.is_active) })
    }
}

/// Asks accounts' own servers whether they are active.
pub(crate) fn account_servers(statuses: ServerStatuses) -> Servers {
    Arc::new(AccountServers(statuses))
}

/// The thread that seals segments while the run goes on.
struct Sealer {
    thread: JoinHandle<()>,
    stop: Arc<Notify>,
}

impl Sealer {
    fn start(
        wal: Arc<Wal>,
        archive: Archive,
        servers: Servers,
        counts: Arc<ArchiveCounts>,
        status: Status,
    ) -> Result<Self, Failure> {
        // The connections of a store live on the runtime that opened them: there is one runtime.
        let stop = Arc::<Notify>::default();
        let runtime = Handle::current();
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("archive-seal".to_owned());
        let thread = thread.spawn(move || {
            runtime.block_on(async {
                let is_stopping = AtomicBool::new(false);
                let stop = async {
                    stopped.notified().await;
                    is_stopping.store(true, Relaxed);
                };
                tokio::join!(stop, async {
                    while !is_stopping.load(Relaxed) {
                        tokio::select! {
                            () = wal.segment_closed() => {}
                            () = tokio::time::sleep(RETRY_EVERY) => {}
                        }
                        let sealed = seal_closed(&wal, &archive, &*servers).await;
                        let _ = sealed.as_ref().map(|sealed| counts.add(sealed));
                        if let Err(error) = sealed {
                            counts.failures.fetch_add(1, Relaxed);
                            status.warn("seal-failed", || {
                                let why = error.message().unwrap_or_default();
                                format!("the write-ahead log cannot be sealed, and is kept: {why}")
                            });
                        }
                    }
                });
            });
        });
        let thread = thread.map_err(|error| Failure::Local(format!("a thread: {error}")))?;
        Ok(Self { thread, stop })
    }

    /// Waits for the segment that is being sealed, whose connections the waiting runtime drives.
    async fn stop(self) {
        self.stop.notify_one();
        let _ = tokio::task::spawn_blocking(|| self.thread.join()).await;
    }
}

/// Closes the open segment, and seals all.
pub(crate) async fn seal_all(
    wal: &Wal,
    archive: &Archive,
    servers: &dyn ActiveAccounts,
) -> Result<Sealed, Failure> {
    wal.close_segment().await;
    seal_closed(wal, archive, servers).await
}

async fn seal_closed(
    wal: &Wal,
    archive: &Archive,
    servers: &dyn ActiveAccounts,
) -> Result<Sealed, Failure> {
    let mut sealed = Sealed::default();
    for segment in wal.closed_segments()? {
        sealed += wal.seal_confirmed(&segment, archive, servers).await?;
    }
    Ok(sealed)
}

/// The folder of the write-ahead log: on this machine, wherever the archive is.
pub(crate) fn wal_folder(given: Option<&Path>, archive: &Archive) -> Result<PathBuf, Failure> {
    let folder = match given {
        Some(folder) => Some(folder.to_owned()),
        None => archive.storage().wal_folder()?,
    };
    folder.ok_or_else(|| {
        Failure::Usage("--wal: name a folder of this machine for the write-ahead log".to_owned())
    })
}

/// The result of sealing, as text.
fn sealed_text(sealed: &Sealed) -> String {
    let Sealed { events, files, bytes, .. } = sealed;
    format!("{events} events sealed: {bytes} bytes in {files} files")
}

/// Time after which sealing is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  wireproof archive follow --to archive
  wireproof archive follow --to s3://history/relay --wal /var/lib/wireproof
  wireproof archive follow --to archive --host https://relay.example.com --dids @dids.txt --cursor oldest";
