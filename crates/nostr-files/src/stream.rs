//! The sources of a file: bytes that do not wait, or a stream that a thread of its own reads ahead, so that the arrived bytes are
//! known.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

/// The source of a file.
pub(crate) enum ByteSource<'r> {
    /// Bytes that do not wait long.
    Plain(Box<dyn BufRead + Send + 'r>),
    /// Bytes that may be a while in coming.
    Stream(Stream),
}

impl<'r> ByteSource<'r> {
    pub(crate) fn plain(input: impl BufRead + Send + 'r) -> Self {
        Self::Plain(Box::new(input))
    }

    /// Whether the next line is there. One of a plain source is.
    pub(crate) fn has_line(&mut self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Stream(stream) => stream.has_line(),
        }
    }
}

impl Read for ByteSource<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buf),
            Self::Stream(stream) => stream.read(buf),
        }
    }
}

impl BufRead for ByteSource<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Plain(input) => input.fill_buf(),
            Self::Stream(stream) => stream.fill_buf(),
        }
    }

    fn consume(&mut self, len: usize) {
        match self {
            Self::Plain(input) => input.consume(len),
            Self::Stream(stream) => stream.consume(len),
        }
    }
}

/// The bytes of a pipe or terminal, whose sender may pause.
pub(crate) struct Stream {
    chunks: Receiver<io::Result<Vec<u8>>>,
    /// Arrived, and not yet current.
    ahead: VecDeque<io::Result<Vec<u8>>>,
    current: io::Cursor<Vec<u8>>,
}

impl Stream {
    /// Reads `input` until it ends, or until this is dropped and one more read returns.
    pub(crate) fn new(input: impl Read + Send + 'static) -> Self {
        let (sender, chunks) = mpsc::sync_channel(CHUNKS);
        thread::spawn(move || read_ahead(input, &sender));
        Self { chunks, ahead: VecDeque::new(), current: io::Cursor::default() }
    }

    /// Whether the rest of a line has arrived, or the end; otherwise reading a line waits.
    pub(crate) fn has_line(&mut self) -> bool {
        if self.rest().contains(&b'\n') || self.ahead.iter().any(ends_line) {
            return true;
        }
        loop {
            match self.chunks.try_recv() {
                Err(mpsc::TryRecvError::Empty) => return false,
                Err(mpsc::TryRecvError::Disconnected) => return true,
                Ok(chunk) => {
                    let is_enough = ends_line(&chunk);
                    self.ahead.push_back(chunk);
                    if is_enough {
                        return true;
                    }
                }
            }
        }
    }

    /// Lets `start`, which was read, be read again.
    pub(crate) fn put_back(&mut self, start: Vec<u8>) {
        let rest = self.rest().to_vec();
        self.ahead.push_front(Ok(rest));
        self.current = io::Cursor::new(start);
    }

    fn rest(&self) -> &[u8] {
        let read = usize::try_from(self.current.position()).unwrap_or(usize::MAX);
        self.current.get_ref().get(read..).unwrap_or_default()
    }
}

/// Whether a line ends in the arrived bytes; a failure ends every line.
fn ends_line(chunk: &io::Result<Vec<u8>>) -> bool {
    chunk.as_ref().is_ok_and(|bytes| bytes.contains(&b'\n')) || chunk.is_err()
}

/// Sends every read to the stream. Ends at the end of the input, after an error, or when the stream was dropped.
fn read_ahead(mut input: impl Read, chunks: &SyncSender<io::Result<Vec<u8>>>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let chunk = match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(len) => Ok(buffer[..len].to_vec()),
            Err(fault) if fault.kind() == io::ErrorKind::Interrupted => continue,
            Err(fault) => Err(fault),
        };
        let is_last = chunk.is_err();
        if chunks.send(chunk).is_err() || is_last {
            return;
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buf)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Stream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.rest().is_empty() {
            match self.ahead.pop_front().or_else(|| self.chunks.recv().ok()) {
                Some(chunk) => self.current = io::Cursor::new(chunk?),
                None => break,
            }
        }
        self.current.fill_buf()
    }

    fn consume(&mut self, len: usize) {
        self.current.consume(len);
    }
}

/// Length of a read: a pipe's on Linux.
const CHUNK_BYTES: usize = 64 << 10;

/// Reads that may be ahead.
const CHUNKS: usize = 16;

#[cfg(test)]
mod tests {
    use std::io::{PipeWriter, Write};

    use super::*;

    fn pipe() -> (PipeWriter, Stream) {
        let (read, write) = io::pipe().unwrap();
        (write, Stream::new(read))
    }

    fn wait_for_line(stream: &mut Stream) {
        while !stream.has_line() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_line_is_there_once_its_end_has_arrived() {
        let (mut write, mut stream) = pipe();
        assert!(!stream.has_line());
        write.write_all(b"{\"a\":").unwrap();
        assert!(!stream.has_line());
        write.write_all(b"1}\n{").unwrap();
        wait_for_line(&mut stream);
        let mut line = Vec::new();
        stream.read_until(b'\n', &mut line).unwrap();
        assert_eq!(line, b"{\"a\":1}\n");
        assert!(!stream.has_line());
        drop(write);
        wait_for_line(&mut stream);
        assert_eq!(stream.fill_buf().unwrap(), b"{");
    }

    #[test]
    fn what_is_put_back_is_read_again_before_the_rest() {
        let (mut write, mut stream) = pipe();
        write.write_all(b"start and rest").unwrap();
        drop(write);
        let mut start = Vec::new();
        stream.by_ref().take(5).read_to_end(&mut start).unwrap();
        stream.put_back(start);
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        assert_eq!(all, "start and rest");
    }

    #[test]
    fn a_failure_is_returned_after_what_was_read_before() {
        struct Failing(bool);
        impl Read for Failing {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    Err(io::Error::other("unplugged"))
                } else {
                    buf[..3].copy_from_slice(b"one");
                    Ok(3)
                }
            }
        }
        let (mut stream, mut read) = (Stream::new(Failing(false)), Vec::new());
        let fault = stream.read_to_end(&mut read).unwrap_err();
        assert_eq!((&read[..], fault.to_string().as_str()), (&b"one"[..], "unplugged"));
    }
}
