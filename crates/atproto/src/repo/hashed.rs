//! Hashed batches of an archive, in its order: on the thread that reads them, or on several that share the work.
//!
//! With several threads, a free one takes the next batch from the splitter and hashes it. The reader takes the
//! batches in order; while the one that it needs is being hashed elsewhere, it hashes a later one. So with two
//! threads both are busy, whatever the reader does with a batch.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use codec::car::{self, Block};

use super::archive::{ArchiveEnd, ArchiveSplitter};

/// Blocks whose hashes are right.
#[derive(Clone, Debug, Default)]
pub struct HashedBatch<'a> {
    /// The blocks, none after a wrong hash.
    pub blocks: Vec<Block<'a>>,
    /// The results of the caller's checks of the blocks.
    pub passed: Vec<bool>,
    /// The end of the archive after this batch, or its first fault.
    pub end: Option<ArchiveEnd>,
}

/// Replaces a batch by the next one. After one with an [end](HashedBatch::end) there is no other.
pub type NextBatch<'n, 'a> = &'n mut dyn FnMut(&mut HashedBatch<'a>);

impl<'a> ArchiveSplitter<'a> {
    /// Calls `read` with a source of hashed batches. Blocks go through `check` while their bytes are
    /// cached. An archive from 4 MiB is hashed on up to this number of threads, the caller's among them.
    pub fn with_hashed<T>(
        self,
        threads: NonZeroUsize,
        check: impl Fn(&Block<'a>) -> bool + Sync,
        read: impl FnOnce(NextBatch<'_, 'a>) -> T,
    ) -> T {
        let helpers = if self.len() < SHARED_FROM_BYTES { 0 } else { threads.get() - 1 };
        match helpers {
            0 => {
                let mut splitter = self;
                read(&mut |batch| {
                    batch.split(&mut splitter);
                    batch.hash(&check);
                })
            }
            _ => Shared::new(self, helpers).run(helpers, &check, read),
        }
    }
}

impl<'a> HashedBatch<'a> {
    fn split(&mut self, splitter: &mut ArchiveSplitter<'a>) {
        self.end = splitter.split(&mut self.blocks);
    }

    fn hash(&mut self, check: &impl Fn(&Block<'a>) -> bool) {
        self.passed.clear();
        match car::check_hashes(&mut self.blocks) {
            Ok(()) => self.passed.extend(self.blocks.iter().map(check)),
            Err(fault) => {
                self.end = Some(Err(fault));
                self.blocks.clear();
            }
        }
    }
}

/// An archive that several threads hash.
struct Shared<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
    /// Maximum number of batches between the one that the reader takes next and the one that is split next.
    window: u64,
}

struct State<'a> {
    splitter: ArchiveSplitter<'a>,
    /// Number of the batch that is split next.
    next_split: u64,
    /// Number of the batch that the reader takes next.
    next_taken: u64,
    hashed: BTreeMap<u64, HashedBatch<'a>>,
    /// Batches whose memory is used again.
    spare: Vec<HashedBatch<'a>>,
    /// Whether nothing more is to be split.
    is_over: bool,
    /// Whether a thread has panicked, and with it a batch is lost.
    has_panicked: bool,
}

impl<'a> Shared<'a> {
    fn new(splitter: ArchiveSplitter<'a>, helpers: usize) -> Self {
        let state = State {
            splitter,
            next_split: 0,
            next_taken: 0,
            hashed: BTreeMap::new(),
            spare: Vec::new(),
            is_over: false,
            has_panicked: false,
        };
        let window = WINDOW * (helpers as u64 + 1);
        Self { state: Mutex::new(state), changed: Condvar::new(), window }
    }

    fn run<T>(
        &self,
        helpers: usize,
        check: &(impl Fn(&Block<'a>) -> bool + Sync),
        read: impl FnOnce(NextBatch<'_, 'a>) -> T,
    ) -> T {
        thread::scope(|scope| {
            // Without them the reader hashes all.
            for _ in 0..helpers {
                let helper = thread::Builder::new().name("hashes".to_owned());
                let _ = helper.spawn_scoped(scope, || self.help(check));
            }
            let _end = EndOnDrop(self);
            read(&mut |batch| self.take_next(batch, check))
        })
    }

    /// Hashes batches until all are split.
    fn help(&self, check: &impl Fn(&Block<'a>) -> bool) {
        let _panicked = PanickedOnDrop(self);
        let mut state = self.lock();
        while !state.is_over {
            state = match state.split(self.window) {
                Some((number, batch)) => self.hash(state, number, batch, check),
                None => self.wait(state),
            };
        }
    }

    /// Replaces `batch` by the next one, and hashes later ones until that is there.
    fn take_next(&self, batch: &mut HashedBatch<'a>, check: &impl Fn(&Block<'a>) -> bool) {
        let mut state = self.lock();
        state.spare.push(std::mem::take(batch));
        loop {
            assert!(!state.has_panicked, "a thread that hashes has panicked");
            let number = state.next_taken;
            if let Some(hashed) = state.hashed.remove(&number) {
                state.next_taken += 1;
                self.changed.notify_all();
                *batch = hashed;
                return;
            }
            state = match state.split(self.window) {
                Some((number, batch)) => self.hash(state, number, batch, check),
                None => self.wait(state),
            };
        }
    }

    /// Hashes a batch while the state is unlocked.
    fn hash<'s>(
        &'s self,
        state: MutexGuard<'s, State<'a>>,
        number: u64,
        mut batch: HashedBatch<'a>,
        check: &impl Fn(&Block<'a>) -> bool,
    ) -> MutexGuard<'s, State<'a>> {
        drop(state);
        batch.hash(check);
        let mut state = self.lock();
        state.hashed.insert(number, batch);
        self.changed.notify_all();
        state
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State<'a>>) -> MutexGuard<'s, State<'a>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> State<'a> {
    /// Splits the next batch, if there is one in the window, and returns it with its number.
    fn split(&mut self, window: u64) -> Option<(u64, HashedBatch<'a>)> {
        if self.is_over || self.next_split - self.next_taken >= window {
            return None;
        }
        let mut batch = self.spare.pop().unwrap_or_default();
        batch.split(&mut self.splitter);
        self.is_over = batch.end.is_some();
        self.next_split += 1;
        Some((self.next_split - 1, batch))
    }
}

/// Ends the helpers when the reader has ended.
struct EndOnDrop<'s, 'a>(&'s Shared<'a>);

impl Drop for EndOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

/// Ends the wait of the reader for a batch of a thread that panics.
struct PanickedOnDrop<'s, 'a>(&'s Shared<'a>);

impl Drop for PanickedOnDrop<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().has_panicked = true;
            self.0.changed.notify_all();
        }
    }
}

/// Length in bytes from which threads cost less than they save.
const SHARED_FROM_BYTES: usize = 4 << 20;

/// Batches a thread between reading and splitting: some 300 KiB a batch.
const WINDOW: u64 = 4;

#[cfg(test)]
mod tests {
    use codec::Cid;
    use codec::car::{CarError, Options};
    use codec::cid::Codec;

    use super::*;

    /// An archive over the size from which threads share it: blocks of very different lengths.
    fn archive() -> Vec<u8> {
        let blocks = (0..9_000_u32).map(|number| {
            let len = if number % 500 == 0 { 200_000 } else { number as usize % 600 };
            [&number.to_be_bytes()[..], &vec![number as u8; len]].concat()
        });
        let mut writer = car::Writer::new(Vec::new(), &[]).unwrap();
        blocks.for_each(|block| writer.block(&Cid::of(Codec::Raw, &block), &block).unwrap());
        let archive = writer.into_inner();
        assert!(archive.len() > SHARED_FROM_BYTES);
        archive
    }

    fn is_even(block: &Block<'_>) -> bool {
        block.data[3].is_multiple_of(2)
    }

    /// Offsets and checks of the blocks, and the end.
    type Read = (Vec<(u64, bool)>, Result<(), CarError>);

    fn read(archive: &[u8], threads: usize) -> Read {
        let splitter = ArchiveSplitter::new(archive, &Options::default()).unwrap();
        splitter.with_hashed(NonZeroUsize::new(threads).unwrap(), is_even, |next| {
            let (mut batch, mut read) = (HashedBatch::default(), Vec::new());
            loop {
                next(&mut batch);
                assert_eq!(batch.blocks.len(), batch.passed.len());
                let offsets = batch.blocks.iter().map(|block| block.offset);
                read.extend(offsets.zip(batch.passed.iter().copied()));
                if let Some(end) = batch.end {
                    return (read, end);
                }
            }
        })
    }

    #[test]
    fn batches_come_in_the_order_of_the_archive_whatever_the_number_of_threads() {
        let archive = archive();
        let alone = read(&archive, 1);
        assert_eq!((alone.0.len(), alone.1), (9_000, Ok(())));
        for threads in [2, 3, 8] {
            assert_eq!(read(&archive, threads), alone, "{threads} threads");
        }
    }

    #[test]
    fn the_first_fault_is_found_whatever_the_number_of_threads() {
        let sound = archive();
        for at in [100, sound.len() / 2, sound.len() - 1] {
            let mut wrong = sound.clone();
            wrong[at] ^= 1;
            wrong[sound.len() - 1] ^= 2;
            for broken in [&wrong[..], &sound[..sound.len() - 9]] {
                let alone = read(broken, 1);
                assert!(alone.1.is_err(), "byte {at}");
                assert_eq!(read(broken, 2), alone, "byte {at}");
            }
        }
    }

    #[test]
    fn a_reader_may_stop_early() {
        let archive = archive();
        let splitter = ArchiveSplitter::new(&archive, &Options::default()).unwrap();
        let two = NonZeroUsize::new(2).unwrap();
        let first = splitter.with_hashed(two, is_even, |next| {
            let mut batch = HashedBatch::default();
            next(&mut batch);
            batch.blocks.len()
        });
        assert!(first > 0);
    }

    #[test]
    #[should_panic]
    fn a_check_that_panics_on_another_thread_ends_the_reader_too() {
        let archive = archive();
        let splitter = ArchiveSplitter::new(&archive, &Options::default()).unwrap();
        let reader = thread::current().id();
        let check = |_: &Block<'_>| {
            assert_eq!(thread::current().id(), reader);
            true
        };
        splitter.with_hashed(NonZeroUsize::new(2).unwrap(), check, |next| {
            let mut batch = HashedBatch::default();
            while batch.end.is_none() {
                next(&mut batch);
            }
        });
    }
}
