//! Chooses the active mutant of a process, and records which mutants it reaches. Added to every mutated
//! crate.

use std::fs::File;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Whether the mutant is active. Numbers start at one.
#[inline(always)]
pub(crate) fn on(id: u32) -> bool {
    let active = ACTIVE.load(Relaxed);
    active == id || (active == UNDECIDED && while_undecided(id))
}

/// Reads the environment; stays undecided while mutants are recorded.
#[cold]
#[inline(never)]
fn while_undecided(id: u32) -> bool {
    static REACHED: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let Some(mut file) = FILE.get_or_init(record).as_ref() else {
        let active = std::env::var("WIREPROOF_MUTANT").ok().and_then(|id| id.parse().ok());
        ACTIVE.store(active.unwrap_or(0), Relaxed);
        return active == Some(id);
    };
    let reached = &REACHED[id as usize & 0xffff];
    // Most are reached often, and a load costs less than a swap.
    if !reached.load(Relaxed) && !reached.swap(true, Relaxed) {
        // Where a write fails the mutant counts as not reached.
        let _ = file.write_all(&id.to_le_bytes());
    }
    false
}

/// The file of reached mutants, if they are recorded.
fn record() -> Option<File> {
    let path = std::env::var_os("WIREPROOF_MUTANTS_REACHED")?;
    File::options().append(true).create(true).open(path).ok()
}

static ACTIVE: AtomicU32 = AtomicU32::new(UNDECIDED);
const UNDECIDED: u32 = u32::MAX;
