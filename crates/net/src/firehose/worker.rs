//! A worker's thread: it takes what there is, settles it, and waits when there is nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use verify::sync::ChainState;

use super::ack::Books;
use super::handler::Handler;
use super::inbox::{Inbox, Letter, Patience};
use super::run::RunError;
use super::share::Share;
use super::waiting::For;

/// Works until no more events come and none wait, or the run's fate is sealed.
pub(super) fn work<H: Handler, S: ChainState>(mut share: Share<H, S>, inbox: &Inbox)
where
    S::Error: std::error::Error + Send + Sync + 'static,
{
    let books = Arc::clone(&share.counter.books);
    let _guard = Guard(&books);
    if let Err(error) = work_on(&mut share, inbox) {
        books.fate.seal(RunError::State(Box::new(error)));
    }
}

fn work_on<H: Handler, S: ChainState>(
    share: &mut Share<H, S>,
    inbox: &Inbox,
) -> Result<(), S::Error> {
    let (mut letters, mut is_last_call, mut looked) = (Vec::new(), false, Instant::now());
    while !share.counter.books.fate.is_sealed() {
        let patience = patience(share);
        let is_closed = inbox.take(&mut share.ready, &mut letters, patience);
        for letter in letters.drain(..) {
            is_last_call |= matches!(letter, Letter::LastCall);
            share.read(letter)?;
        }
        if looked.elapsed() >= TICK {
            looked = Instant::now();
            share.let_go_of_overdue(looked);
        }
        if is_closed && !share.is_closing {
            share.close();
        }
        let was_busy = share.step()?;
        share.counter.counters.waits(share.number, share.waiting.weights());
        let is_done = is_closed && !was_busy && share.ready.is_empty();
        if is_done && (is_last_call || share.waiting.count(For::Key) == 0) {
            break;
        }
    }
    share.counter.books.leave(share.waiting.len());
    Ok(())
}

fn patience<H, S>(share: &Share<H, S>) -> Patience {
    if !share.ready.is_empty() {
        Patience::None
    } else if share.waiting.count(For::Repository) > 0 {
        Patience::For(TICK)
    } else {
        Patience::Endless
    }
}

/// Tells of a panic of the handler, or of ours.
struct Guard<'b>(&'b Books);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fate.seal(RunError::Panicked);
        }
    }
}

/// How often a worker looks who has waited for too long.
const TICK: Duration = Duration::from_millis(250);
