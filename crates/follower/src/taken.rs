//! Written lines whose reader may not have taken them: their acknowledgements are held back.
//!
//! Written lines may still be in the pipe, and lines that were taken from it in a buffer of the reader. If the reader
//! ends, both are gone, so these lines must be delivered again:
//!
//! ```text
//!                 taken ┐              ┌ written
//!   acknowledged ┊ 64 KiB, in a buffer ┊ unread, in the pipe
//! ```
//!
//! A reader that has emptied the pipe and waits for more has handled its lines, after a moment.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use base::crash_point;
use net::firehose::Ack;

/// The acknowledgement of a line.
pub trait Acknowledge: Send + 'static {
    /// The line is written, and taken by its reader if there is one.
    fn done(self);
}

impl Acknowledge for Ack {
    fn done(self) {
        Ack::done(self);
    }
}

/// Where lines are written.
pub(super) trait LineOutput: Write {
    /// Number of bytes that the reader has not taken; `None` for an output without a reader, as a file.
    ///
    /// # Errors
    /// If the reader has closed it.
    fn unread(&self) -> io::Result<Option<u64>>;
}

/// Lines that are written and not acknowledged.
#[derive(Debug)]
pub(super) struct WrittenLines<A> {
    /// The end of every line, in bytes from the start of the output.
    lines: VecDeque<(u64, A)>,
    written: u64,
    /// Since when the pipe is empty.
    empty_since: Option<Instant>,
}

impl<A: Acknowledge> WrittenLines<A> {
    pub(super) fn new() -> Self {
        Self { lines: VecDeque::new(), written: 0, empty_since: None }
    }

    /// Adds bytes that were written, with the lines that end in them: offset of the end, and ack.
    pub(super) fn add(&mut self, bytes: usize, lines: impl IntoIterator<Item = (usize, A)>) {
        let start = self.written;
        self.lines.extend(lines.into_iter().map(|(end, ack)| (start + end as u64, ack)));
        self.written += bytes as u64;
        self.empty_since = None;
    }

    /// Acknowledges the lines that were taken, by the [unread](LineOutput::unread) bytes.
    pub(super) fn acknowledge(&mut self, unread: Option<u64>, now: Instant) {
        let handled = self.handled(unread, now);
        let count = self.lines.partition_point(|(end, _)| *end <= handled);
        self.lines.drain(..count).for_each(|(_, ack)| ack.done());
        if count > 0 {
            crash_point("lines/acknowledged");
        }
    }

    /// Number of bytes that need not be delivered again.
    fn handled(&mut self, unread: Option<u64>, now: Instant) -> u64 {
        let Some(unread) = unread else { return self.written };
        let empty_since = *self.empty_since.get_or_insert(now);
        if unread > 0 {
            self.empty_since = None;
        } else if now.duration_since(empty_since) >= SETTLED_AFTER {
            return self.written;
        }
        self.written.saturating_sub(unread).saturating_sub(READER_BUFFER_BYTES)
    }

    /// The time after which to look at the output again.
    pub(super) fn poll_interval(&self) -> Duration {
        if self.lines.is_empty() { IDLE_POLL_INTERVAL } else { POLL_INTERVAL }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Bytes that a reader may have taken without having handled them.
const READER_BUFFER_BYTES: u64 = 64 << 10;
/// How long a pipe must be empty until its reader has handled everything.
const SETTLED_AFTER: Duration = Duration::from_millis(250);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Interval at which an idle run looks whether the reader has ended.
const IDLE_POLL_INTERVAL: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    struct NumberedAck(usize, Arc<Mutex<Vec<usize>>>);

    impl Acknowledge for NumberedAck {
        fn done(self) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    /// Ten lines of 32 KiB, and the numbers of the acknowledged ones.
    fn ten_lines() -> (WrittenLines<NumberedAck>, Arc<Mutex<Vec<usize>>>) {
        let (mut lines, acked) = (WrittenLines::new(), Arc::default());
        let ack = |number| ((number + 1) * LEN, NumberedAck(number, Arc::clone(&acked)));
        lines.add(10 * LEN, (0..10).map(ack));
        (lines, acked)
    }

    const LEN: usize = 32 << 10;

    #[test]
    fn lines_in_the_pipe_or_in_a_buffer_of_the_reader_are_not_acknowledged() {
        let (mut lines, acked) = ten_lines();
        let now = Instant::now();
        lines.acknowledge(Some(10 * LEN as u64), now);
        assert!(acked.lock().unwrap().is_empty());
        lines.acknowledge(Some(6 * LEN as u64 + 1), now + Duration::from_secs(9));
        assert_eq!(*acked.lock().unwrap(), [0]);
        lines.acknowledge(Some(0), now + Duration::from_secs(10));
        assert_eq!(acked.lock().unwrap().len(), 8, "a buffer of 64 KiB may be full");
    }

    #[test]
    fn a_reader_that_has_emptied_the_pipe_for_a_moment_has_taken_all() {
        let (mut lines, acked) = ten_lines();
        let now = Instant::now();
        lines.acknowledge(Some(0), now);
        lines.acknowledge(Some(0), now + SETTLED_AFTER / 2);
        assert_eq!(acked.lock().unwrap().len(), 8);
        lines.acknowledge(Some(0), now + SETTLED_AFTER);
        assert_eq!(acked.lock().unwrap().len(), 10);
        assert!(lines.is_empty());
    }

    #[test]
    fn a_file_has_taken_what_is_written() {
        let (mut lines, acked) = ten_lines();
        lines.acknowledge(None, Instant::now());
        assert_eq!(acked.lock().unwrap().len(), 10);
    }
}
