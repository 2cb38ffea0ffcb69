//! `wireproof archive import`: verifies captured frames, repositories and histories of keys, and stores them.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use archive::{Archive, ArchivedRepository, ImportOptions, WorkId};
use atproto::corpus;
use atproto::syntax::Did;
use clap::{Args, ValueHint};
use codec::cid::{Cid, Codec};
use crypto::PublicKey;
use mapping::MappedFile;
use serde::{Deserialize, Serialize};
use verify::Verified;
use verify::identity::AccountKeys;
use verify::plc::{self, History};
use verify::repository::{self, Options};
use verify::sync::Policy;

use crate::erasure_key::ErasureKeyArgs;
use crate::failure::Failure;
use crate::files;
use crate::key_files::account_keys;
use crate::log::{self, Level};
use crate::output::Output;
use crate::progress::ProgressLine;
use program::clock::now_micros;

/// Verify captured frames, repositories and histories of keys, and store them.
///
/// Importing a file again adds nothing, even under another name. Refused frames are stored with the code of the rule
/// that they break, so that the archive has everything that was received. Refused repositories and histories of keys
/// are not stored, and the exit code is 1.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// Repositories (.car), files of firehose frames (others: a 32-bit big-endian count, then every frame after its
    /// 32-bit length), and folders of both (.car and .bin).
    #[arg(value_name = "FILE|DIR", required_unless_present = "plc_log", requires = "keys", value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// The archive: a folder, file:///FOLDER, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX. It is created
    /// if it is missing; a bucket is not.
    #[arg(long, value_name = "ARCHIVE", env = "WIREPROOF_ARCHIVE")]
    to: String,
    #[command(flatten)]
    erasure_key: ErasureKeyArgs,
    /// The accounts' keys: JSON, an object of DID to did:key, or an array of objects with did and didDoc.
    #[arg(long, value_name = "accounts.json|-", value_hint = ValueHint::FilePath)]
    keys: Option<PathBuf>,
    /// Histories of keys of did:plc accounts, with which `archive verify` compares the keys of their commits: the
    /// response of a directory at /DID/log/audit, or at /export (JSON lines, the operations of an account from its
    /// first one on).
    #[arg(long, value_name = "LOG|-", value_hint = ValueHint::FilePath)]
    plc_log: Vec<PathBuf>,
    /// The host that the files came from.
    #[arg(long, value_name = "HOST", default_value = "unknown")]
    host: String,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &ImportArgs, output: Output) -> Result<(), Failure> {
    let keys = args.keys.as_deref().map(account_keys).transpose()?.unwrap_or_default();
    let mut import = Import {
        archive: args.erasure_key.add_to(Archive::open(&args.to)?)?,
        keys: &keys,
        host: &args.host,
        summary: ImportSummary::default(),
    };
    import.archive.check_logs().await?;
    let paths = files_of(&args.paths)?;
    let mut progress = ProgressLine::new();
    let mut part = RepositoryPart::default();
    for (done, path) in paths.iter().enumerate() {
        progress.at(path.display().to_string(), done as u64, paths.len() as u64);
        import.summary.file_count += 1;
        if path.extension().is_some_and(|extension| extension == "car") {
            part.push(path)?;
        } else {
            import.frames(path, &mut progress).await?;
        }
        if part.is_full() {
            progress.during(import.repositories(&part)).await?;
            part = RepositoryPart::default();
        }
    }
    progress.during(import.repositories(&part)).await?;
    for path in &args.plc_log {
        import.summary.file_count += 1;
        progress.step(files::name(path));
        progress.during(import.key_histories(path)).await?;
    }
    progress.end();
    output.document(&import.summary, args.json, ImportSummary::to_text)?;
    match (import.summary.refused_repository_count, import.summary.refused_key_history_count) {
        (0, 0) => Ok(()),
        (repositories, 0) => {
            Err(Failure::Refused(format!("{repositories} repositories were refused")))
        }
        (0, histories) => {
            Err(Failure::Refused(format!("{histories} histories of keys were refused")))
        }
        (repositories, histories) => Err(Failure::Refused(format!(
            "{repositories} repositories and {histories} histories of keys were refused"
        ))),
    }
}

/// Repositories that are verified and stored together, so that small ones share files.
#[derive(Default)]
struct RepositoryPart {
    files: Vec<(PathBuf, MappedFile)>,
    bytes: u64,
}

impl RepositoryPart {
    fn push(&mut self, path: &Path) -> Result<(), Failure> {
        let file = files::map(path)?;
        self.bytes += file.len() as u64;
        self.files.push((path.to_owned(), file));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.bytes >= MAX_PART_BYTES || self.files.len() >= MAX_PART_FILES
    }
}

/// The files, and the files of the folders by name.
fn files_of(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let mut rest = VecDeque::from(paths.to_vec());
    while let Some(path) = rest.pop_front() {
        if !path.is_dir() {
            files.push(path);
            continue;
        }
        let entries = fs::read_dir(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let entries = entries.map_err(Failure::file(&path))?;
        let is_input = |path: &PathBuf| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            path.is_dir() || matches!(extension, Some("car" | "bin"))
        };
        let mut inside: Vec<PathBuf> =
            entries.iter().map(fs::DirEntry::path).filter(is_input).collect();
        inside.sort();
        rest.extend(inside);
    }
    Ok(files)
}

/// An import under way.
struct Import<'i> {
    archive: Archive,
    keys: &'i AccountKeys,
    host: &'i str,
    summary: ImportSummary,
}

impl Import<'_> {
    async fn frames(&mut self, path: &Path, progress: &mut ProgressLine) -> Result<(), Failure> {
        let file = files::map(path)?;
        let frames = corpus::frames(&file).map_err(|error| Failure::refused(path, error))?;
        let total = frames.len() as u64;
        let message = format!("frames of {}", path.display());
        let frames = (0..).zip(frames).inspect(|(done, _)| {
            if done % PROGRESS_FRAMES == 0 {
                progress.at(message.clone(), *done, total);
            }
        });
        let frames = frames.map(|(_, frame)| frame);
        let options = ImportOptions {
            host: self.host.to_owned(),
            name: name(&file),
            now_micros: now_micros(),
            policy: Policy::default(),
        };
        let imported = self.archive.import_frames(frames, self.keys, &options).await?;
        let summary = &mut self.summary;
        summary.event_count += imported.sealed.events;
        summary.verified_count += imported.verified;
        summary.unchecked_count += imported.unchecked;
        summary.refused_count += imported.refused;
        summary.stored_files += imported.sealed.files;
        summary.stored_bytes += imported.sealed.bytes;
        Ok(())
    }

    /// Verifies the repositories of a part, and stores them together.
    async fn repositories(&mut self, part: &RepositoryPart) -> Result<(), Failure> {
        let options = Options::default();
        let fetched = now_micros();
        let mut proved = Vec::with_capacity(part.files.len());
        for (path, file) in &part.files {
            let whole = self.key_of(file, &options).and_then(|key| {
                let whole = repository::verify(file, None, &key, &options);
                Ok((key, whole.map_err(|why| format!("refused ({}): {why}", why.code()))?))
            });
            match whole {
                Ok((key, whole)) => {
                    self.summary.repository_count += 1;
                    self.summary.record_count += whole.tree().records;
                    proved.push((key, whole, name(file)));
                }
                Err(why) => {
                    self.summary.refused_repository_count += 1;
                    log::print(Level::Warning, &format!("{}: {why}", path.display())).ok();
                }
            }
        }
        let archived = proved.iter().map(|(key, repository, name)| {
            let archived = ArchivedRepository { repository, key, host: self.host, fetched };
            (archived, WorkId { writer: format!("import-{name}"), number: 0 })
        });
        let sealed = self.archive.import_repositories(archived.collect()).await?;
        self.summary.stored_files += sealed.files;
        self.summary.stored_bytes += sealed.bytes;
        Ok(())
    }

    async fn key_histories(&mut self, path: &Path) -> Result<(), Failure> {
        let file = files::read_at_most(path, MAX_EXPORT_BYTES)?;
        let fetched = now_micros();
        let logs = logs_of(&file).map_err(|error| Failure::refused(path, error))?;
        let mut histories = Vec::with_capacity(logs.len());
        for log in &logs {
            match audit_history(log) {
                Ok(history) => histories.push(history),
                Err(why) => {
                    self.summary.refused_key_history_count += 1;
                    log::print(Level::Warning, &format!("{}: {why}", files::name(path))).ok();
                }
            }
        }
        self.summary.key_history_count += histories.len() as u64;
        let work = WorkId { writer: format!("import-{}", name(&file)), number: 0 };
        let sealed = self.archive.seal_key_histories(histories, fetched, &work).await?;
        self.summary.stored_files += sealed.files;
        self.summary.stored_bytes += sealed.bytes;
        Ok(())
    }

    /// The key of the account that the commit names.
    fn key_of(&self, file: &[u8], options: &Options) -> Result<PublicKey, String> {
        let parsed = repository::parse(file, options)
            .map_err(|why| format!("refused ({}): {why}", why.code()))?;
        let did = parsed.repository().commit().did;
        let key = Did::parse(did).ok().and_then(|did| self.keys.get(did));
        let key = key.ok_or_else(|| format!("--keys has no key of {did}"))?;
        PublicKey::try_from(key).map_err(|error| format!("the key of {did}: {error}"))
    }
}

/// The logs of a file, lists of JSON: its only log, or the logs of the accounts of an export.
fn logs_of(file: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    if file.trim_ascii_start().first() != Some(&b'{') {
        return Ok(vec![file.to_vec()]);
    }
    #[derive(Deserialize)]
    struct Line<'l> {
        #[serde(borrow)]
        did: Cow<'l, str>,
    }
    let mut logs: BTreeMap<Cow<'_, str>, Vec<u8>> = BTreeMap::new();
    for (number, line) in (1..).zip(file.split(|byte| *byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Line { did } =
            serde_json::from_slice(line).map_err(|error| format!("line {number}: {error}"))?;
        let log = logs.entry(did).or_default();
        log.push(if log.is_empty() { b'[' } else { b',' });
        log.extend_from_slice(line);
    }
    logs.values_mut().for_each(|log| log.push(b']'));
    Ok(logs.into_values().collect())
}

/// The history in a log with the directory's times.
fn audit_history(log: &[u8]) -> Result<Verified<History>, String> {
    let history = plc::verify(log, &plc::Options::default())
        .map_err(|rejection| format!("refused ({}): {rejection}", rejection.code()))?;
    let has_times = history.operations().iter().all(|of| of.created_at_micros.is_some());
    if has_times {
        return Ok(history);
    }
    Err(format!("{}: a log without times: take /log/audit", history.did()))
}

/// The name of a file by its content.
fn name(file: &[u8]) -> String {
    Cid::of(Codec::Raw, file).to_string()
}

/// The report, as JSON and text, of an import.
#[derive(Debug, Default, Serialize)]
struct ImportSummary {
    file_count: u64,
    event_count: u64,
    verified_count: u64,
    unchecked_count: u64,
    refused_count: u64,
    repository_count: u64,
    refused_repository_count: u64,
    record_count: u64,
    /// Histories of the keys of did:plc accounts.
    key_history_count: u64,
    refused_key_history_count: u64,
    /// Files of the archive.
    stored_files: u64,
    stored_bytes: u64,
}

impl ImportSummary {
    fn to_text(&self) -> String {
        format!(
            "{} files\n{} events: {} verified, {} unchecked, {} refused\n{} repositories with {} records, {} refused\n\
             {} histories of keys, {} refused\n\
             {} bytes in {} files of the archive\n",
            self.file_count,
            self.event_count,
            self.verified_count,
            self.unchecked_count,
            self.refused_count,
            self.repository_count,
            self.record_count,
            self.refused_repository_count,
            self.key_history_count,
            self.refused_key_history_count,
            self.stored_bytes,
            self.stored_files,
        )
    }
}

/// Bytes of a file of histories, which is read whole: some 500,000 operations.
const MAX_EXPORT_BYTES: usize = 512 << 20;

/// Size of the repositories that are stored together: two files of the archive.
const MAX_PART_BYTES: u64 = 64 << 20;

/// Number of repositories that are stored together.
const MAX_PART_FILES: usize = 4_096;

/// Frames between two updates of the progress.
const PROGRESS_FRAMES: u64 = 256;

const EXAMPLES: &str = "\
Examples:
  wireproof archive import firehose-frames.bin --keys accounts.json --to archive
  wireproof archive import captures/ --keys accounts.json --host relay.example.com --to archive --json
  curl -s https://plc.directory/$DID/log/audit | wireproof archive import --plc-log - --to archive";
