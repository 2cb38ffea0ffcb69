//! The sink of files: the payloads of events as lines, in files that are complete once they have their name.
//!
//! | name | content |
//! |---|---|
//! | `events-00000000000000000042.ndjson.part` | the file that is written; its first event has position 42 |
//! | `events-00000000000000000042.ndjson` | a complete file, which is never changed again |
//! | `events.lock` | the lock of the folder |
//!
//! Events are accepted when they are synced, so the content of the temporary file after a crash counts: the next start
//! cuts off a line without an end, which was not accepted, and gives the file its name.
//!
//! The file that is written must stay where it is, with its content. If another program deletes, replaces or changes
//! it, nothing more is accepted: the delivery ends.

pub(crate) mod options;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use base::{Lock, LockError, LockFault, crash_point};

use self::options::FileOptions;
use crate::event::Event;
use crate::file_identity::identity;
use crate::line_form::{LineForm, lines_of};
use crate::sink::{FailureKind, SendFailure, Sink, SinkLimits};
use crate::sink_address::{OpenFailure, SinkAddress, local_path, path_consumer};
use crate::sink_options::SinkOptions;

/// The folder of files of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAddress(PathBuf);

impl SinkAddress for FileAddress {
    const SCHEMES: &'static [&'static str] = &["file"];
    const FORM: &'static str = "file:///FOLDER";
    type Sink = FileSink;

    fn from_uri(uri: &str) -> Result<Self, String> {
        local_path(uri).map(Self)
    }

    fn consumer(&self) -> String {
        path_consumer("file", &self.0)
    }

    /// Files take every event as it is; only one that is split into operations must be a line.
    fn can_refuse(&self, options: &SinkOptions) -> bool {
        options.form == LineForm::Operations
    }

    async fn open(&self, options: &SinkOptions) -> Result<FileSink, OpenFailure> {
        let files = FileOptions { form: options.form, ..options.files };
        FileSink::open(&self.0, files).map_err(OpenFailure::local)
    }
}

/// Writes events to files of a folder.
#[derive(Debug)]
pub struct FileSink {
    folder: Arc<Mutex<Folder>>,
    form: LineForm,
}

impl FileSink {
    /// Opens the folder, creates it if missing, and completes the file that an earlier run left.
    ///
    /// # Errors
    /// If another process writes to the folder, or it cannot be written.
    pub fn open(folder: &Path, options: FileOptions) -> Result<Self, SendFailure> {
        let failed = |error: io::Error| failure(folder, &error);
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = Lock::take(&folder.join(PREFIX)).map_err(|error| not_locked(folder, &error))?;
        let opened = Folder { path: folder.to_owned(), options, current: None, _lock: lock };
        opened.complete_leftovers().map_err(failed)?;
        Ok(Self { folder: Arc::new(Mutex::new(opened)), form: options.form })
    }

    /// Runs on a thread for blocking work.
    async fn run(
        &self,
        work: impl FnOnce(&mut Folder) -> Result<(), FolderFault> + Send + 'static,
    ) -> Result<(), SendFailure> {
        let folder = self.folder.clone();
        let run = move || {
            let mut folder = folder.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut folder).map_err(|fault| match fault {
                FolderFault::Io(error) => failure(&folder.path, &error),
                FolderFault::Changed { .. } => SendFailure::new(FailureKind::Fatal, fault),
            })
        };
        tokio::task::spawn_blocking(run)
            .await
            .unwrap_or_else(|error| Err(SendFailure::temporary(error)))
    }
}

/// Why a folder cannot be written.
#[derive(Debug, thiserror::Error)]
enum FolderFault {
    /// It may be possible later.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Another program has changed the file that is written.
    #[error(
        "{}: another program has {what} the file that is being written: events that were delivered to it may be missing; the next \
         run begins another file", path.display()
    )]
    Changed { path: PathBuf, what: &'static str },
}

fn not_locked(folder: &Path, error: &LockError) -> SendFailure {
    let path = folder.display();
    if let LockFault::Io(error) = &error.fault {
        return failure(folder, error);
    }
    let reason = format!(
        "{path}: another process writes events to this folder: stop it, or choose another folder"
    );
    SendFailure::new(FailureKind::Fatal, reason)
}

fn failure(folder: &Path, error: &io::Error) -> SendFailure {
    SendFailure::temporary(format!("{}: {error}", folder.display()))
}

impl Sink for FileSink {
    fn limits(&self) -> SinkLimits {
        SinkLimits::new(4096, 4 << 20)
    }

    async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
        let Some(first) = events.first().map(Event::position) else { return Ok(()) };
        let (lines, refused) = lines_of(self.form, events);
        if !lines.is_empty() {
            self.run(move |folder| folder.write(first, &lines)).await?;
        }
        refused.map_or(Ok(()), Err)
    }

    async fn maintain(&self) -> Result<(), SendFailure> {
        self.run(|folder| {
            folder.current.as_ref().map_or(Ok(()), OpenFile::check)?;
            folder.complete_if_due()
        })
        .await
    }

    async fn close(&self) -> Result<(), SendFailure> {
        self.run(Folder::complete).await
    }
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    options: FileOptions,
    current: Option<OpenFile>,
    _lock: Lock,
}

/// The file that is written.
#[derive(Debug)]
struct OpenFile {
    /// Its temporary name.
    path: PathBuf,
    file: File,
    /// Length up to the last synced line in bytes.
    len: u64,
    /// The device and the number of the file, where the system has them.
    identity: Option<(u64, u64)>,
    since: Instant,
}

impl Folder {
    /// Appends lines and syncs them. After an error the file ends with the last synced line.
    fn write(&mut self, first: u64, lines: &[u8]) -> Result<(), FolderFault> {
        self.current.as_ref().map_or(Ok(()), OpenFile::check)?;
        self.complete_if_due()?;
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.create(first)?,
        };
        crash_point("files/taken");
        let written = current.append(lines);
        if written.is_ok() || current.cut().is_ok() {
            self.current = Some(current);
        } else {
            // Synced lines stay: the file is completed as one of an earlier run.
            drop(current);
            self.complete_leftovers()?;
        }
        written?;
        // Synced lines are of no use in a file that is gone.
        self.current.as_ref().map_or(Ok(()), OpenFile::check)?;
        self.complete_if_due()
    }

    fn create(&self, first: u64) -> io::Result<OpenFile> {
        let path = self.path.join(format!("{PREFIX}-{first:020}{COMPLETE}{PART}"));
        let file = OpenOptions::new().append(true).create_new(true).open(&path)?;
        sync_folder(&self.path)?;
        let identity = identity(&file.metadata()?);
        Ok(OpenFile { path, file, len: 0, identity, since: Instant::now() })
    }

    fn complete_if_due(&mut self) -> Result<(), FolderFault> {
        let FileOptions { max_bytes, max_age, .. } = self.options;
        let is_due = |file: &OpenFile| file.len >= max_bytes || file.since.elapsed() >= max_age;
        if self.current.as_ref().is_some_and(is_due) { self.complete() } else { Ok(()) }
    }

    /// Gives the file that is written its name.
    fn complete(&mut self) -> Result<(), FolderFault> {
        let Some(current) = self.current.take() else { return Ok(()) };
        current.check()?;
        let OpenFile { path, file, .. } = current;
        drop(file);
        Ok(self.complete_file(&path)?)
    }

    /// Completes the files of earlier runs.
    fn complete_leftovers(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            // The target of a symbolic link is not ours to cut off.
            if !entry.file_type()?.is_file() {
                continue;
            }
            let path = entry.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with(PREFIX) && name.ends_with(PART) {
                self.complete_file(&path)?;
            }
        }
        Ok(())
    }

    /// Cuts off a line without an end, and gives the file its name; deletes it if it is empty.
    fn complete_file(&self, part: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().read(true).write(true).open(part)?;
        let len = len_of_lines(&mut file)?;
        if len < file.metadata()?.len() {
            file.set_len(len)?;
        }
        file.sync_all()?;
        drop(file);
        if len == 0 {
            fs::remove_file(part)?;
            return sync_folder(&self.path);
        }
        crash_point("files/complete");
        fs::rename(part, self.free_name(part)?)?;
        sync_folder(&self.path)?;
        crash_point("files/named");
        Ok(())
    }

    /// The name of a complete file, with a number if another file has it. The lock of the folder is held, so no other
    /// process of ours takes the name meanwhile.
    fn free_name(&self, part: &Path) -> io::Result<PathBuf> {
        let name = part.to_string_lossy();
        let stem = name.strip_suffix(PART).and_then(|name| name.strip_suffix(COMPLETE));
        let stem = stem.ok_or(io::ErrorKind::InvalidFilename)?;
        let numbered = |number: u32| match number {
            1 => PathBuf::from(format!("{stem}{COMPLETE}")),
            _ => PathBuf::from(format!("{stem}-{number}{COMPLETE}")),
        };
        let mut names = (1..=MAX_SAME_NAMES).map(numbered);
        names.find(|name| !name.exists()).ok_or_else(|| io::ErrorKind::AlreadyExists.into())
    }
}

impl OpenFile {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines)?;
        crash_point("files/written");
        self.file.sync_data()?;
        crash_point("files/synced");
        self.len += lines.len() as u64;
        Ok(())
    }

    /// Checks that the file is still where it was created, with its content.
    fn check(&self) -> Result<(), FolderFault> {
        let changed = |what| Err(FolderFault::Changed { path: self.path.clone(), what });
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => changed("deleted or moved"),
            Err(error) => Err(error.into()),
            Ok(found) if identity(&found) != self.identity => changed("replaced"),
            Ok(found) if found.len() < self.len => changed("cut"),
            Ok(found) if found.len() > self.len => changed("written to"),
            Ok(_) => Ok(()),
        }
    }

    /// Cuts off data that is not synced.
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.len)?;
        self.file.seek(SeekFrom::Start(self.len)).map(drop)
    }
}

/// The length in bytes up to the end of the last whole line.
fn len_of_lines(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut block = vec![0; BLOCK_BYTES];
    while end > 0 {
        let len = end.min(BLOCK_BYTES as u64);
        file.seek(SeekFrom::Start(end - len))?;
        let block = &mut block[..len as usize];
        file.read_exact(block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(end - len + at as u64 + 1);
        }
        end -= len;
    }
    Ok(0)
}

/// Syncs the names of a folder, where the system can.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

const PREFIX: &str = "events";
const COMPLETE: &str = ".ndjson";
const PART: &str = ".part";

/// Maximum number of files that begin with the same position, as after a new outbox.
const MAX_SAME_NAMES: u32 = 10_000;

const BLOCK_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::event::{EventId, NewEvent};

    fn events(positions: std::ops::Range<u64>) -> Vec<Event> {
        let event = |position| {
            let id = EventId::of_commit("did:web:a.test", "3k");
            let payload = format!("{{\"n\":{position}}}");
            Event::stored(position, &NewEvent::new(id, "did:web:a.test", payload).unwrap())
        };
        positions.map(event).collect()
    }

    /// The files of the folder, with their contents.
    fn files(folder: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let names = entries.filter(|path| path.extension().is_some_and(|name| name != "lock"));
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut files: Vec<_> =
            names.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect();
        files.sort();
        files
    }

    fn named(position: u64, suffix: &str, text: &str) -> (String, String) {
        (format!("events-{position:020}{suffix}"), text.to_owned())
    }

    #[tokio::test]
    async fn a_file_is_complete_at_its_size_and_temporary_before() {
        let dir = tempfile::tempdir().unwrap();
        let options = FileOptions { max_bytes: 16, ..FileOptions::default() };
        let sink = FileSink::open(dir.path(), options).unwrap();
        sink.send(&events(1..2)).await.unwrap();
        assert_eq!(files(dir.path()), [named(1, ".ndjson.part", "{\"n\":1}\n")]);
        sink.send(&events(2..3)).await.unwrap();
        sink.send(&events(3..4)).await.unwrap();
        let (first, second) = ("{\"n\":1}\n{\"n\":2}\n", "{\"n\":3}\n");
        assert_eq!(
            files(dir.path()),
            [named(1, ".ndjson", first), named(3, ".ndjson.part", second)]
        );
        sink.close().await.unwrap();
        assert_eq!(files(dir.path()), [named(1, ".ndjson", first), named(3, ".ndjson", second)]);
    }

    #[tokio::test]
    async fn an_idle_file_is_complete_at_its_age() {
        let dir = tempfile::tempdir().unwrap();
        let options = FileOptions { max_age: Duration::ZERO, ..FileOptions::default() };
        let sink = FileSink::open(dir.path(), options).unwrap();
        sink.folder.lock().unwrap().options.max_age = Duration::from_secs(60);
        sink.send(&events(1..2)).await.unwrap();
        sink.maintain().await.unwrap();
        assert_eq!(files(dir.path()), [named(1, ".ndjson.part", "{\"n\":1}\n")]);
        sink.folder.lock().unwrap().options.max_age = Duration::ZERO;
        sink.maintain().await.unwrap();
        assert_eq!(files(dir.path()), [named(1, ".ndjson", "{\"n\":1}\n")]);
    }

    #[tokio::test]
    async fn what_a_crash_left_is_completed_without_its_cut_line_and_overwrites_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        let stem = "events-00000000000000000001";
        file(&format!("{stem}.ndjson"), "other\n");
        file(&format!("{stem}.ndjson.part"), "{\"n\":1}\n{\"n\":2}\n{\"n\"");
        file("events-00000000000000000009.ndjson.part", "{\"n\"");
        drop(FileSink::open(dir.path(), FileOptions::default()).unwrap());
        let recovered = named(1, "-2.ndjson", "{\"n\":1}\n{\"n\":2}\n");
        assert_eq!(files(dir.path()), [recovered, named(1, ".ndjson", "other\n")]);
    }

    #[tokio::test]
    async fn a_folder_belongs_to_one_process() {
        let dir = tempfile::tempdir().unwrap();
        let sink = FileSink::open(dir.path(), FileOptions::default()).unwrap();
        let error = FileSink::open(dir.path(), FileOptions::default()).unwrap_err();
        assert!(error.to_string().contains("another process writes events"), "{error}");
        drop(sink);
        FileSink::open(dir.path(), FileOptions::default()).unwrap();
    }

    #[tokio::test]
    async fn a_folder_that_is_lost_is_a_temporary_failure_and_no_event_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        let sink = FileSink::open(&folder, FileOptions::default()).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let failure = sink.send(&events(1..2)).await.unwrap_err();
        assert!(failure.accepted.is_empty());
        fs::create_dir(&folder).unwrap();
        sink.send(&events(1..2)).await.unwrap();
        assert_eq!(files(&folder), [named(1, ".ndjson.part", "{\"n\":1}\n")]);
    }

    #[tokio::test]
    async fn nothing_is_accepted_after_another_program_changed_the_file() {
        type Edit = fn(&Path);
        let edits: [(&str, Edit); 5] = [
            ("deleted or moved", |part| fs::remove_file(part).unwrap()),
            ("deleted or moved", |part| fs::rename(part, part.with_extension("away")).unwrap()),
            ("replaced", |part| {
                let copy = part.with_extension("copy");
                fs::copy(part, &copy).unwrap();
                fs::rename(copy, part).unwrap();
            }),
            ("cut", |part| File::options().write(true).open(part).unwrap().set_len(3).unwrap()),
            ("written to", |part| {
                File::options().append(true).open(part).unwrap().write_all(b"x").unwrap();
            }),
        ];
        for (what, edit) in edits {
            let dir = tempfile::tempdir().unwrap();
            let part = dir.path().join("events-00000000000000000001.ndjson.part");
            let sink = || FileSink::open(dir.path(), FileOptions::default()).unwrap();
            for step in ["write", "maintain", "close"] {
                let sink = sink();
                sink.send(&events(1..3)).await.unwrap();
                edit(&part);
                let failure = match step {
                    "write" => sink.send(&events(3..4)).await,
                    "maintain" => sink.maintain().await,
                    _ => sink.close().await,
                };
                let failure = failure.unwrap_err();
                assert_eq!(failure.kind, FailureKind::Fatal, "{what} {step}");
                assert!(failure.accepted.is_empty() && failure.reason.contains(what), "{failure}");
            }
            // The next run begins another file.
            let sink = sink();
            sink.send(&events(3..4)).await.unwrap();
            sink.close().await.unwrap();
            let is_there = |(name, text): &(String, String)| {
                name.ends_with("03.ndjson") && text == "{\"n\":3}\n"
            };
            assert!(files(dir.path()).iter().any(is_there), "{what}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn lines_that_cannot_be_synced_are_cut_off() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (path, since) = (PathBuf::from("/dev/full"), Instant::now());
        let mut file = OpenFile { path, file: full, len: 0, identity: None, since };
        let error = file.append(b"{}\n").unwrap_err();
        assert_eq!((error.kind(), file.len), (io::ErrorKind::StorageFull, 0));
    }
}
