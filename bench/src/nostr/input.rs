//! The events of a file, or of all files of a folder.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use bumpalo::Bump;
use wireproof::nostr::{DecodeError, Event};

use super::layout::Layout;
use super::reader::{FileFault, Reader};

/// A file of events, or a folder of files.
#[derive(Clone, Debug)]
pub struct Input {
    files: Vec<PathBuf>,
    layout: Option<Layout>,
    /// Maximum number of events per file.
    limit_per_file: u64,
}

/// Why an input cannot be read, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// A folder without a file of events.
    #[error("{}: no file in this folder ends in .gz", .0.display())]
    EmptyFolder(PathBuf),
    /// A file or folder cannot be read.
    #[error("{}: {fault}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        fault: FileFault,
    },
}

impl InputError {
    /// Whether the system failed rather than the input.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::File { fault, .. } if fault.is_local())
    }
}

/// Events read together.
pub struct Group<'a> {
    /// The file.
    pub file: &'a Path,
    /// Index of the first of them in the file.
    pub first: u64,
    /// The events, or why an event is invalid.
    pub events: Vec<Result<Event<'a>, DecodeError>>,
}

impl<'a> Group<'a> {
    /// The events, if all are valid.
    ///
    /// # Errors
    /// The first invalid event.
    pub fn into_events(self) -> Result<Vec<Event<'a>>, InputError> {
        let Self { file, first, events } = self;
        let with_index = |(at, event): (usize, Result<_, _>)| {
            let fault = |fault| FileFault::Event { at: first + at as u64, fault };
            event.map_err(|it| InputError::File { path: file.to_owned(), fault: fault(it) })
        };
        events.into_iter().enumerate().map(with_index).collect()
    }
}

impl Input {
    /// Opens a file, or the files of a folder that end in `.gz` in the order of their names; `-` is standard input.
    /// Without a `layout` the file's extension decides.
    ///
    /// `limit` is divided among several files: the first events of each, at least one.
    ///
    /// # Errors
    /// If the path does not exist, or is a folder without such a file.
    pub fn open(
        path: &Path,
        layout: Option<Layout>,
        limit: Option<u64>,
    ) -> Result<Self, InputError> {
        let files = files(path)?;
        let limit_per_file = limit.map_or(u64::MAX, |limit| (limit / files.len() as u64).max(1));
        Ok(Self { files, layout, limit_per_file })
    }

    /// Calls `visit` with each group of events; the memory of a group is reused for the next.
    ///
    /// # Errors
    /// Errors of the files, and the first of `visit`.
    pub fn each_group<E: From<InputError>>(
        &self,
        mut visit: impl FnMut(Group<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut arena = Bump::new();
        for file in &self.files {
            let fault = |fault| InputError::File { path: file.clone(), fault };
            let mut reader = self.reader(file)?;
            loop {
                arena.reset();
                let first = reader.taken();
                let events =
                    reader.group(&arena, self.limit_per_file - first.min(self.limit_per_file));
                let events = events.map_err(fault)?;
                if events.is_empty() {
                    break;
                }
                visit(Group { file, first, events })?;
            }
        }
        Ok(())
    }

    /// All events, in `arena`.
    ///
    /// # Errors
    /// The first invalid event, and the errors of [`each_group`](Self::each_group).
    pub fn load<'a>(&'a self, arena: &'a Bump) -> Result<Vec<Event<'a>>, InputError> {
        let mut all = Vec::new();
        for file in &self.files {
            let fault = |fault| InputError::File { path: file.clone(), fault };
            let mut reader = self.reader(file)?;
            loop {
                let first = reader.taken();
                let events =
                    reader.group(arena, self.limit_per_file - first.min(self.limit_per_file));
                let events = events.map_err(fault)?;
                if events.is_empty() {
                    break;
                }
                all.extend(Group { file, first, events }.into_events()?);
            }
        }
        Ok(all)
    }

    fn reader(&self, file: &Path) -> Result<Reader<'static>, InputError> {
        let layout = self.layout.unwrap_or_else(|| Layout::of_path(file));
        let bytes: Box<dyn Read> = match file == Path::new("-") {
            true => Box::new(io::stdin()),
            false => Box::new(File::open(file).map_err(io_error(file))?),
        };
        Ok(Reader::new(layout, BufReader::with_capacity(BUFFER_BYTES, bytes)))
    }
}

fn files(path: &Path) -> Result<Vec<PathBuf>, InputError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(io_error(path))? {
        let file = entry.map_err(io_error(path))?.path();
        if file.extension().is_some_and(|extension| extension == "gz") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() { Err(InputError::EmptyFolder(path.to_owned())) } else { Ok(files) }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> InputError {
    let path = path.to_owned();
    move |fault| InputError::File { path, fault: FileFault::Io(fault) }
}

const BUFFER_BYTES: usize = 1 << 20;
