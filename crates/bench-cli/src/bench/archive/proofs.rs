//! Archives of one corpus in both forms: their bytes, and the speed of proving them again.

use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Instant;

use archive::{
    Archive, ArchivedRepository, ImportOptions, Table, VerifyOptions, VerifyReport, WorkId,
};
use atproto::event::Values;
use atproto::syntax::Did;
use crypto::PublicKey;
use serde::Serialize;
use verify::repository::{self, Options};
use verify::sync::{Judge, MemoryState, Policy};

use super::corpus::ArchiveCorpus;
use super::median;
use crate::failure::Failure;

/// Bytes and seconds of one corpus.
#[derive(Debug, Serialize)]
pub(super) struct Proofs {
    name: String,
    commits: u64,
    raw_bytes: u64,
    /// The frames, compressed one by one by zstd at level 3.
    zstd_bytes: u64,
    /// All frames compressed together.
    zstd_stream_bytes: u64,
    /// The operations as a Jetstream server sends them, in blocks of 4,096 that are compressed together, as its segments have.
    jetstream_bytes: u64,
    /// The tables of events and operations with every frame.
    full_bytes: u64,
    /// The same after `archive thin`.
    compact_bytes: u64,
    /// Commits in compact form then.
    compact_commits: u64,
    repositories: Option<Repositories>,
    /// Seconds per pass of verdicts in batches, as `bench commit full/batch`.
    verdict_seconds: Vec<f64>,
    /// Seconds per `archive verify` of the frames.
    full_seconds: Vec<f64>,
    /// Seconds per `archive verify` of the compact commits and their repositories.
    compact_seconds: Vec<f64>,
    /// Seconds per `archive verify` of the repositories alone, if there are any.
    repository_seconds: Vec<f64>,
}

/// Bytes of repositories.
#[derive(Debug, Serialize)]
struct Repositories {
    count: u64,
    records: u64,
    car_bytes: u64,
    /// The CARs, compressed one by one by zstd at level 3.
    car_zstd_bytes: u64,
    /// The tables of snapshots and records.
    archive_bytes: u64,
}

/// Archives a corpus in both forms below a folder, and proves both in turn.
pub(super) async fn measure(
    corpus: &ArchiveCorpus,
    folder: &Path,
    passes: NonZeroU32,
) -> Result<Proofs, Failure> {
    let open = |name: &str| Archive::open(&folder.join(name).to_string_lossy());
    let (full, compact) = (open("full")?, open("compact")?);
    let alone = open("repositories")?;
    import(corpus, &full).await?;
    import_repositories(corpus, &alone).await?;
    let repositories = import_repositories(corpus, &compact).await?;
    import(corpus, &compact).await?;
    compact.thin(base::now_micros() as i64 + DAY_MICROS).await?;
    let compressed: io::Result<Vec<Vec<u8>>> =
        corpus.frames.iter().map(|frame| zstd(frame)).collect();
    let mut proofs = Proofs {
        name: corpus.name.clone(),
        commits: corpus.frames.len() as u64,
        raw_bytes: corpus.bytes(),
        zstd_bytes: compressed?.iter().map(|frame| frame.len() as u64).sum(),
        zstd_stream_bytes: zstd(&corpus.frames.concat())?.len() as u64,
        jetstream_bytes: jetstream_bytes(corpus)?,
        full_bytes: bytes(&full, EVENTS).await?,
        compact_bytes: bytes(&compact, EVENTS).await?,
        compact_commits: 0,
        repositories,
        verdict_seconds: Vec::new(),
        full_seconds: Vec::new(),
        compact_seconds: Vec::new(),
        repository_seconds: Vec::new(),
    };
    for pass in 0..=passes.get() {
        let (verdicts, started) = (judge(corpus)?, Instant::now());
        let of_full = verify(&full).await?;
        let (full_seconds, started) = (started.elapsed().as_secs_f64(), Instant::now());
        let of_compact = verify(&compact).await?;
        let (compact_seconds, started) = (started.elapsed().as_secs_f64(), Instant::now());
        check(&verify(&alone).await?)?;
        let repository_seconds = started.elapsed().as_secs_f64();
        proofs.compact_commits = of_compact.compact;
        check(&of_full)?;
        check(&of_compact)?;
        if pass > 0 {
            proofs.verdict_seconds.push(verdicts);
            proofs.full_seconds.push(full_seconds);
            proofs.compact_seconds.push(compact_seconds);
            proofs.repository_seconds.push(repository_seconds);
        }
    }
    Ok(proofs)
}

async fn import(corpus: &ArchiveCorpus, archive: &Archive) -> Result<(), Failure> {
    let options = ImportOptions {
        host: "relay.example".to_owned(),
        name: corpus.name.clone(),
        now_micros: base::now_micros() as i64,
        policy: Policy::default(),
    };
    let frames = corpus.frames.iter().map(Vec::as_slice);
    archive.import_frames(frames, &corpus.keys, &options).await?;
    Ok(())
}

async fn import_repositories(
    corpus: &ArchiveCorpus,
    archive: &Archive,
) -> Result<Option<Repositories>, Failure> {
    let (mut proved, mut keys) = (Vec::new(), Vec::new());
    let refused =
        |why: &dyn ToString| Failure::Refused(format!("{}: {}", corpus.name, why.to_string()));
    for car in &corpus.repositories {
        let parsed = repository::parse(car, &Options::default()).map_err(|why| refused(&why))?;
        let did = Did::parse(parsed.repository().commit().did).map_err(|why| refused(&why))?;
        let key = corpus.keys.get(did).ok_or_else(|| refused(&did))?;
        keys.push(PublicKey::try_from(key).map_err(|why| refused(&why))?);
    }
    for (car, key) in corpus.repositories.iter().zip(&keys) {
        let whole = repository::verify(car, None, key, &Options::default());
        proved.push(whole.map_err(|why| refused(&why))?);
    }
    if proved.is_empty() {
        return Ok(None);
    }
    let archived = proved.iter().zip(&keys).map(|(repository, key)| ArchivedRepository {
        repository,
        key,
        host: "pds.example",
        fetched: base::now_micros() as i64,
    });
    let work = WorkId { writer: corpus.name.clone(), number: 0 };
    archive.seal_repositories(archived.collect(), Some(&work)).await?;
    let mut repositories = Repositories {
        count: proved.len() as u64,
        records: proved.iter().map(|whole| whole.tree().records).sum(),
        car_bytes: corpus.repositories.iter().map(|car| car.len() as u64).sum(),
        car_zstd_bytes: 0,
        archive_bytes: bytes(archive, &[Table::Snapshots, Table::Records]).await?,
    };
    for car in &corpus.repositories {
        repositories.car_zstd_bytes += zstd(car)?.len() as u64;
    }
    Ok(Some(repositories))
}

/// Judges the frames in batches with an empty state, and returns the seconds.
fn judge(corpus: &ArchiveCorpus) -> Result<f64, Failure> {
    let mut policy = Policy::default();
    policy.values = Values::ValidateOnly;
    let mut judge = Judge::builder().policy(policy).build();
    let (mut state, now) = (MemoryState::default(), base::now_micros() as i64 as u64);
    let frames: Vec<&[u8]> = corpus.frames.iter().map(Vec::as_slice).collect();
    let started = Instant::now();
    for batch in frames.chunks(BATCH_LEN) {
        let Ok(judged) = judge.judge_batch(batch, &corpus.keys, &mut state, now);
        std::hint::black_box(judged);
    }
    Ok(started.elapsed().as_secs_f64())
}

async fn verify(archive: &Archive) -> Result<VerifyReport, Failure> {
    Ok(archive.verify(&VerifyOptions::default(), &mut |_| ()).await?)
}

fn check(report: &VerifyReport) -> Result<(), Failure> {
    if report.is_refused() {
        Err(Failure::Refused(format!("the archive is refused: {:?}", report.refused)))
    } else {
        Ok(())
    }
}

async fn bytes(archive: &Archive, tables: &[Table]) -> Result<u64, Failure> {
    let mut bytes = 0;
    for table in tables {
        bytes += archive.table_stats(*table).await?.bytes;
    }
    Ok(bytes)
}

fn jetstream_bytes(corpus: &ArchiveCorpus) -> io::Result<u64> {
    let lines = corpus.jetstream_lines();
    let blocks = lines.chunks(JETSTREAM_BLOCK).map(|block| zstd(block.join("\n").as_bytes()));
    blocks.map(|block| Ok(block?.len() as u64)).sum()
}

fn zstd(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, ZSTD_LEVEL)
}

impl Proofs {
    /// Bytes a commit.
    pub(super) fn bytes_row(&self) -> [String; 8] {
        let each = |bytes: u64| format!("{:.0}", bytes as f64 / self.commits as f64);
        let compact = match self.compact_commits {
            0 => "no chain".to_owned(),
            commits if commits < self.commits => format!("a chain for {commits}"),
            _ => each(self.compact_bytes),
        };
        let [raw, zstd, stream, jetstream] =
            [self.raw_bytes, self.zstd_bytes, self.zstd_stream_bytes, self.jetstream_bytes]
                .map(each);
        [
            self.name.clone(),
            self.commits.to_string(),
            raw,
            zstd,
            stream,
            jetstream,
            each(self.full_bytes),
            compact,
        ]
    }

    /// Bytes of the repositories, and how many times smaller than CARs they are.
    pub(super) fn repositories_row(&self) -> Option<[String; 5]> {
        let repositories = self.repositories.as_ref()?;
        let times = |bytes: u64| {
            format!(
                "{bytes} ({:.2} × smaller than CAR)",
                repositories.car_bytes as f64 / bytes as f64
            )
        };
        let number = format!("{} with {} records", repositories.count, repositories.records);
        let car = repositories.car_bytes.to_string();
        let [zstd, archive] = [repositories.car_zstd_bytes, repositories.archive_bytes].map(times);
        Some([self.name.clone(), number, car, zstd, archive])
    }

    /// Commits a second, by the medians of the passes; ratios are computed per pass.
    pub(super) fn rates_row(&self) -> [String; 6] {
        let rate =
            |commits: u64, seconds: &[f64]| format!("{:.0}", commits as f64 / median(seconds));
        let pairs = self.verdict_seconds.iter().zip(&self.full_seconds);
        let ratios: Vec<f64> = pairs.map(|(verdicts, full)| verdicts / full).collect();
        let compact = match self.compact_commits {
            commits if commits < self.commits => "–".to_owned(),
            commits => rate(commits, &self.compact_seconds),
        };
        let records =
            self.repositories.as_ref().map(|of| rate(of.records, &self.repository_seconds));
        let records = records.unwrap_or_else(|| "none".to_owned());
        [
            self.name.clone(),
            rate(self.commits, &self.verdict_seconds),
            rate(self.commits, &self.full_seconds),
            format!("{:.2} × verdicts", median(&ratios)),
            compact,
            records,
        ]
    }
}

/// The tables with data from a stream.
const EVENTS: &[Table] = &[Table::Events, Table::Ops];

/// Frames judged together, as in `bench commit full/batch`.
const BATCH_LEN: usize = 512;

const ZSTD_LEVEL: i32 = 3;

/// Events of a block of Jetstream's segments.
const JETSTREAM_BLOCK: usize = 4_096;

const DAY_MICROS: i64 = 86_400_000_000;
