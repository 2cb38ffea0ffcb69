//! Reading a database in a process of its own, so that a file that makes LMDB fail ends that process alone.

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::error::DatabaseError;
use crate::messages::{self, Message};
use crate::reader::{Program, Reader};
use crate::record::Record;

/// Reads the database in `folder`, and writes its records as messages for an [`IsolatedReader`] to `out`.
///
/// The whole process is for this: on Linux its address space is limited to the file and 2 GiB, files that it writes to 1 MiB.
///
/// # Errors
/// If `out` cannot be written. Faults of the database are messages.
pub fn serve(folder: &Path, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(CHUNK_BYTES, out);
    match send(folder, &mut out)? {
        Ok(()) => messages::write_end(&mut out)?,
        Err(error) => messages::write_error(&mut out, &error)?,
    }
    out.flush()
}

fn send(folder: &Path, out: &mut impl Write) -> io::Result<Result<(), DatabaseError>> {
    let mut reader = match open(folder) {
        Ok(reader) => reader,
        Err(error) => return Ok(Err(error)),
    };
    messages::write_opened(out, reader.program())?;
    out.flush()?;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match reader.next_row(&mut bytes) {
            Ok(Some(record)) => messages::write_record(out, &record, &bytes)?,
            Ok(None) => break,
            Err(error) => return Ok(Err(error)),
        }
    }
    // The records read so far do not wait for the comparison.
    out.flush()?;
    let mut written = Ok(());
    let compared = reader.compare_indexes(&mut || {
        let progress = messages::write_progress(out).and_then(|()| out.flush());
        written = std::mem::replace(&mut written, Ok(())).and(progress);
    });
    written.map(|()| compared)
}

fn open(folder: &Path) -> Result<Reader, DatabaseError> {
    let len = fs::metadata(folder.join("data.mdb")).map_err(DatabaseError::Io)?.len();
    mapping::limit_process(len.saturating_add(ADDRESS_BYTES), MAX_LOCK_BYTES)
        .map_err(DatabaseError::Io)?;
    Reader::open(folder)
}

/// Reads the records of a database that another process [serves](serve).
///
/// A signal that ends that process, a message that is malformed, and a minute without progress are errors.
pub struct IsolatedReader {
    process: Child,
    messages: Chunks,
    program: Program,
    last: Option<u64>,
    is_over: bool,
}

impl IsolatedReader {
    /// Starts the process that [serves](serve) the database.
    ///
    /// # Errors
    /// If it cannot be started, or the database cannot be opened.
    pub fn start(command: &mut Command) -> Result<Self, DatabaseError> {
        Self::start_within(command, STALL)
    }

    pub(crate) fn start_within(
        command: &mut Command,
        stall: Duration,
    ) -> Result<Self, DatabaseError> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(DatabaseError::Start)?;
        let output = process.stdout.take();
        let messages = Chunks::of(output.expect("it is piped"), stall);
        let program = Program::Strfry;
        let last = None;
        let is_over = false;
        let mut reader = Self { process, messages, program, last, is_over };
        match reader.next_message(&mut Vec::new())? {
            Message::Opened(program) => reader.program = program,
            Message::Error(error) => return Err(error),
            _ => return Err(reader.malformed()),
        }
        Ok(reader)
    }

    /// The program whose database this is.
    pub fn program(&self) -> Program {
        self.program
    }

    /// Appends the bytes of the next event to `out`, and of strfry the summary in its row; `None` at the end.
    ///
    /// # Errors
    /// If the process reports an error, ends or makes no progress.
    pub fn next_record(&mut self, out: &mut Vec<u8>) -> Result<Option<Record>, DatabaseError> {
        let start = out.len();
        while !self.is_over {
            let message = self.next_message(out);
            let is_record = matches!(message, Ok(Message::Record(_)));
            if !is_record {
                out.truncate(start);
            }
            match message? {
                Message::Record(record) if self.last.is_none_or(|last| last < record.key) => {
                    self.last = Some(record.key);
                    return Ok(Some(record));
                }
                Message::Progress => {}
                Message::End => self.is_over = true,
                Message::Error(error) => {
                    self.is_over = true;
                    return Err(error);
                }
                Message::Record(_) | Message::Opened(_) => {
                    out.truncate(start);
                    return Err(self.malformed());
                }
            }
        }
        Ok(None)
    }

    fn next_message(&mut self, out: &mut Vec<u8>) -> Result<Message, DatabaseError> {
        let error = match messages::read(&mut self.messages, out) {
            Ok(message) => return Ok(message),
            Err(error) => error,
        };
        match error.kind() {
            io::ErrorKind::TimedOut => {
                self.kill();
                let seconds = self.messages.stall.as_secs();
                Err(DatabaseError::Stalled { seconds, after: self.after() })
            }
            io::ErrorKind::UnexpectedEof => {
                let status = self.wait();
                let cause = status.map_or_else(|| "the system".to_owned(), |it| it.to_string());
                Err(DatabaseError::Crashed { cause, after: self.after() })
            }
            _ => Err(self.malformed()),
        }
    }

    fn malformed(&mut self) -> DatabaseError {
        self.kill();
        DatabaseError::Crashed { cause: "a malformed message".to_owned(), after: self.after() }
    }

    fn after(&self) -> String {
        self.last.map_or_else(|| "at the start".to_owned(), |last| format!("after key {last}"))
    }

    /// How the process ended, whose output is closed. One that goes on is ended.
    fn wait(&mut self) -> Option<ExitStatus> {
        // The output of a process that is ending is closed a moment before.
        for _ in 0..END_ATTEMPTS {
            match self.process.try_wait() {
                Ok(None) => thread::sleep(END_DISTANCE),
                Ok(Some(status)) => {
                    self.is_over = true;
                    return Some(status);
                }
                Err(_) => break,
            }
        }
        self.kill()
    }

    fn kill(&mut self) -> Option<ExitStatus> {
        self.is_over = true;
        let _ = self.process.kill();
        self.process.wait().ok()
    }
}

impl Drop for IsolatedReader {
    fn drop(&mut self) {
        self.kill();
    }
}

impl std::fmt::Debug for IsolatedReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { program, last, .. } = self;
        f.debug_struct("IsolatedReader")
            .field("program", program)
            .field("last", last)
            .finish_non_exhaustive()
    }
}

/// The output of a process, which is waited for no longer than `stall` at a time.
struct Chunks {
    chunks: Receiver<io::Result<Vec<u8>>>,
    current: Vec<u8>,
    at: usize,
    stall: Duration,
}

impl Chunks {
    fn of(output: impl Read + Send + 'static, stall: Duration) -> Self {
        let (sender, chunks) = sync_channel(MAX_CHUNKS);
        thread::spawn(move || forward(output, &sender));
        Self { chunks, current: Vec::new(), at: 0, stall }
    }
}

/// Sends the output in chunks, until it ends or nobody receives it.
fn forward(mut output: impl Read, chunks: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let read = output.read(&mut chunk).map(|len| {
            chunk.truncate(len);
            chunk
        });
        let is_last = read.as_ref().map_or(true, Vec::is_empty);
        if chunks.send(read).is_err() || is_last {
            return;
        }
    }
}

impl Read for Chunks {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at == self.current.len() {
            self.at = 0;
            self.current = match self.chunks.recv_timeout(self.stall) {
                Ok(chunk) => chunk?,
                Err(RecvTimeoutError::Timeout) => return Err(io::ErrorKind::TimedOut.into()),
                Err(RecvTimeoutError::Disconnected) => Vec::new(),
            };
        }
        let read = (&self.current[self.at..]).read(buf)?;
        self.at += read;
        Ok(read)
    }
}

/// Address space beyond the file.
const ADDRESS_BYTES: u64 = 2 << 30;
/// Maximum size of `lock.mdb`, the only file that is written.
const MAX_LOCK_BYTES: u64 = 1 << 20;

/// Time without progress after which a process is ended.
const STALL: Duration = Duration::from_secs(60);

/// Bytes of output that are read at a time, and chunks that wait.
const CHUNK_BYTES: usize = 64 << 10;
const MAX_CHUNKS: usize = 8;

/// How often and at which distance the end of a process is asked for.
const END_ATTEMPTS: u32 = 100;
const END_DISTANCE: Duration = Duration::from_millis(20);

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn start(script: &str) -> DatabaseError {
        let mut command = Command::new("sh");
        let command = command.args(["-c", script]);
        IsolatedReader::start_within(command, Duration::from_millis(200)).unwrap_err()
    }

    #[test]
    fn a_process_that_falls_silent_is_ended() {
        let error = start("exec sleep 600");
        assert!(matches!(error, DatabaseError::Stalled { .. }), "{error}");
        assert_eq!(error.code(), Some("database/stalled"));
    }

    #[test]
    fn a_process_without_end_of_output_is_ended_at_its_first_malformed_message() {
        let error = start("exec yes");
        assert!(error.to_string().contains("a malformed message"), "{error}");
    }

    #[test]
    fn a_program_that_is_missing_is_a_failure_of_this_machine() {
        let error = IsolatedReader::start(&mut Command::new("/nonexistent")).unwrap_err();
        assert!(matches!(error, DatabaseError::Start(_)) && error.is_local(), "{error}");
    }
}
