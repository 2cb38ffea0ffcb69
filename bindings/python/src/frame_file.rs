//! The function `read_frames`: the frames of a captured file.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use atproto::corpus::{self, CorpusError, Frames};
use mapping::MappedFile;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use self_cell::self_cell;

use crate::arguments;
use crate::errors::Class;
use crate::source::open_file;

self_cell!(
    /// A file with the frames that are not read yet.
    struct OpenFile {
        owner: MappedFile,
        #[covariant]
        dependent: Frames,
    }
);

/// Read the frames of a captured file in their order, as `wireproof frames verify` does.
///
/// The file begins with the number of frames; each frame follows its length: 32 bits each, the highest byte first. It is mapped, so
/// that it takes no memory whatever its size, and must not change meanwhile. Its structure is checked at once; the frames are
/// judged by `Judge.batch`.
///
/// Args:
///     path: the file, as `str` or `os.PathLike`.
///
/// Returns:
///     An iterator of frames as `bytes`, which `operator.length_hint` counts. Threads may share it.
///
/// Raises:
///     TypeError: if `path` is neither text nor a path.
///     OSError: if the file cannot be read.
///     DecodeError: if the file does not consist of the frames that it states, with the code `frame/file`, and `offset` in the file.
///
/// Example:
///     >>> import pathlib, tempfile, wireproof
///     >>> path = pathlib.Path(tempfile.mkdtemp(), "frames.bin")
///     >>> path.write_bytes(bytes.fromhex("00000002" "00000003 616263" "00000000"))
///     15
///     >>> list(wireproof.read_frames(path))
///     [b'abc', b'']
///
/// ```python
/// judge, frames = wireproof.Judge(keys), wireproof.read_frames("firehose-frames.bin")
/// while batch := list(itertools.islice(frames, 512)):
///     for outcome in judge.batch(batch):
///         print(outcome.seq, outcome.did, outcome.code)
/// ```
#[pyfunction]
pub(crate) fn read_frames(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<FrameIterator> {
    let path = arguments::path("path", path)?;
    let opened = py.detach(|| {
        let file = open_file(&path)?;
        Ok::<_, io::Error>(OpenFile::try_new(file, |file| corpus::frames(file)))
    });
    let opened = opened?.map_err(|error| {
        let message = format!("{}: {error}", path.display());
        Class::Decode.error(py, message, "frame/file", Some(offset_of(error)))
    })?;
    Ok(FrameIterator { file: Mutex::new(opened) })
}

/// The place of the fault in the file.
fn offset_of(error: CorpusError) -> u64 {
    match error {
        CorpusError::NoCount => 0,
        CorpusError::Truncated { offset, .. } | CorpusError::TrailingBytes(offset) => offset as u64,
    }
}

/// Iterates over the frames of a file.
#[pyclass(frozen, module = "wireproof")]
pub(crate) struct FrameIterator {
    file: Mutex<OpenFile>,
}

#[pymethods]
impl FrameIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let next = |_: &MappedFile, frames: &mut Frames<'_>| {
            frames.next().map(|frame| PyBytes::new(py, frame))
        };
        self.lock().with_dependent_mut(next)
    }

    fn __length_hint__(&self) -> usize {
        self.lock().borrow_dependent().len()
    }
}

impl FrameIterator {
    fn lock(&self) -> MutexGuard<'_, OpenFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
