//! Larger tables for the busiest keys, within a budget of their own.
//!
//! A key's table grows after [`MEDIUM_USES`] and [`LARGE_USES`] valid signatures. Where the budget is used up, tables that were
//! not used for long are made small again; if there are none, the key keeps its table. Keys that are equally busy do not take
//! turns: making a table costs as much as it saves in dozens of signatures.

use kernels::curve::TableSize;

use super::table::Table;
use super::{EntryState, KeyCache};

/// Which entries have larger tables.
#[derive(Debug)]
pub(super) struct Enlarged {
    pub(super) budget_bytes: usize,
    pub(super) used_bytes: usize,
    /// Positions of entries.
    pub(super) members: Vec<usize>,
    /// The member that is examined next.
    hand: usize,
}

/// An entry with a larger table, as a member.
#[derive(Debug)]
pub(super) struct Place {
    /// The position in `members`.
    pub(super) at: usize,
}

impl Enlarged {
    pub(super) fn new(budget_bytes: usize) -> Self {
        Self { budget_bytes, used_bytes: 0, members: Vec::new(), hand: 0 }
    }

    fn fits(&self, bytes: usize) -> bool {
        self.used_bytes + bytes <= self.budget_bytes
    }
}

/// The size that a table gets after this many uses, at least one, if it changes then.
pub(super) fn size_after(uses: u32) -> Option<TableSize> {
    match uses {
        MEDIUM_USES => Some(TableSize::Medium),
        _ if uses.is_multiple_of(LARGE_USES) => Some(TableSize::Large),
        _ => None,
    }
}

impl KeyCache {
    /// Gives the entry a table of this size, if the budget allows it and the present one is smaller.
    pub(super) fn enlarge(&mut self, at: usize, size: TableSize) {
        let Some(table) = self.table_to_enlarge(at).filter(|table| table.size() < size) else {
            return;
        };
        let kept = self.forget_enlarged(at);
        if self.make_room(size.bytes()) {
            self.entries[at].state = EntryState::Table(table.resized(size));
            self.remember_enlarged(at, size);
        } else if let Some(kept) = kept {
            self.remember_enlarged(at, kept);
        }
    }

    /// The table of the entry, made if there is none yet.
    fn table_to_enlarge(&self, at: usize) -> Option<Table> {
        match &self.entries[at].state {
            EntryState::Table(table) => Some(table.clone()),
            EntryState::TablePending => None,
            EntryState::Seen | EntryState::Parsed(_) => Table::new(&self.entries[at].key),
        }
    }

    /// Makes tables small again that were not used for long, until there is room. Examines at most [`EXAMINED`].
    fn make_room(&mut self, bytes: usize) -> bool {
        for _ in 0..self.enlarged.members.len().min(EXAMINED) {
            if self.enlarged.fits(bytes) {
                break;
            }
            let hand = self.enlarged.hand % self.enlarged.members.len();
            let at = self.enlarged.members[hand];
            if self.is_idle(at) {
                self.shrink(at);
            } else {
                self.enlarged.hand = hand + 1;
            }
        }
        self.enlarged.fits(bytes)
    }

    /// Whether the key was not used while the members together had [`IDLE_USES`] uses per member.
    fn is_idle(&self, at: usize) -> bool {
        let since = self.uses - self.entries[at].last_use;
        since > IDLE_USES * self.enlarged.members.len() as u64
    }

    fn shrink(&mut self, at: usize) {
        self.forget_enlarged(at);
        let small = self.stored(at).resized(TableSize::Small);
        let entry = &mut self.entries[at];
        (entry.state, entry.uses) = (EntryState::Table(small), 0);
    }

    fn remember_enlarged(&mut self, at: usize, size: TableSize) {
        let entry = &mut self.entries[at];
        entry.enlarged = Some(Place { at: self.enlarged.members.len() });
        self.enlarged.members.push(at);
        self.enlarged.used_bytes += size.bytes();
    }

    /// Takes the entry from the members, before its table changes or goes. Returns the size of its table if it was one.
    pub(super) fn forget_enlarged(&mut self, at: usize) -> Option<TableSize> {
        let place = self.entries[at].enlarged.take()?;
        let size = self.stored(at).size();
        self.enlarged.used_bytes -= size.bytes();
        self.enlarged.members.swap_remove(place.at);
        if let Some(moved) = self.enlarged.members.get(place.at) {
            let moved = self.entries[*moved].enlarged.as_mut().expect("members have a place");
            moved.at = place.at;
        }
        Some(size)
    }
}

/// Uses after which a table gets four windows. It takes some 31 µs to make, and saves 0.8 µs a signature in batches and 17 µs alone
/// (Zen 5 with AVX-512, example `signatures` of the kernels).
pub(super) const MEDIUM_USES: u32 = 16;

/// Uses after which a table gets all windows, and after which it is tried again.
pub(super) const LARGE_USES: u32 = 128;

/// Tables that are examined for one that needs their room.
const EXAMINED: usize = 16;

/// A table is idle after this many uses of the cache per larger table in it. A key with the average number of uses is
/// found idle once in 9 million times.
const IDLE_USES: u64 = 16;
