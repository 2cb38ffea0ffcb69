//! The thread that writes lines, in batches: the lines that arrive during one write are the next batch.
//! A line is acked once it is written and its reader has taken it: see `taken`.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::crash_point;
use net::firehose::StopSignal;
use tokio::sync::oneshot;

use super::stdout::LineStdout;
use super::taken::{Acknowledge, LineOutput, WrittenLines};
use crate::failure::Failure;

/// Sends lines to the writer, from any number of threads.
#[derive(Debug)]
pub struct LineSender<A>(Arc<Shared<A>>);

/// The writing thread.
pub struct LineWriter<A> {
    shared: Arc<Shared<A>>,
    /// The result of the thread.
    ended: oneshot::Receiver<io::Result<()>>,
}

#[derive(Debug)]
struct Shared<A> {
    batch: Mutex<Batch<A>>,
    changed: Condvar,
    /// Notified when the queued lines were taken.
    taken: Condvar,
    stop: StopSignal,
}

/// Lines that are passed on together, with their acks. Its memory is used again.
#[derive(Debug)]
pub struct Lines<A> {
    bytes: Vec<u8>,
    /// The ends of the lines in `bytes`, with their acks.
    acks: Vec<(usize, A)>,
}

#[derive(Debug)]
struct Batch<A> {
    lines: Lines<A>,
    /// Acknowledgements of lines that will not be written.
    held: Vec<A>,
    is_finished: bool,
    has_failed: bool,
}

impl<A> Default for Lines<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A> Lines<A> {
    /// No lines.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), acks: Vec::new() }
    }

    /// Appends a line, which ends with a line feed, and its ack.
    pub fn add(&mut self, line: &[u8], ack: A) {
        self.bytes.extend_from_slice(line);
        self.acks.push((self.bytes.len(), ack));
    }

    /// The number of lines.
    pub(super) fn len(&self) -> usize {
        self.acks.len()
    }

    /// The size in bytes.
    pub(super) fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Moves all lines of `others` to the end. Memory moves instead of bytes where it can.
    fn append(&mut self, others: &mut Self) {
        if self.bytes.is_empty() {
            return std::mem::swap(self, others);
        }
        let start = self.bytes.len();
        self.bytes.append(&mut others.bytes);
        self.acks.extend(others.acks.drain(..).map(|(end, ack)| (start + end, ack)));
    }

    /// Drops the lines, and the memory of many.
    fn clear(&mut self) {
        self.bytes.clear();
        self.acks.clear();
        self.bytes.shrink_to(RETAINED_BYTES);
    }
}

impl<A: Acknowledge> LineSender<A> {
    /// Adds a line, which ends with a line feed, and its ack.
    pub(super) fn push(&self, line: &[u8], ack: A) {
        let mut batch = self.0.lock();
        if batch.has_failed {
            return;
        }
        let is_first = batch.lines.bytes.is_empty();
        batch.lines.add(line, ack);
        drop(batch);
        if is_first {
            self.0.changed.notify_one();
        }
    }

    /// Adds lines, and leaves `lines` empty. Waits while too many bytes are queued, unless the run stops.
    pub fn push_all(&self, lines: &mut Lines<A>) {
        if lines.len() == 0 {
            return;
        }
        let mut batch = self.0.wait_for_room();
        let is_first = batch.lines.bytes.is_empty();
        if !batch.has_failed {
            batch.lines.append(lines);
        }
        drop(batch);
        lines.clear();
        if is_first {
            self.0.changed.notify_one();
        }
    }

    /// Adds a line that others follow before the ack. Waits while too many bytes are queued; `false` if that
    /// is no use, as the run stops or the writer has failed.
    pub(super) fn push_piece(&self, line: &[u8]) -> bool {
        let mut batch = self.0.wait_for_room();
        if self.0.is_ending(&batch) {
            return false;
        }
        batch.lines.bytes.extend_from_slice(line);
        drop(batch);
        self.0.changed.notify_one();
        true
    }

    /// Keeps the ack of lines that will not be written: they are not acknowledged.
    pub(super) fn hold(&self, ack: A) {
        self.0.lock().held.push(ack);
    }
}

impl<A: Acknowledge> LineWriter<A> {
    /// A writer to standard output. If it fails, the run is stopped.
    pub fn stdout(stop: &StopSignal) -> Result<(LineSender<A>, Self), Failure> {
        let started = LineStdout::open().and_then(|out| Self::start(out, stop));
        started.map_err(|error| Failure::Local(format!("standard output: {error}")))
    }

    /// A writer to `out`. If it fails, the run is stopped, and unwritten lines are not acked.
    fn start(
        out: impl LineOutput + Send + 'static,
        stop: &StopSignal,
    ) -> io::Result<(LineSender<A>, Self)> {
        let (batch, changed, taken) = Default::default();
        let shared = Arc::new(Shared { batch, changed, taken, stop: stop.clone() });
        let of_thread = Arc::clone(&shared);
        let (end, ended) = oneshot::channel();
        let run = move || {
            let result = write_all(&of_thread, out);
            if result.is_err() {
                of_thread.lock().has_failed = true;
                of_thread.stop.request();
            }
            // If the output was blocked at the end, the receiver is gone.
            let _ = end.send(result);
        };
        std::thread::Builder::new().name("lines".to_owned()).spawn(run)?;
        Ok((LineSender(Arc::clone(&shared)), Self { shared, ended }))
    }

    /// Waits until all lines are written, and a moment for the reader to take them, up to `limit`. A thread
    /// whose output is blocked is left behind; its lines are not acked.
    pub async fn finish(self, limit: Duration) -> io::Result<()> {
        self.shared.lock().is_finished = true;
        self.shared.changed.notify_one();
        match tokio::time::timeout(limit, self.ended).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(io::Error::other("the writing thread panicked")),
            Err(_) => Ok(()),
        }
    }
}

fn write_all<A: Acknowledge>(shared: &Shared<A>, mut out: impl LineOutput) -> io::Result<()> {
    let (mut lines, mut written) = (Lines::new(), WrittenLines::new());
    while shared.take(&mut lines, written.poll_interval()) {
        write_lines(&mut out, &mut written, &mut lines)?;
    }
    // `finish` bounds the wait for this thread.
    while !written.is_empty() {
        std::thread::sleep(written.poll_interval());
        written.acknowledge(out.unread()?, Instant::now());
    }
    Ok(())
}

/// Writes the lines, if there are any, and acknowledges the lines that the reader has taken.
fn write_lines<A: Acknowledge>(
    out: &mut impl LineOutput,
    written: &mut WrittenLines<A>,
    lines: &mut Lines<A>,
) -> io::Result<()> {
    if !lines.bytes.is_empty() {
        crash_point("lines/taken");
        out.write_all(&lines.bytes)?;
        out.flush()?;
        crash_point("lines/written");
        written.add(lines.bytes.len(), lines.acks.drain(..));
        lines.clear();
    }
    written.acknowledge(out.unread()?, Instant::now());
    Ok(())
}

impl<A> Shared<A> {
    /// Waits for lines, up to `timeout`, and takes all of them; `lines` must be empty. `false` if there are none and none
    /// will come.
    fn take(&self, lines: &mut Lines<A>, timeout: Duration) -> bool {
        let is_idle = |batch: &mut Batch<A>| batch.lines.bytes.is_empty() && !batch.is_finished;
        let batch = self.changed.wait_timeout_while(self.lock(), timeout, is_idle);
        let mut batch = batch.unwrap_or_else(PoisonError::into_inner).0;
        std::mem::swap(&mut batch.lines, lines);
        if lines.bytes.len() >= MAX_QUEUED_BYTES {
            self.taken.notify_all();
        }
        !lines.bytes.is_empty() || !batch.is_finished
    }

    /// The batch, once few enough bytes are queued or the run ends.
    fn wait_for_room(&self) -> MutexGuard<'_, Batch<A>> {
        let mut batch = self.lock();
        while batch.lines.bytes.len() >= MAX_QUEUED_BYTES && !self.is_ending(&batch) {
            let waited = self.taken.wait_timeout(batch, STOP_POLL_INTERVAL);
            batch = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        batch
    }

    /// Whether a line that cannot be queued now need not be written.
    fn is_ending(&self, batch: &Batch<A>) -> bool {
        batch.has_failed || self.stop.is_requested()
    }

    fn lock(&self) -> MutexGuard<'_, Batch<A>> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A> Default for Batch<A> {
    fn default() -> Self {
        Self { lines: Lines::new(), held: Vec::new(), is_finished: false, has_failed: false }
    }
}

/// Size of the queued lines at which workers wait, in bytes.
const MAX_QUEUED_BYTES: usize = 4 << 20;
/// Interval at which a waiting worker looks for a stop.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The failure of a run whose lines cannot be written.
pub fn failure(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Local(
            "the reader of standard output closed it: the next run repeats the lines that it may not \
             have taken"
                .to_owned(),
        ),
        _ => error.into(),
    }
}

/// Capacity kept of a large batch for the next one, in bytes.
const RETAINED_BYTES: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Sends its number when it is done.
    struct NumberedAck(u32, Sender<u32>);

    impl Acknowledge for NumberedAck {
        fn done(self) {
            self.1.send(self.0).unwrap();
        }
    }

    /// An output that waits for permission to write, and records the flushed bytes.
    struct StepOutput {
        allowed: Receiver<io::Result<()>>,
        written: Vec<u8>,
        flushed: Flushed,
    }

    /// The flushed bytes.
    type Flushed = Arc<Mutex<Vec<u8>>>;

    impl StepOutput {
        /// An output, the permissions of its writes, and its flushed bytes.
        fn new() -> (Self, Sender<io::Result<()>>, Flushed) {
            let ((allow, allowed), flushed) = (channel(), Arc::default());
            let out = Self { allowed, written: Vec::new(), flushed: Arc::clone(&flushed) };
            (out, allow, flushed)
        }
    }

    impl LineOutput for StepOutput {
        fn unread(&self) -> io::Result<Option<u64>> {
            Ok(None)
        }
    }

    impl Write for StepOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.allowed.recv().expect("a permission")?;
            self.written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.flushed.lock().unwrap().append(&mut self.written);
            Ok(())
        }
    }

    #[tokio::test]
    async fn lines_that_arrive_during_a_write_are_one_batch_and_are_acked_once_flushed() {
        let (out, allow, flushed) = StepOutput::new();
        let (lines, writer) = LineWriter::start(out, &StopSignal::new()).unwrap();
        let (done, acked) = channel();
        (0..100).for_each(|number| lines.push(b"x\n", NumberedAck(number, done.clone())));
        assert!(acked.try_recv().is_err(), "nothing is written yet");
        // At most two writes: the lines that the thread took first, and all others.
        allow.send(Ok(())).unwrap();
        allow.send(Ok(())).unwrap();
        writer.finish(LONG).await.unwrap();
        drop(done);
        assert_eq!(acked.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        assert_eq!(*flushed.lock().unwrap(), b"x\n".repeat(100));
    }

    /// Lines of the numbers, with their acks.
    fn collected(
        numbers: std::ops::Range<u32>,
        done: &Sender<u32>,
        text: &[u8],
    ) -> Lines<NumberedAck> {
        let mut lines = Lines::new();
        numbers.for_each(|number| lines.add(text, NumberedAck(number, done.clone())));
        lines
    }

    #[tokio::test]
    async fn collected_lines_are_written_in_order_and_each_is_acked() {
        let (out, allow, flushed) = StepOutput::new();
        let (lines, writer) = LineWriter::start(out, &StopSignal::new()).unwrap();
        let (done, acked) = channel();
        for (numbers, text) in [(0..10, b"a\n"), (10..30, b"b\n"), (30..31, b"c\n")] {
            let mut batch = collected(numbers, &done, text);
            lines.push_all(&mut batch);
            assert_eq!((batch.len(), batch.byte_len()), (0, 0));
        }
        (0..3).for_each(|_| drop(allow.send(Ok(()))));
        writer.finish(LONG).await.unwrap();
        drop(done);
        assert_eq!(acked.iter().collect::<Vec<_>>(), (0..31).collect::<Vec<_>>());
        let expected = [&b"a\n".repeat(10)[..], &b"b\n".repeat(20), b"c\n"].concat();
        assert_eq!(*flushed.lock().unwrap(), expected);
    }

    #[tokio::test]
    async fn collected_lines_wait_while_too_many_bytes_are_queued_and_none_is_lost_by_a_stop() {
        let (out, allow, flushed) = StepOutput::new();
        let stop = StopSignal::new();
        let (lines, writer) = LineWriter::start(out, &stop).unwrap();
        let ((pushed, pushes), (done, acked)) = (channel(), channel());
        let text = vec![b'x'; MAX_QUEUED_BYTES / 4];
        let producer = std::thread::spawn(move || {
            for number in 0..20 {
                lines.push_all(&mut collected(number..number + 1, &done, &text));
                pushed.send(()).unwrap();
            }
        });
        let before = pushes.iter().take(4).count();
        std::thread::sleep(STOP_POLL_INTERVAL);
        let queued = before + pushes.try_iter().count();
        assert!((4..=8).contains(&queued), "{queued}");
        stop.request();
        producer.join().unwrap();
        (0..20).for_each(|_| drop(allow.send(Ok(()))));
        writer.finish(LONG).await.unwrap();
        assert_eq!(acked.iter().collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
        assert_eq!(flushed.lock().unwrap().len(), 5 * MAX_QUEUED_BYTES);
    }

    #[tokio::test]
    async fn an_output_that_blocks_is_left_behind() {
        let (out, allow, _) = StepOutput::new();
        let (lines, writer) = LineWriter::start(out, &StopSignal::new()).unwrap();
        let (done, acked) = channel();
        lines.push(b"x\n", NumberedAck(0, done));
        writer.finish(Duration::from_millis(10)).await.unwrap();
        assert!(acked.try_recv().is_err(), "a line that is not written is not acked");
        drop(allow);
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn after_a_failed_write_neither_its_lines_nor_later_ones_are_acked() {
        let (out, allow, _) = StepOutput::new();
        let stop = StopSignal::new();
        let (lines, writer) = LineWriter::start(out, &stop).unwrap();
        let (done, acked) = channel();
        lines.push(b"x\n", NumberedAck(0, done.clone()));
        allow.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        while !stop.is_requested() {
            std::thread::yield_now();
        }
        lines.push(b"y\n", NumberedAck(1, done.clone()));
        assert_eq!(writer.finish(LONG).await.unwrap_err().kind(), io::ErrorKind::StorageFull);
        drop((done, lines));
        assert_eq!(acked.iter().count(), 0);
    }

    #[tokio::test]
    async fn pieces_wait_while_too_many_bytes_are_queued_until_the_run_stops() {
        let (out, allow, _) = StepOutput::new();
        let stop = StopSignal::new();
        let (lines, writer) = LineWriter::<NumberedAck>::start(out, &stop).unwrap();
        let (pushed, pushes) = channel();
        let producer = std::thread::spawn(move || {
            let piece = vec![b'x'; MAX_QUEUED_BYTES / 4];
            while lines.push_piece(&piece) {
                pushed.send(()).unwrap();
            }
        });
        // The writer has taken some pieces, and four more are queued.
        let before = pushes.iter().take(4).count();
        std::thread::sleep(STOP_POLL_INTERVAL);
        let queued = before + pushes.try_iter().count();
        assert!((4..=8).contains(&queued), "{queued}");
        stop.request();
        producer.join().unwrap();
        (0..8).for_each(|_| drop(allow.send(Ok(()))));
        writer.finish(LONG).await.unwrap();
    }
}
