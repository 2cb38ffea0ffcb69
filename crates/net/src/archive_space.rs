//! Space for fetched archives: one bound in bytes for all that are received or in use.
//!
//! Strangers decide how large an archive is, and a compressed one can grow a thousandfold, so a limit for one archive bounds
//! nothing where many are fetched. Here every byte is granted before it is written, and returned when its [`Space`] is dropped:
//! after the archive was verified and stored or delivered, not after it was received.
//!
//! ```text
//! pool     a first grant for every archive ── grows while a share is left ── stays until the archive is dropped
//! slots    room for a whole archive of the maximum size, one to a domain: for archives that found no room to grow
//! ```
//!
//! Nothing waits for space while an archive is being received: one that cannot grow is given up, and fetched again with a slot. So
//! a slow host holds no more than it has sent, and no two archives wait for each other. The last quarter of the pool is for
//! first grants: small archives, which are nearly all, do not wait for large ones. The holder of finished archives learns
//! that others wait ([`ArchiveSpace::until_wanted`]).

use std::collections::HashMap;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::concurrency::{ConcurrencyLimit, Permit, registrable_domain};

/// Space for archives. Clones share it.
#[derive(Clone, Debug)]
pub struct ArchiveSpace(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The bytes of the pool, in units.
    pool: Arc<Semaphore>,
    pool_units: usize,
    /// Units of a first grant.
    first_units: usize,
    slots: ConcurrencyLimit,
    max_bytes: u64,
    /// Units beyond first grants, by host and by registrable domain.
    grown: Mutex<Grown>,
    waiting: watch::Sender<Waiting>,
    used: AtomicU64,
    peak: AtomicU64,
}

#[derive(Debug, Default)]
struct Grown {
    by_host: HashMap<Box<str>, usize>,
    by_domain: HashMap<Box<str>, usize>,
}

/// Numbers of fetches that wait.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    for_pool: usize,
    for_slots: usize,
}

/// The turn of a registrable domain to have a slot. Its archives wait for it and hold nothing meanwhile.
#[derive(Clone, Debug)]
pub struct SlotTurn(#[expect(dead_code, reason = "held")] Arc<OwnedSemaphorePermit>);

/// Space of one archive, returned when it is dropped.
#[derive(Debug)]
pub struct Space {
    shared: Arc<Shared>,
    host: Box<str>,
    /// `None` with a slot.
    pool: Option<OwnedSemaphorePermit>,
    slot: Option<(SlotTurn, Permit)>,
    /// Units beyond the first grant.
    grown: usize,
    /// Bytes that count as used.
    bytes: u64,
}

impl ArchiveSpace {
    /// At most `max_bytes` for all archives, of at most `max_archive_bytes` each. There is always room for
    /// one archive of that size and 16 MiB of others, even if that is more than `max_bytes`.
    pub fn new(max_bytes: u64, max_archive_bytes: u64) -> Self {
        let slots = (max_bytes / 2 / max_archive_bytes.max(1)).max(1);
        let pool = max_bytes.saturating_sub(slots.saturating_mul(max_archive_bytes)).max(MIN_POOL);
        let pool_units = to_units(pool).min(Semaphore::MAX_PERMITS).min(u32::MAX as usize);
        let shared = Shared {
            pool: Arc::new(Semaphore::new(pool_units)),
            pool_units,
            first_units: (pool_units / FIRST_GRANTS).clamp(1, MAX_FIRST_UNITS),
            slots: ConcurrencyLimit::new(1, usize::try_from(slots).unwrap_or(usize::MAX >> 4)),
            max_bytes: pool.saturating_add(slots.saturating_mul(max_archive_bytes)),
            grown: Mutex::default(),
            waiting: watch::Sender::default(),
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        };
        Self(Arc::new(shared))
    }

    /// Waits for the turn of a host, a name with the port if it has one, to have a slot.
    pub async fn slot_turn(&self, host: &str) -> SlotTurn {
        let turn = self.0.slots.acquire_key(registrable_domain(name_of(host)));
        SlotTurn(Arc::new(self.counted(true, turn).await))
    }

    /// Waits for space for an archive of `host`: a first grant, which grows while there is space, or with its turn a slot.
    pub async fn acquire(&self, host: &str, turn: Option<&SlotTurn>) -> Space {
        let (mut pool, mut slot) = (None, None);
        match turn {
            Some(turn) => {
                let permit = self.counted(true, self.0.slots.acquire_shared()).await;
                slot = Some((turn.clone(), permit));
            }
            None => {
                let units = u32::try_from(self.0.first_units).unwrap_or(1);
                let granted = self.0.pool.clone().acquire_many_owned(units);
                pool = Some(self.counted(false, granted).await.expect("the pool is never closed"));
            }
        }
        let bytes = pool.as_ref().map_or(0, |pool| to_bytes(pool.num_permits()));
        self.0.use_bytes(bytes);
        Space { shared: self.0.clone(), host: host.into(), pool, slot, grown: 0, bytes }
    }

    /// Waits for space. It counts as waiting unless the space is there at once.
    async fn counted<T>(&self, for_slot: bool, granted: impl Future<Output = T>) -> T {
        let mut granted = pin!(granted);
        let at_once = poll_fn(|context| Poll::Ready(granted.as_mut().poll(context))).await;
        if let Poll::Ready(granted) = at_once {
            return granted;
        }
        let _waiting = WaitingGuard::start(&self.0.waiting, for_slot);
        granted.await
    }

    /// Waits until a fetch waits for space that the holder of finished archives can return; `holds_slot` is whether it
    /// holds a slot.
    pub async fn until_wanted(&self, holds_slot: bool) {
        let mut waiting = self.0.waiting.subscribe();
        let is_wanted =
            |waiting: &Waiting| waiting.for_pool > 0 || holds_slot && waiting.for_slots > 0;
        // The sender lives as long as this value.
        let _ = waiting.wait_for(is_wanted).await;
    }

    /// Bytes that are granted.
    pub fn used_bytes(&self) -> u64 {
        self.0.used.load(Relaxed)
    }

    /// The largest number of bytes that were granted at a time.
    pub fn peak_bytes(&self) -> u64 {
        self.0.peak.load(Relaxed)
    }

    /// The bound.
    pub fn max_bytes(&self) -> u64 {
        self.0.max_bytes
    }

    /// Bytes of the pool, which archives share that need no slot.
    pub fn pool_bytes(&self) -> u64 {
        to_bytes(self.0.pool_units)
    }
}

impl Space {
    /// Whether it is a slot.
    pub fn is_slot(&self) -> bool {
        self.slot.is_some()
    }

    /// Grows to `bytes`, if there is space.
    fn try_grow_to(&mut self, bytes: u64) -> bool {
        let Some(pool) = &mut self.pool else {
            // The limits of a fetch bound it.
            self.shared.use_bytes(bytes.saturating_sub(self.bytes));
            self.bytes = self.bytes.max(bytes);
            return true;
        };
        let wanted = to_units(bytes).saturating_sub(pool.num_permits());
        if wanted == 0 {
            return true;
        }
        // In steps, so that the shares are not locked for every chunk.
        let step = wanted.max(self.shared.first_units);
        let Some(more) =
            [step, wanted].into_iter().find_map(|units| self.shared.grow(&self.host, units))
        else {
            return false;
        };
        self.grown += more.num_permits();
        self.shared.use_bytes(to_bytes(more.num_permits()));
        self.bytes += to_bytes(more.num_permits());
        pool.merge(more);
        true
    }

    /// Returns the space that an archive of `bytes` does not need, and the slot if the pool has room for it.
    fn settle(&mut self, bytes: u64) {
        let units = to_units(bytes);
        if self.slot.is_some() {
            let Some(granted) = self.shared.grow(&self.host, units) else { return };
            (self.pool, self.slot, self.grown) = (Some(granted), None, units);
        }
        let Some(pool) = &mut self.pool else { return };
        let excess = pool.num_permits().saturating_sub(units);
        drop(pool.split(excess));
        let returned = excess.min(self.grown);
        self.shared.shrink(&self.host, returned);
        self.grown -= returned;
        let now = to_bytes(pool.num_permits());
        self.shared.return_bytes(self.bytes.saturating_sub(now));
        self.shared.use_bytes(now.saturating_sub(self.bytes));
        self.bytes = now;
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.shared.shrink(&self.host, self.grown);
        self.shared.return_bytes(self.bytes);
    }
}

impl Shared {
    /// Units for growth, if the pool and the shares of the host have them.
    fn grow(&self, host: &str, units: usize) -> Option<OwnedSemaphorePermit> {
        let mut grown = lock(&self.grown);
        let domain = registrable_domain(name_of(host));
        let of_host = count(&grown.by_host, host) + units;
        let of_domain = count(&grown.by_domain, domain) + units;
        let reserved = self.pool_units / RESERVED_PART;
        if of_host > self.pool_units / HOST_PART
            || of_domain > self.pool_units / DOMAIN_PART
            || self.pool.available_permits() < units.saturating_add(reserved)
        {
            return None;
        }
        let granted = self.pool.clone().try_acquire_many_owned(u32::try_from(units).ok()?).ok()?;
        if units > 0 {
            grown.by_host.insert(host.into(), of_host);
            grown.by_domain.insert(domain.into(), of_domain);
        }
        Some(granted)
    }

    fn shrink(&self, host: &str, units: usize) {
        if units == 0 {
            return;
        }
        let mut grown = lock(&self.grown);
        let domain = registrable_domain(name_of(host));
        let Grown { by_host, by_domain } = &mut *grown;
        for (counts, key) in [(by_host, host), (by_domain, domain)] {
            let left = count(counts, key).saturating_sub(units);
            match (left, counts.get_mut(key)) {
                (0, _) => drop(counts.remove(key)),
                (_, Some(count)) => *count = left,
                (_, None) => {}
            }
        }
    }

    fn use_bytes(&self, bytes: u64) {
        let used = self.used.fetch_add(bytes, Relaxed) + bytes;
        self.peak.fetch_max(used, Relaxed);
    }

    fn return_bytes(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
    }
}

/// A fetch that waits.
struct WaitingGuard<'w> {
    waiting: &'w watch::Sender<Waiting>,
    for_slot: bool,
}

impl<'w> WaitingGuard<'w> {
    fn start(waiting: &'w watch::Sender<Waiting>, for_slot: bool) -> Self {
        waiting.send_modify(|waiting| *waiting.count(for_slot) += 1);
        Self { waiting, for_slot }
    }
}

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.waiting.send_modify(|waiting| *waiting.count(self.for_slot) -= 1);
    }
}

impl Waiting {
    fn count(&mut self, for_slot: bool) -> &mut usize {
        if for_slot { &mut self.for_slots } else { &mut self.for_pool }
    }
}

/// The file of an archive that is being received, without a name. A write without space for it fails: see [`is_out_of_space`].
#[derive(Debug)]
pub struct ArchiveWriter {
    out: BufWriter<File>,
    space: Space,
    written: u64,
}

/// A received archive in a file without a name: nothing is left of it when this value is dropped or the process is killed. It
/// holds its space until then.
#[derive(Debug)]
pub struct ArchiveFile {
    file: File,
    space: Space,
}

impl ArchiveWriter {
    /// Writes to `file`, which is empty.
    pub fn new(file: File, space: Space) -> Self {
        Self { out: BufWriter::new(file), space, written: 0 }
    }

    /// The complete file.
    ///
    /// # Errors
    /// If the last bytes cannot be written.
    pub fn finish(self) -> io::Result<ArchiveFile> {
        let Self { out, mut space, written } = self;
        let file = out.into_inner().map_err(IntoInnerError::into_error)?;
        space.settle(written);
        Ok(ArchiveFile { file, space })
    }
}

impl Write for ArchiveWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.space.try_grow_to(self.written + bytes.len() as u64) {
            return Err(io::Error::other(OutOfSpace));
        }
        let len = self.out.write(bytes)?;
        self.written += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl ArchiveFile {
    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its space, for a caller that maps the file: the space is returned when it is dropped.
    pub fn into_parts(self) -> (File, Space) {
        (self.file, self.space)
    }
}

/// Archives in use leave no space for this one to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the archives in use leave no space for this one")]
struct OutOfSpace;

/// Whether writing failed for want of [`Space`]: the archive is fetched again with a [slot](ArchiveSpace::slot_turn).
pub fn is_out_of_space(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<OutOfSpace>())
}

/// The name in an authority: without the port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn count(counts: &HashMap<Box<str>, usize>, key: &str) -> usize {
    counts.get(key).copied().unwrap_or_default()
}

fn lock(grown: &Mutex<Grown>) -> MutexGuard<'_, Grown> {
    grown.lock().unwrap_or_else(PoisonError::into_inner)
}

fn to_units(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(UNIT)).unwrap_or(usize::MAX >> 4)
}

fn to_bytes(units: usize) -> u64 {
    units as u64 * UNIT
}

/// Bytes of a unit: of a page of the system.
const UNIT: u64 = 4096;

/// Bytes of the smallest pool.
const MIN_POOL: u64 = 16 << 20;

/// First grants that the pool has at least, and the units of the largest one: 1 MiB.
const FIRST_GRANTS: usize = 512;
const MAX_FIRST_UNITS: usize = (1 << 20) / UNIT as usize;

/// The parts of the pool to which archives of one host and of one registrable domain grow, and the part that is left for first
/// grants.
const HOST_PART: usize = 4;
const DOMAIN_PART: usize = 2;
const RESERVED_PART: usize = 4;

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::task::unconstrained;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A pool of 64 MiB, and one slot of 64 MiB.
    fn space() -> ArchiveSpace {
        ArchiveSpace::new(128 * MIB, 64 * MIB)
    }

    fn acquire_now(space: &ArchiveSpace, host: &str) -> Option<Space> {
        // Not within the budget of a task: there may be hundreds.
        unconstrained(space.acquire(host, None)).now_or_never()
    }

    fn slot_now(space: &ArchiveSpace, host: &str) -> Option<Space> {
        let turn = space.slot_turn(host).now_or_never()?;
        space.acquire(host, Some(&turn)).now_or_never()
    }

    fn writer(space: Option<Space>) -> ArchiveWriter {
        ArchiveWriter::new(tempfile::tempfile().unwrap(), space.unwrap())
    }

    /// Writes up to this number of MiB; the number that found space.
    fn write(writer: &mut ArchiveWriter, mib: u64) -> u64 {
        let chunk = vec![0; MIB as usize];
        let written = (0..mib).take_while(|_| match writer.write_all(&chunk) {
            Ok(()) => true,
            Err(error) => {
                assert!(is_out_of_space(&error), "{error}");
                false
            }
        });
        written.count() as u64
    }

    #[test]
    fn archives_hold_their_space_until_they_are_dropped() {
        let space = space();
        let mut one = writer(acquire_now(&space, "a.test"));
        assert_eq!(write(&mut one, 10), 10);
        let file = one.finish().unwrap();
        assert_eq!(space.used_bytes(), 10 * MIB, "what was granted ahead is returned");
        let (file, held) = file.into_parts();
        drop(file);
        assert_eq!(space.used_bytes(), 10 * MIB, "a mapping of the file may be in use");
        drop(held);
        assert_eq!((space.used_bytes(), lock(&space.0.grown).by_host.len()), (0, 0));
    }

    #[test]
    fn archives_of_one_host_grow_to_a_quarter_and_of_one_domain_to_half_of_the_pool() {
        let space = space();
        let mut held = Vec::new();
        for host in ["one.a.test", "two.a.test:8443", "two.a.test", "b.test"] {
            let mut written = 0;
            for _ in 0..4 {
                let mut archive = writer(acquire_now(&space, host));
                written += write(&mut archive, 64);
                held.push(archive);
            }
            let expected = match host {
                "two.a.test" => 0..=1,
                // The space that the other domain and the part for first grants leave.
                "b.test" => 13..=16,
                _ => 15..=17,
            };
            assert!(expected.contains(&written), "{host}: {written} MiB");
        }
        assert!(space.used_bytes() <= 64 * MIB);
    }

    #[test]
    fn small_archives_of_any_host_find_space_while_large_ones_have_taken_all_that_they_can() {
        let space = space();
        let hosts = (0..8).map(|number| format!("a.host{number}.test"));
        let mut large: Vec<ArchiveWriter> =
            hosts.map(|host| writer(acquire_now(&space, &host))).collect();
        for archive in &mut large {
            write(archive, 64);
        }
        assert!(large.iter_mut().all(|archive| write(archive, 1) == 0));
        assert!(acquire_now(&space, "a.host0.test").is_some());
        assert!(acquire_now(&space, "honest.test").is_some());
    }

    #[tokio::test]
    async fn an_archive_that_found_no_room_gets_a_slot_of_which_a_domain_has_one() {
        let space = ArchiveSpace::new(256 * MIB, 64 * MIB);
        let mut first = writer(slot_now(&space, "one.a.test"));
        assert_eq!(write(&mut first, 64), 64);
        assert!(slot_now(&space, "two.a.test:8443").is_none());
        let second = slot_now(&space, "b.test").unwrap();
        assert!(slot_now(&space, "c.test").is_none(), "two slots");
        assert!(space.until_wanted(true).now_or_never().is_none(), "nobody waits");
        let waiting = tokio::spawn({
            let space = space.clone();
            async move {
                let turn = space.slot_turn("a.test").await;
                drop(space.acquire("a.test", Some(&turn)).await);
            }
        });
        space.until_wanted(true).await;
        assert!(space.until_wanted(false).now_or_never().is_none(), "only a slot is wanted");
        drop((first, second));
        waiting.await.unwrap();
        assert_eq!(space.used_bytes(), 0);
    }

    #[test]
    fn a_slot_is_returned_when_its_archive_turns_out_to_be_small() {
        let space = space();
        let mut archive = writer(slot_now(&space, "a.test"));
        assert_eq!(write(&mut archive, 2), 2);
        let file = archive.finish().unwrap();
        assert!(!file.space.is_slot());
        assert_eq!(space.used_bytes(), 2 * MIB);
        assert!(slot_now(&space, "a.test").is_some());
    }

    #[test]
    fn all_archives_together_stay_within_the_bound_however_many_hosts_send_them() {
        let space = space();
        let mut held = Vec::new();
        for number in 0..800 {
            let host = format!("host{number}.test");
            // The limit of a fetch ends an archive with a slot at 64 MiB.
            for (granted, mib) in [(slot_now(&space, &host), 64), (acquire_now(&space, &host), 3)] {
                if granted.is_some() {
                    let mut archive = writer(granted);
                    write(&mut archive, mib);
                    held.push(archive);
                }
            }
        }
        assert!(space.peak_bytes() <= space.max_bytes(), "{}", space.peak_bytes());
        assert_eq!(space.max_bytes(), 128 * MIB);
    }

    #[tokio::test]
    async fn a_fetch_that_finds_space_at_once_asks_nobody_to_return_any() {
        let space = space();
        let mut wanted = pin!(space.until_wanted(true));
        for number in 0..100 {
            let host = format!("host{number}.test");
            let turn = space.slot_turn(&host).await;
            drop((space.acquire(&host, None).await, space.acquire(&host, Some(&turn)).await));
            assert!(wanted.as_mut().now_or_never().is_none(), "{number}");
        }
    }

    #[tokio::test]
    async fn whoever_holds_finished_archives_learns_that_another_waits() {
        let space = ArchiveSpace::new(0, MIB);
        assert_eq!(space.max_bytes(), MIN_POOL + MIB);
        let held: Vec<Space> = (0..).map_while(|_| acquire_now(&space, "a.test")).collect();
        assert!(held.len() >= FIRST_GRANTS);
        let waiting = tokio::spawn({
            let space = space.clone();
            async move { drop(space.acquire("b.test", None).await) }
        });
        space.until_wanted(false).await;
        drop(held);
        waiting.await.unwrap();
    }
}
