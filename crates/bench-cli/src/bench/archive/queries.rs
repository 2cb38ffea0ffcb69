//! Speed of queries over an archive of millions of operations.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Instant;

use archive::{Archive, ArchivedEvent, JUDGE, Table, WorkId, kind};
use query::{Options, QueryError, Session};
use serde::Serialize;
use simnet::random::DEFAULT_SEED;
use simnet::unsigned_commits::{Spec, UnsignedCommit};
use tokio::runtime::Builder;

use super::median;
use crate::failure::Failure;
use crate::output;

/// Seconds by query.
#[derive(Debug, Serialize)]
pub(super) struct Queries {
    operations: u64,
    accounts: u32,
    /// The tables of events and operations.
    archive_bytes: u64,
    threads: usize,
    rows: Vec<Query>,
}

/// A query, and its time from opening the archive to the last row.
#[derive(Debug, Serialize)]
struct Query {
    name: &'static str,
    sql: String,
    rows: u64,
    seconds: Vec<f64>,
}

/// Archives `thousands` times 1,000 operations below `folder`, and measures every query in `passes` passes.
pub(super) fn measure(
    thousands: u32,
    folder: &Path,
    passes: NonZeroU32,
) -> Result<Queries, Failure> {
    let options = Options::default();
    let runtime = Builder::new_multi_thread().worker_threads(options.jobs).enable_all().build();
    let failed = |error| Failure::Local(format!("the threads of this system: {error}"));
    runtime.map_err(failed)?.block_on(measure_all(thousands, folder, passes, &options))
}

async fn measure_all(
    thousands: u32,
    folder: &Path,
    passes: NonZeroU32,
    options: &Options,
) -> Result<Queries, Failure> {
    let archive = Archive::open(&folder.to_string_lossy())?;
    // A thousand operations an account.
    let spec = Spec { seed: DEFAULT_SEED, accounts: thousands, commits: 5, operations: 200 };
    let commits: Vec<UnsignedCommit> = spec.generate().take(1).collect();
    let did = commits.first().map(|commit| commit.did.clone()).unwrap_or_default();
    store(spec, &archive).await?;
    let mut rows: Vec<Query> = [
        ("count by collection", "SELECT collection, count(*) FROM ops GROUP BY collection".to_owned()),
        (
            "posts of an account",
            format!("SELECT rkey FROM ops WHERE did = '{did}' AND collection = 'app.bsky.feed.post'"),
        ),
        (
            "posts of an account, with their records",
            format!(
                "SELECT rkey, json(record) FROM ops WHERE did = '{did}' AND collection = 'app.bsky.feed.post'"
            ),
        ),
    ]
    .map(|(name, sql)| Query { name, sql, rows: 0, seconds: Vec::new() })
    .into();
    for pass in 0..=passes.get() {
        for query in &mut rows {
            let started = Instant::now();
            query.rows = answer(&folder.to_string_lossy(), &query.sql, options).await?;
            if pass > 0 {
                query.seconds.push(started.elapsed().as_secs_f64());
            }
        }
    }
    let mut archive_bytes = 0;
    for table in [Table::Events, Table::Ops] {
        archive_bytes += archive.table_stats(table).await?.bytes;
    }
    let operations = spec.operations();
    let accounts = spec.accounts;
    let threads = options.jobs;
    Ok(Queries { operations, accounts, archive_bytes, threads, rows })
}

/// Number of rows of an answer.
async fn answer(address: &str, sql: &str, options: &Options) -> Result<u64, Failure> {
    let archive = Archive::open_existing(address).await?;
    let failed = |error: QueryError| Failure::Local(error.to_string());
    let session = Session::open(&archive, options).await.map_err(failed)?;
    let mut answer = session.sql(sql).await.map_err(failed)?;
    let mut rows = 0;
    while let Some(batch) = answer.next().await.map_err(failed)? {
        rows += batch.num_rows() as u64;
    }
    Ok(rows)
}

/// Seals the commits in parts, as if they had been verified.
async fn store(spec: Spec, archive: &Archive) -> Result<(), Failure> {
    let mut commits = spec.generate().peekable();
    for number in 0.. {
        let part: Vec<UnsignedCommit> = commits.by_ref().take(PART_COMMITS).collect();
        if part.is_empty() {
            break;
        }
        let events = part.iter().map(|commit| ArchivedEvent {
            did: Some(&commit.did),
            arrival: commit.micros as i64,
            host: "relay.example",
            seq: Some(commit.micros as i64),
            kind: kind(&commit.frame),
            received: commit.micros as i64,
            verdict: "verified",
            key: None,
            judge: JUDGE,
            frame: &commit.frame,
        });
        let work = WorkId { writer: "operations".to_owned(), number };
        archive.seal(events.collect(), &work).await?;
    }
    Ok(())
}

impl Queries {
    pub(super) fn to_text(&self) -> String {
        let header = ["query", "rows", "ms", "ms of each pass"];
        let ms = |seconds: f64| format!("{:.1}", seconds * 1e3);
        let row = |query: &Query| {
            let passes: Vec<String> = query.seconds.iter().map(|seconds| ms(*seconds)).collect();
            let (name, rows) = (query.name.to_owned(), query.rows.to_string());
            [name, rows, ms(median(&query.seconds)), passes.join(" ")]
        };
        format!(
            "{} operations of {} accounts, {} bytes, {} threads\n{}",
            self.operations,
            self.accounts,
            self.archive_bytes,
            self.threads,
            output::table(header, self.rows.iter().map(row))
        )
    }
}

/// Commits that are sealed at once: some 250 MB of frames.
const PART_COMMITS: usize = 8_192;
