//! What waits for a worker: events, and messages about what it has asked for.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::item::{Answer, Item};
use super::resync::ResyncResult;

/// A worker's inbox. Many put in, one takes out; how much may be in it is decided where events come in.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    content: Mutex<Content>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Content {
    items: VecDeque<Item>,
    messages: Vec<WorkerMessage>,
    is_closed: bool,
    /// Whether something was changed since the worker looked.
    is_rung: bool,
    /// Whether the worker has to be woken.
    is_awaited: bool,
}

/// Something that a worker is told besides events.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    /// This account was out of step before the run.
    OutOfStep(u64, Box<str>),
    /// What was found out about the key of this account.
    Found(u64, Arc<Answer>),
    /// What became of the repository of this account.
    ResyncResult(u64, ResyncResult),
    /// Nobody waits any longer: what can be handed over is, and what cannot is left.
    LastCall,
}

/// How long a worker waits for something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitTimeout {
    None,
    For(Duration),
    Endless,
}

impl Inbox {
    /// Puts these events in, in their order.
    pub(super) fn put(&self, items: &mut Vec<Item>) {
        if !items.is_empty() {
            self.change(|content| content.items.extend(items.drain(..)));
        }
    }

    /// Puts a message in.
    pub(super) fn post(&self, message: WorkerMessage) {
        self.change(|content| content.messages.push(message));
    }

    /// No more events will come.
    pub(super) fn close(&self) {
        self.change(|content| content.is_closed = true);
    }

    /// Takes everything there is, if need be when there is something. Whether no more events will come.
    pub(super) fn take(
        &self,
        items: &mut VecDeque<Item>,
        messages: &mut Vec<WorkerMessage>,
        patience: WaitTimeout,
    ) -> bool {
        let mut content = self.lock();
        if patience != WaitTimeout::None && !content.is_rung {
            content = self.wait(content, patience);
        }
        content.is_rung = false;
        items.append(&mut content.items);
        messages.append(&mut content.messages);
        content.is_closed
    }

    /// Waits once; who is woken for nothing looks again.
    fn wait<'c>(
        &self,
        mut content: MutexGuard<'c, Content>,
        patience: WaitTimeout,
    ) -> MutexGuard<'c, Content> {
        content.is_awaited = true;
        let mut content = match patience {
            WaitTimeout::For(time) => {
                let waited = self.bell.wait_timeout(content, time);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            _ => self.bell.wait(content).unwrap_or_else(PoisonError::into_inner),
        };
        content.is_awaited = false;
        content
    }

    fn change(&self, change: impl FnOnce(&mut Content)) {
        let mut content = self.lock();
        change(&mut content);
        content.is_rung = true;
        let is_awaited = content.is_awaited;
        drop(content);
        if is_awaited {
            self.bell.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
