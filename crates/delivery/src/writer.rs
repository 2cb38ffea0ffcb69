//! The writer thread of an outbox: it stores all events and acknowledgements that arrived during its last transaction
//! in the next one, and deletes events that every consumer has acknowledged.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use base::crash_point;
use rusqlite::{Connection, TransactionBehavior};
use store::files::StateFiles;

use crate::database::{
    self, Consumers, Contents, MAX_BATCH_BYTES, MAX_BATCH_EVENTS, MAX_REMEMBERED, OutboxIdentity,
    StoredBatch,
};
use crate::error::{OutboxError, OutboxFault};
use crate::event::{self, Batch, Digest};
use crate::known_records::KnownRecords;
use crate::record_effects::RecordEffects;
use crate::state::{Extent, Queued, Shared, Work};
use crate::window::AckWindow;

/// The file, as the writer thread has it.
pub(crate) struct Writer {
    connection: Connection,
    files: Arc<StateFiles>,
    identity: OutboxIdentity,
    next: u64,
    /// The stored batches, the oldest first.
    stored: VecDeque<StoredBatch>,
    bytes: u64,
    /// The consumers in the file.
    saved: Consumers,
    repetitions: Repetitions,
    records: KnownRecords,
    has_histories: bool,
}

/// A batch that is being stored.
struct NewBatch<'e> {
    batch: Batch,
    digests: Vec<Digest>,
    /// The keys that repetitions of the events have too.
    keys: Vec<Digest>,
    /// The effects of its events, with their accounts.
    effects: Vec<(&'e str, &'e RecordEffects)>,
}

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        files: Arc<StateFiles>,
        contents: Contents,
        max_records: u64,
    ) -> Self {
        let Contents { identity, next, consumers, stored, keys, has_histories } = contents;
        let bytes = stored.iter().map(|batch| batch.bytes).sum();
        let mut repetitions = Repetitions::default();
        repetitions.add(&keys);
        Self {
            connection,
            files,
            identity,
            next,
            stored,
            bytes,
            saved: consumers,
            repetitions,
            records: KnownRecords::new(max_records),
            has_histories,
        }
    }

    /// Whether there is an account with a history.
    pub(crate) fn has_histories(&self) -> bool {
        self.has_histories
    }

    pub(crate) fn extent(&self) -> Extent {
        let oldest = self.stored.front();
        Extent {
            oldest: oldest.map_or(self.next, |batch| batch.first),
            next: self.next,
            bytes: self.bytes,
            oldest_micros: oldest.map(|batch| batch.appended_micros),
        }
    }

    /// Serves requests until the outbox ends.
    pub(crate) fn run(mut self, shared: &Shared) {
        let _abandon = AbandonOnDrop(shared);
        while let Some(work) = shared.next_work() {
            let is_ending = work.is_ending;
            if !self.serve(work, shared) && is_ending {
                // Events that are not stored are delivered again.
                break;
            }
        }
        crash_point("outbox/closing");
        // Best effort: SQLite replays a remaining log at the next start.
        let _ = self.connection.close();
        crash_point("outbox/closed");
    }

    /// Whether the work is stored.
    fn serve(&mut self, work: Work, shared: &Shared) -> bool {
        let Work { events, consumers, replies, .. } = work;
        crash_point("outbox/taken");
        let batches = self.encode(&events);
        let result = self.store(&batches, &consumers);
        if result.is_err() && !events.is_empty() {
            // Acknowledgements make room, and must not depend on new events. If this fails too, they are stored later.
            let _ = self.store(&[], &consumers);
        }
        if result.is_ok() {
            self.publish(batches, shared);
        }
        shared.set_has_histories(self.has_histories);
        shared.record(self.extent(), &events, &result);
        let is_stored = result.is_ok();
        events.into_iter().for_each(|queued| (queued.done)(result.clone()));
        crash_point("outbox/stored");
        // A caller that does not wait any more is not an error.
        replies.into_iter().for_each(|reply| drop(reply.send(result.clone())));
        is_stored
    }

    /// The batches of new events, without events that were stored before.
    fn encode<'e>(&self, events: &'e [Queued]) -> Vec<NewBatch<'e>> {
        let mut batches = Vec::new();
        let mut rest = events;
        let mut next = self.next;
        let mut seen = HashSet::new();
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(chunk_len(rest));
            rest = after;
            let mut is_new = |key: &Digest| !self.repetitions.has(key) && seen.insert(*key);
            if let Some(batch) = encode_chunk(chunk, next, &mut is_new) {
                next += batch.digests.len() as u64;
                batches.push(batch);
            }
        }
        batches
    }

    /// Stores events and acknowledgements, all or nothing, and deletes events that every consumer has.
    fn store(
        &mut self,
        batches: &[NewBatch<'_>],
        consumers: &Consumers,
    ) -> Result<(), OutboxError> {
        self.files.check()?;
        let next = self.next + batches.iter().map(|new| new.digests.len() as u64).sum::<u64>();
        let reclaimed = self.reclaimable(consumers);
        let first_kept = self.stored.get(reclaimed).map_or(self.next, |batch| batch.first);
        let path = self.files.path();
        let mut write = || -> Result<(), OutboxFault> {
            let behavior = TransactionBehavior::Immediate;
            let transaction = self.connection.transaction_with_behavior(behavior)?;
            let records = &mut self.records;
            records.begin(&transaction)?;
            for NewBatch { batch, digests, keys, effects } in batches {
                database::insert_batch(&transaction, batch, digests, keys)?;
                for (did, effects) in effects {
                    records.apply(&transaction, did, effects)?;
                }
            }
            write_changes(&transaction, &self.saved, consumers)?;
            if reclaimed > 0 {
                database::delete_before(&transaction, first_kept, next)?;
            }
            records.end(&transaction)?;
            database::seal(&transaction, self.identity, next, consumers)?;
            crash_point("outbox/written");
            transaction.commit()?;
            crash_point("outbox/committed");
            Ok(())
        };
        if let Err(fault) = write() {
            self.records.forget();
            return Err(OutboxError::new(path, fault));
        }
        self.bytes -= self.stored.drain(..reclaimed).map(|batch| batch.bytes).sum::<u64>();
        for NewBatch { batch: Batch { first, appended_micros, data }, keys, effects, .. } in batches
        {
            self.has_histories |= !effects.is_empty();
            let first = *first;
            let appended_micros = *appended_micros;
            let bytes = data.len() as u64;
            self.stored.push_back(StoredBatch { first, appended_micros, bytes });
            self.bytes += bytes;
            self.repetitions.add(keys);
        }
        self.next = next;
        self.saved.clone_from(consumers);
        Ok(())
    }

    /// The first position that a consumer has not acknowledged.
    fn needed_from(&self, consumers: &Consumers) -> u64 {
        let slowest = consumers.values().map(AckWindow::cursor).min();
        slowest.map_or(self.next, |cursor| cursor + 1)
    }

    /// Number of stored batches that every consumer has acknowledged.
    fn reclaimable(&self, consumers: &Consumers) -> usize {
        let keep_from = self.needed_from(consumers);
        if keep_from >= self.next {
            return self.stored.len();
        }
        self.stored.partition_point(|batch| batch.first <= keep_from).saturating_sub(1)
    }

    /// Makes stored events available to consumers.
    fn publish(&self, batches: Vec<NewBatch<'_>>, shared: &Shared) {
        if batches.is_empty() {
            return;
        }
        let needed_from = self.needed_from(&self.saved);
        for NewBatch { batch, .. } in batches {
            let events = batch.events().expect("encoded above");
            shared.keep_recent(batch.data.len(), events, needed_from);
        }
        shared.committed.send_replace(self.next);
    }
}

/// Number of events at the start that make one batch.
fn chunk_len(events: &[Queued]) -> usize {
    let mut bytes = 0;
    let fits = |queued: &&Queued| {
        bytes += queued.event.stored_len();
        bytes <= MAX_BATCH_BYTES
    };
    events.iter().take(MAX_BATCH_EVENTS).take_while(fits).count().max(1)
}

/// The batch of those events that are new; `None` if there are none.
fn encode_chunk<'e>(
    chunk: &'e [Queued],
    first: u64,
    is_new: &mut impl FnMut(&Digest) -> bool,
) -> Option<NewBatch<'e>> {
    let stored_len = chunk.iter().map(|queued| queued.event.stored_len()).sum();
    let encoded = |keep: &dyn Fn(usize) -> bool| {
        let mut data = Vec::with_capacity(stored_len);
        let kept = chunk.iter().enumerate().filter(|(at, _)| keep(*at));
        kept.for_each(|(_, queued)| queued.event.encode(&mut data));
        data
    };
    let mut data = encoded(&|_| true);
    let mut digests = event::digests(&data).expect("encoded above");
    let key = |(queued, digest): (&Queued, &Digest)| queued.event.repetition_key(digest);
    let mut keys: Vec<Digest> = chunk.iter().zip(&digests).map(key).collect();
    let new: Vec<bool> = keys.iter().map(is_new).collect();
    if new.contains(&false) {
        data = encoded(&|at| new[at]);
        for of_events in [&mut digests, &mut keys] {
            let mut at = new.iter();
            of_events.retain(|_| at.next() == Some(&true));
        }
    }
    let of_new = chunk.iter().zip(new).filter(|(_, is_new)| *is_new);
    let effects = of_new.filter_map(|(queued, _)| queued.event.effects()).collect();
    (!digests.is_empty()).then(|| NewBatch {
        batch: database::new_batch(first, data),
        digests,
        keys,
        effects,
    })
}

/// Writes the consumers that differ from those in the file.
fn write_changes(
    transaction: &Connection,
    saved: &Consumers,
    consumers: &Consumers,
) -> Result<(), OutboxFault> {
    for (name, window) in consumers {
        if saved.get(name) != Some(window) {
            database::write_consumer(transaction, name, Some(window))?;
        }
    }
    let removed = saved.keys().filter(|name| !consumers.contains_key(*name));
    removed.into_iter().try_for_each(|name| database::write_consumer(transaction, name, None))
}

/// The keys of repetitions of the last events: a source that ended before it stored their acknowledgement sends them
/// again.
#[derive(Default)]
struct Repetitions {
    order: VecDeque<Digest>,
    set: HashSet<Digest>,
}

impl Repetitions {
    fn has(&self, key: &Digest) -> bool {
        self.set.contains(key)
    }

    fn add(&mut self, keys: &[Digest]) {
        for key in keys {
            if self.set.insert(*key) {
                self.order.push_back(*key);
            }
            if self.order.len() as u64 > MAX_REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.set.remove(&oldest);
            }
        }
    }
}

/// Answers callers that wait for a writer that has ended, or panicked.
struct AbandonOnDrop<'s>(&'s Shared);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
