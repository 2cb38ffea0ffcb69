//! Work on several threads, with the results in the order of the items.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::failure::Failure;

/// Calls a thread's function with every item, and `take` with the results in the order of the items. Items are drawn
/// as threads become free, and none far ahead of the results taken, so that few results wait.
///
/// # Errors
/// The first of `take`, which ends the work.
pub fn run<T, R: Send, W: FnMut(T) -> R>(
    items: impl Iterator<Item = T> + Send,
    threads: NonZeroUsize,
    worker: impl Fn() -> W + Sync,
    mut take: impl FnMut(R) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let queue = Queue::new(items, WINDOW * threads.get());
    thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..threads.get() {
            let sender = sender.clone();
            let queue = &queue;
            let worker = &worker;
            scope.spawn(move || work_off(queue, worker(), &sender));
        }
        drop(sender);
        // However this ends, the threads do.
        let _end = EndOnDrop(&queue);
        let (mut waiting, mut next) = (BTreeMap::new(), 0);
        for (number, result) in results {
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&next) {
                take(result)?;
                next += 1;
                queue.taken(next);
            }
        }
        Ok(())
    })
}

/// Works on items until there are no more.
fn work_off<T, R>(
    queue: &Queue<impl Iterator<Item = T>>,
    mut work: impl FnMut(T) -> R,
    sender: &Sender<(usize, R)>,
) {
    // After a panic no result comes, for which the others would wait.
    let _end = EndOnPanic(queue);
    while let Some((number, item)) = queue.next() {
        if sender.send((number, work(item))).is_err() {
            return;
        }
    }
}

/// Items with their numbers.
struct Queue<I> {
    /// With the number of the next one. Held while an item is drawn, which may take long.
    items: Mutex<(usize, I)>,
    state: Mutex<QueueState>,
    moved: Condvar,
    window: usize,
}

struct QueueState {
    taken: usize,
    is_over: bool,
}

impl<I: Iterator> Queue<I> {
    fn new(items: I, window: usize) -> Self {
        let state = QueueState { taken: 0, is_over: false };
        Self {
            items: Mutex::new((0, items)),
            state: Mutex::new(state),
            moved: Condvar::new(),
            window,
        }
    }

    /// The next item; waits while too many results before it are not taken.
    fn next(&self) -> Option<(usize, I::Item)> {
        let mut items = lock(&self.items);
        let (number, items) = &mut *items;
        if !self.has_room(*number) {
            return None;
        }
        let Some(item) = items.next() else {
            self.end();
            return None;
        };
        *number += 1;
        Some((*number - 1, item))
    }

    /// Waits until the item of this number may be drawn; whether the work goes on.
    fn has_room(&self, number: usize) -> bool {
        let mut state = lock(&self.state);
        while !state.is_over && number - state.taken >= self.window {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.is_over
    }
}

impl<I> Queue<I> {
    fn taken(&self, count: usize) {
        lock(&self.state).taken = count;
        self.moved.notify_all();
    }

    fn end(&self) {
        lock(&self.state).is_over = true;
        self.moved.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a queue when the thread that takes results stops.
struct EndOnDrop<'q, I>(&'q Queue<I>);

impl<I> Drop for EndOnDrop<'_, I> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Ends a queue when a thread that works panics.
struct EndOnPanic<'q, I>(&'q Queue<I>);

impl<I> Drop for EndOnPanic<'_, I> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end();
        }
    }
}

/// Items that may be given out per thread before the result of the first of them is taken.
const WINDOW: usize = 4;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    use super::*;

    const THREADS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

    #[test]
    fn results_are_in_the_order_of_the_items_and_few_are_drawn_ahead() {
        let (drawn, mut taken) = (AtomicUsize::new(0), Vec::new());
        let items = (0..200).inspect(|_| {
            drawn.fetch_add(1, SeqCst);
        });
        let worker = || {
            |item: u64| {
                thread::sleep(Duration::from_micros(item * 7_919 % 300));
                item
            }
        };
        let take = |item| {
            taken.push(item);
            assert!(drawn.load(SeqCst) <= taken.len() + WINDOW * THREADS.get());
            Ok(())
        };
        run(items, THREADS, worker, take).unwrap();
        assert_eq!(taken, Vec::from_iter(0..200));
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_ends_an_endless_sequence() {
        let worker = || |item: u64| assert!(item < 50, "the item {item}");
        let _ = run(0.., THREADS, worker, Ok);
    }

    #[test]
    fn a_failure_of_the_taker_ends_an_endless_sequence() {
        let take = |item| if item < 50 { Ok(()) } else { Err(Failure::Usage("enough".to_owned())) };
        let failure = run(0.., THREADS, || |item: u64| item, take).unwrap_err();
        assert_eq!(failure.message(), Some("enough"));
    }
}
