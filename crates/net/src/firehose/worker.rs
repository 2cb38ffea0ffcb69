//! A worker's thread: it takes what there is, settles it, and waits when there is nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use verify::sync::ChainState;

use super::ack::RunState;
use super::handler::Handler;
use super::inbox::{Inbox, WaitTimeout, WorkerMessage};
use super::partition::Partition;
use super::run::RunError;
use super::waiting::For;

/// Works until no more events come and none wait, or the run's error is sealed.
pub(super) fn work<H: Handler, S: ChainState>(mut partition: Partition<H, S>, inbox: &Inbox)
where
    S::Error: std::error::Error + Send + Sync + 'static,
{
    let run_state = Arc::clone(&partition.counter.run_state);
    let _guard = Guard(&run_state);
    if let Err(error) = work_on(&mut partition, inbox) {
        run_state.error.set(RunError::State(Box::new(error)));
    }
}

fn work_on<H: Handler, S: ChainState>(
    partition: &mut Partition<H, S>,
    inbox: &Inbox,
) -> Result<(), S::Error> {
    let (mut messages, mut is_last_call, mut looked) = (Vec::new(), false, Instant::now());
    while !partition.counter.run_state.error.is_set() {
        let patience = patience(partition);
        let is_closed = inbox.take(&mut partition.ready, &mut messages, patience);
        for message in messages.drain(..) {
            is_last_call |= matches!(message, WorkerMessage::LastCall);
            partition.read(message)?;
        }
        if looked.elapsed() >= TICK {
            looked = Instant::now();
            partition.let_go_of_overdue(looked);
        }
        if is_closed && !partition.is_closing {
            partition.close();
        }
        let was_busy = partition.step()?;
        partition.counter.counters.waits(partition.number, partition.waiting.weights());
        let is_done = is_closed && !was_busy && partition.ready.is_empty();
        if is_done && (is_last_call || partition.waiting.count(For::Key) == 0) {
            break;
        }
    }
    partition.counter.run_state.leave(partition.waiting.len());
    Ok(())
}

fn patience<H, S>(partition: &Partition<H, S>) -> WaitTimeout {
    if !partition.ready.is_empty() {
        WaitTimeout::None
    } else if partition.waiting.count(For::Repository) > 0 {
        WaitTimeout::For(TICK)
    } else {
        WaitTimeout::Endless
    }
}

/// Tells of a panic of the handler, or of ours.
struct Guard<'b>(&'b RunState);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.error.set(RunError::Panicked);
        }
    }
}

/// How often a worker looks who has waited for too long.
const TICK: Duration = Duration::from_millis(250);
