//! Standard output for lines: how much of it the reader has taken, and the end of a line that an earlier run began.
//!
//! A file may end within a line: the last run was killed, or the disk was full. That line is ended first, so that
//! the next one is not appended to it.

use std::io::{self, Stdout, Write};

use super::taken::LineOutput;

#[cfg(not(unix))]
use other as system;
#[cfg(unix)]
use unix as system;

/// Standard output, and its reader where it is a pipe.
#[derive(Debug)]
pub(super) struct LineStdout {
    out: Stdout,
    reader: Option<system::Reader>,
}

impl LineStdout {
    /// Standard output. If it is a pipe, a task of the current runtime notices its end.
    pub(super) fn open() -> io::Result<Self> {
        let mut out = io::stdout();
        let reader = system::open(&mut out)?;
        Ok(Self { out, reader })
    }
}

impl LineOutput for LineStdout {
    fn unread(&self) -> io::Result<Option<u64>> {
        self.reader.as_ref().map(|reader| reader.unread(&self.out)).transpose()
    }
}

impl Write for LineStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io::{self, Seek, Stdout, Write};
    use std::os::fd::AsFd;
    use std::os::unix::fs::{FileExt, FileTypeExt};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use tokio::io::Interest;
    use tokio::net::unix::pipe::Sender;

    /// The reader of a pipe.
    #[derive(Debug)]
    pub(super) struct Reader {
        is_closed: Arc<AtomicBool>,
    }

    /// Ends the last line of a file; returns the reader of a pipe.
    pub(super) fn open(out: &mut Stdout) -> io::Result<Option<Reader>> {
        let mut file = File::from(out.as_fd().try_clone_to_owned()?);
        let kind = file.metadata()?.file_type();
        if kind.is_file() && ends_within_a_line(&mut file)? {
            out.write_all(b"\n")?;
        }
        if kind.is_fifo() { Reader::of(file).map(Some) } else { Ok(None) }
    }

    impl Reader {
        fn of(pipe: File) -> io::Result<Self> {
            let is_closed = Arc::<AtomicBool>::default();
            // Only its end is awaited: nothing is written through it.
            let pipe = Sender::from_file_unchecked(pipe)?;
            let closed = Arc::clone(&is_closed);
            tokio::spawn(async move {
                let has_error = pipe.ready(Interest::ERROR).await.is_ok();
                closed.store(has_error, Relaxed);
            });
            Ok(Self { is_closed })
        }

        /// Number of bytes in the pipe.
        pub(super) fn unread(&self, out: &Stdout) -> io::Result<u64> {
            if self.is_closed.load(Relaxed) {
                Err(io::ErrorKind::BrokenPipe.into())
            } else {
                Ok(rustix::io::ioctl_fionread(out)?)
            }
        }
    }

    /// Whether the last byte of a file before the next write is other than a line feed.
    fn ends_within_a_line(file: &mut File) -> io::Result<bool> {
        // The offset of a file that is appended to is 0 before the first write.
        let end = match file.stream_position()? {
            0 => file.metadata()?.len(),
            offset => offset,
        };
        let Some(last_at) = end.checked_sub(1) else { return Ok(false) };
        let mut last = [0];
        let is_read =
            File::open("/dev/fd/1").and_then(|file| file.read_exact_at(&mut last, last_at));
        // Of a file that cannot be read it is assumed: an empty line does no harm.
        Ok(is_read.is_err() || last != *b"\n")
    }
}

#[cfg(not(unix))]
mod other {
    use std::io::{self, Stdout};

    /// The reader of a pipe. No value exists: the system does not tell how much a reader has taken, so a line counts as
    /// taken once it is written.
    #[derive(Debug)]
    pub(super) enum Reader {}

    pub(super) fn open(_: &mut Stdout) -> io::Result<Option<Reader>> {
        Ok(None)
    }

    impl Reader {
        pub(super) fn unread(&self, _: &Stdout) -> io::Result<u64> {
            match *self {}
        }
    }
}
