//! How do lines get out? In batches: whatever came while the last batch was written is the next one.
//! An event is acknowledged when its line was written and flushed, and not before.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use wireproof::net::firehose::Ack;

/// What can be told that its line is out.
pub(super) trait Acknowledge: Send + 'static {
    /// It is.
    fn done(self);
}

impl Acknowledge for Ack {
    fn done(self) {
        Ack::done(self);
    }
}

/// The way out, for any number of threads.
#[derive(Debug)]
pub(super) struct Lines<A>(Arc<Shared<A>>);

/// The thread that writes.
pub(super) struct LinesWriter<A> {
    shared: Arc<Shared<A>>,
    thread: JoinHandle<io::Result<()>>,
}

#[derive(Debug)]
struct Shared<A> {
    batch: Mutex<Batch<A>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Batch<A> {
    bytes: Vec<u8>,
    acks: Vec<A>,
    is_ended: bool,
    has_failed: bool,
}

impl<A: Acknowledge> Lines<A> {
    /// Writes to `out` on a thread of its own. If that fails, `on_failure` is called, and whatever is
    /// not out is not acknowledged.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> io::Result<(Self, LinesWriter<A>)> {
        let shared = Arc::new(Shared { batch: Mutex::default(), changed: Condvar::new() });
        let writing = Arc::clone(&shared);
        let run = move || {
            let result = write_all(&writing, out);
            if result.is_err() {
                writing.lock().has_failed = true;
                on_failure();
            }
            result
        };
        let thread = std::thread::Builder::new().name("lines".to_owned()).spawn(run)?;
        Ok((Self(Arc::clone(&shared)), LinesWriter { shared, thread }))
    }

    /// A line, which ends with a line feed, and whom to tell when it is out.
    pub(super) fn push(&self, line: &[u8], ack: A) {
        let mut batch = self.0.lock();
        if batch.has_failed {
            return;
        }
        batch.bytes.extend_from_slice(line);
        batch.acks.push(ack);
        let is_first = batch.acks.len() == 1;
        drop(batch);
        if is_first {
            self.0.changed.notify_one();
        }
    }
}

impl<A> LinesWriter<A> {
    /// Waits until everything is out.
    pub(super) fn finish(self) -> io::Result<()> {
        self.shared.lock().is_ended = true;
        self.shared.changed.notify_one();
        self.thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that writes panicked")))
    }
}

fn write_all<A: Acknowledge>(shared: &Shared<A>, mut out: impl Write) -> io::Result<()> {
    let (mut bytes, mut acks) = (Vec::new(), Vec::new());
    while shared.take(&mut bytes, &mut acks) {
        out.write_all(&bytes)?;
        out.flush()?;
        acks.drain(..).for_each(A::done);
        bytes.clear();
        bytes.shrink_to(KEPT_BYTES);
    }
    Ok(())
}

impl<A> Shared<A> {
    /// Waits for lines, and takes all that there are. There are none if it has ended.
    fn take(&self, bytes: &mut Vec<u8>, acks: &mut Vec<A>) -> bool {
        let is_idle = |batch: &mut Batch<A>| batch.acks.is_empty() && !batch.is_ended;
        let batch = self.changed.wait_while(self.lock(), is_idle);
        let mut batch = batch.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut batch.bytes, bytes);
        std::mem::swap(&mut batch.acks, acks);
        !acks.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Batch<A>> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A> Default for Batch<A> {
    fn default() -> Self {
        Self { bytes: Vec::new(), acks: Vec::new(), is_ended: false, has_failed: false }
    }
}

/// What of a large batch's memory is kept for the next one.
const KEPT_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Tells its number when it is done.
    struct Told(u32, Sender<u32>);

    impl Acknowledge for Told {
        fn done(self) {
            self.1.send(self.0).unwrap();
        }
    }

    /// A way out that takes what it is allowed to take, and notes what was flushed.
    struct Gate {
        allowed: Receiver<io::Result<()>>,
        written: Vec<u8>,
        flushed: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.allowed.recv().expect("an answer")?;
            self.written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.flushed.lock().unwrap().append(&mut self.written);
            Ok(())
        }
    }

    #[test]
    fn what_came_meanwhile_is_one_batch_and_is_acknowledged_when_it_is_out() {
        let (allow, allowed) = channel();
        let flushed = Arc::new(Mutex::new(Vec::new()));
        let gate = Gate { allowed, written: Vec::new(), flushed: Arc::clone(&flushed) };
        let (lines, writer) = Lines::start(gate, || panic!("nothing fails")).unwrap();
        let (tell, told) = channel();
        (0..100).for_each(|number| lines.push(b"x\n", Told(number, tell.clone())));
        assert!(told.try_recv().is_err(), "nothing is out yet");
        // At most two writes: what the thread took first, and all the others.
        allow.send(Ok(())).unwrap();
        allow.send(Ok(())).unwrap();
        writer.finish().unwrap();
        drop(tell);
        assert_eq!(told.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        assert_eq!(*flushed.lock().unwrap(), b"x\n".repeat(100));
    }

    #[test]
    fn what_could_not_be_written_is_not_acknowledged_nor_what_comes_after_it() {
        let (allow, allowed) = channel();
        let gate = Gate { allowed, written: Vec::new(), flushed: Arc::default() };
        let has_failed = Arc::new(AtomicBool::new(false));
        let failed = Arc::clone(&has_failed);
        let (lines, writer) = Lines::start(gate, move || failed.store(true, Relaxed)).unwrap();
        let (tell, told) = channel();
        lines.push(b"x\n", Told(0, tell.clone()));
        allow.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        while !has_failed.load(Relaxed) {
            std::thread::yield_now();
        }
        lines.push(b"y\n", Told(1, tell.clone()));
        assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        drop((tell, lines));
        assert_eq!(told.iter().count(), 0);
    }
}
