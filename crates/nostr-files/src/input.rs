//! The events of files, of all files of folders, and of databases.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use bumpalo::Bump;
use nostr::Event;
use nostr_formats::container::{self, Damage};

use crate::database::DatabaseReader;
use crate::fault::FileFault;
use crate::group::{Entry, RawGroup};
use crate::layout::Layout;
use crate::reader::Reader;
use crate::stream::{ByteSource, Stream};

/// Files of events, folders of files, and LMDB databases.
#[derive(Clone, Debug)]
pub struct Input {
    files: Vec<PathBuf>,
    layout: Option<Layout>,
    /// Maximum number of events per file.
    limit_per_file: u64,
    /// The process that reads databases; `None` for this one.
    reader: Option<ReaderProcess>,
}

/// The process that reads a database, so that a file that makes LMDB fail does not end this one: a program that calls
/// `nostr_lmdb::serve` with the folder after these arguments.
#[derive(Clone, Debug)]
pub struct ReaderProcess {
    /// The program.
    pub program: PathBuf,
    /// Arguments before the folder.
    pub arguments: Vec<OsString>,
}

impl ReaderProcess {
    /// The command for a folder.
    #[cfg_attr(
        not(feature = "nostr-lmdb"),
        expect(dead_code, reason = "only databases are read by a process")
    )]
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(folder);
        command
    }
}

/// Why an input cannot be read, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// A folder without a file of events.
    #[error(
        "{}: no file in this folder ends in .gz, .zst, .jsonl, .nostr or .notepack, or is data.mdb",
        .0.display()
    )]
    EmptyFolder(PathBuf),
    /// A file or folder cannot be read.
    #[error("{}: {fault}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The fault.
        fault: FileFault,
    },
}

impl InputError {
    /// Whether the system failed rather than the input.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::File { fault, .. } if fault.is_local())
    }
}

/// Entries of a file that were read together, or a part of a container that is damaged.
pub struct Group<'a> {
    /// The file.
    pub file: &'a Path,
    /// Index of the first of them in the file.
    pub first: u64,
    /// The entries.
    pub entries: Vec<Entry<'a>>,
    /// The damage; there are no entries then.
    pub damage: Option<Damage>,
}

impl<'a> Group<'a> {
    /// Decodes the group.
    ///
    /// # Errors
    /// If it is no list of its format.
    pub fn decode(file: &'a Path, raw: &'a RawGroup, arena: &'a Bump) -> Result<Self, InputError> {
        let entries = raw.decode(arena).map_err(fault_of(file))?;
        Ok(Self { file, first: raw.first, entries, damage: raw.damage() })
    }

    /// The events, if all are valid.
    ///
    /// # Errors
    /// The first invalid event, or the damage.
    pub fn into_events(self) -> Result<Vec<Event<'a>>, InputError> {
        let Self { file, first, entries, damage } = self;
        if let Some(damage) = damage {
            return Err(fault_of(file)(FileFault::Damaged(damage)));
        }
        let with_index = |(at, entry): (u64, Entry<'a>)| {
            let fault = |fault| fault_of(file)(FileFault::Event { at, fault });
            entry.event.map_err(fault)
        };
        (first..).zip(entries).map(with_index).collect()
    }
}

impl Input {
    /// Opens files, and the files of folders that end in `.gz`, `.zst`, `.jsonl`, `.nostr` or `.notepack` in the order of their
    /// names; `-` is standard input. Without a `layout` a folder with `data.mdb` is an LMDB database, a container is known by its
    /// first bytes, and the extension of other files decides.
    ///
    /// `limit` is divided among several files: the first events of every file, at least one.
    ///
    /// # Errors
    /// If a folder has no such file.
    pub fn open(
        paths: &[impl AsRef<Path>],
        layout: Option<Layout>,
        limit: Option<u64>,
    ) -> Result<Self, InputError> {
        let mut files = Vec::new();
        for path in paths {
            files.extend(files_of(path.as_ref(), layout)?);
        }
        let count = (files.len() as u64).max(1);
        let limit_per_file = limit.map_or(u64::MAX, |limit| (limit / count).max(1));
        Ok(Self { files, layout, limit_per_file, reader: None })
    }

    /// Reads databases by another process.
    #[must_use]
    pub fn with_reader(mut self, reader: ReaderProcess) -> Self {
        self.reader = Some(reader);
        self
    }

    /// The groups of the files, read on demand and not decoded, each with its file. An error is the last item.
    pub fn groups(&self) -> impl Iterator<Item = Result<(&Path, RawGroup), InputError>> + Send {
        let mut groups = Groups { input: self, files: self.files.iter(), current: None };
        let mut is_over = false;
        std::iter::from_fn(move || {
            let next = if is_over { None } else { groups.next_group().transpose() };
            is_over = !matches!(next, Some(Ok(_)));
            next
        })
    }

    /// Calls `visit` with every group of events; the memory of a group is reused for the next.
    ///
    /// # Errors
    /// Errors of the files, and the first of `visit`.
    pub fn each_group<E: From<InputError>>(
        &self,
        mut visit: impl FnMut(Group<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut arena = Bump::new();
        for group in self.groups() {
            let (file, raw) = group?;
            arena.reset();
            visit(Group::decode(file, &raw, &arena)?)?;
        }
        Ok(())
    }

    /// All events, in `arena`.
    ///
    /// # Errors
    /// The first invalid event, and the errors of [`each_group`](Self::each_group).
    pub fn load<'a>(&'a self, arena: &'a Bump) -> Result<Vec<Event<'a>>, InputError> {
        self.load_with(arena, Group::into_events)
    }

    /// All events that `take` returns of the groups, in `arena`.
    ///
    /// # Errors
    /// Errors of the files, and the first of `take`.
    pub fn load_with<'a, E: From<InputError>>(
        &'a self,
        arena: &'a Bump,
        mut take: impl FnMut(Group<'a>) -> Result<Vec<Event<'a>>, E>,
    ) -> Result<Vec<Event<'a>>, E> {
        let mut all = Vec::new();
        for group in self.groups() {
            let (file, raw) = group?;
            let entries = raw.decode_in(arena).map_err(fault_of(file))?;
            all.extend(take(Group { file, first: raw.first, entries, damage: raw.damage() })?);
        }
        Ok(all)
    }

    fn source(&self, file: &Path) -> Result<Source, InputError> {
        match database_folder(file).filter(|_| self.layout.is_none()) {
            Some(folder) => {
                let opened = DatabaseReader::open(folder, self.reader.as_ref());
                let opened = opened.map_err(fault_of(file))?;
                Ok(Source::Database(Box::new(opened)))
            }
            None => Ok(Source::File(Box::new(self.reader(file)?))),
        }
    }

    fn reader(&self, file: &Path) -> Result<Reader<'static>, InputError> {
        if file == Path::new("-") {
            let mut bytes = Stream::new(io::stdin());
            let start = self.start(file, &mut bytes)?;
            let layout = self.layout_of(file, &start);
            bytes.put_back(start);
            return Ok(Reader::of_source(layout, ByteSource::Stream(bytes)));
        }
        let opened = File::open(file).map_err(io_error(file))?;
        let mut bytes = BufReader::with_capacity(BUFFER_BYTES, opened);
        let start = self.start(file, &mut bytes)?;
        Ok(Reader::new(self.layout_of(file, &start), io::Cursor::new(start).chain(bytes)))
    }

    /// The first bytes, if they decide the layout.
    fn start(&self, file: &Path, bytes: &mut impl Read) -> Result<Vec<u8>, InputError> {
        let mut start = Vec::new();
        if self.layout.is_none() {
            bytes.take(START_BYTES).read_to_end(&mut start).map_err(io_error(file))?;
        }
        Ok(start)
    }

    fn layout_of(&self, file: &Path, start: &[u8]) -> Layout {
        match self.layout {
            Some(layout) => layout,
            None if container::is_container(start) => Layout::CONTAINER,
            None => Layout::of_path(file),
        }
    }
}

/// The source of events.
enum Source {
    File(Box<Reader<'static>>),
    Database(Box<DatabaseReader>),
}

impl Source {
    /// The next entries, up to a maximum of all that are read; `None` at the end.
    fn next_group(&mut self, max: u64) -> Result<Option<RawGroup>, FileFault> {
        match self {
            Self::File(reader) => reader.next_group(max.saturating_sub(reader.taken())),
            Self::Database(reader) => reader.next_group(max.saturating_sub(reader.taken())),
        }
    }
}

/// Reads files one after the other.
struct Groups<'i> {
    input: &'i Input,
    files: std::slice::Iter<'i, PathBuf>,
    current: Option<(&'i Path, Source)>,
}

impl<'i> Groups<'i> {
    fn next_group(&mut self) -> Result<Option<(&'i Path, RawGroup)>, InputError> {
        loop {
            let (file, source) = match &mut self.current {
                Some(current) => current,
                None => {
                    let Some(file) = self.files.next() else { return Ok(None) };
                    self.current.insert((file, self.input.source(file)?))
                }
            };
            let group = source.next_group(self.input.limit_per_file);
            if let Some(group) = group.map_err(fault_of(file))? {
                return Ok(Some((*file, group)));
            }
            self.current = None;
        }
    }
}

/// The folder of the database that a path names, by itself or by its file; `-` names none.
fn database_folder(path: &Path) -> Option<&Path> {
    if path == Path::new("-") {
        return None;
    }
    let is_file = path.file_name().is_some_and(|name| name == DATABASE_FILE) && path.is_file();
    let folder = if is_file { path.parent()? } else { path };
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    folder.join(DATABASE_FILE).is_file().then_some(folder)
}

fn files_of(path: &Path, layout: Option<Layout>) -> Result<Vec<PathBuf>, InputError> {
    let is_database = layout.is_none() && database_folder(path).is_some();
    if is_database || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(io_error(path))? {
        let file = entry.map_err(io_error(path))?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() { Err(InputError::EmptyFolder(path.to_owned())) } else { Ok(files) }
}

fn fault_of(path: &Path) -> impl FnOnce(FileFault) -> InputError {
    let path = path.to_owned();
    move |fault| InputError::File { path, fault }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> InputError {
    let path = path.to_owned();
    move |fault| InputError::File { path, fault: FileFault::Io(fault) }
}

/// The file by which a folder is an LMDB database.
const DATABASE_FILE: &str = "data.mdb";

/// Extensions of the files of a folder that are read.
const EXTENSIONS: [&str; 5] = ["gz", "zst", "jsonl", "nostr", "notepack"];

const BUFFER_BYTES: usize = 1 << 20;
/// Bytes that tell a container from other files.
const START_BYTES: u64 = 8;
