//! Files that another process cuts while they are mapped: a message with the name of the file instead of the end by a signal.
//!
//! The system reports an access beyond the new end of a file with SIGBUS, which a process can only end at. The handler finds the
//! file by the address, in a table that it reads without locks.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A mapping in the table, until it is dropped.
#[derive(Debug)]
pub(crate) struct Listed {
    slot: Option<&'static Slot>,
    /// The message that the handler writes.
    _message: Box<[u8]>,
}

/// A mapping. Without one, `len` is 0.
#[derive(Debug)]
struct Slot {
    is_taken: AtomicUsize,
    start: AtomicUsize,
    len: AtomicUsize,
    message: AtomicUsize,
    message_len: AtomicUsize,
}

impl Listed {
    /// Adds a mapping of a file, if there is room for one more: another one ends the process by the signal.
    pub(crate) fn new(mapped: &[u8], path: Option<&Path>) -> Self {
        let name = path.map_or_else(|| "a file".to_owned(), |path| path.display().to_string());
        let message = format!("error: {name}: another program cut the file while it was read\n");
        let message = message.into_bytes().into_boxed_slice();
        let take = |slot: &&Slot| slot.is_taken.swap(1, Ordering::AcqRel) == 0;
        let slot = TABLE.iter().find(take);
        if let Some(slot) = slot {
            slot.start.store(mapped.as_ptr().addr(), Ordering::Relaxed);
            slot.message.store(message.as_ptr().expose_provenance(), Ordering::Relaxed);
            slot.message_len.store(message.len(), Ordering::Relaxed);
            slot.len.store(mapped.len(), Ordering::Release);
        }
        Self { slot, _message: message }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            slot.len.store(0, Ordering::Release);
            slot.is_taken.store(0, Ordering::Release);
        }
    }
}

impl Slot {
    const fn empty() -> Self {
        Self {
            is_taken: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            message: AtomicUsize::new(0),
            message_len: AtomicUsize::new(0),
        }
    }

    fn holds(&self, address: usize) -> bool {
        let len = self.len.load(Ordering::Acquire);
        address.wrapping_sub(self.start.load(Ordering::Relaxed)) < len
    }
}

/// From now on, an access beyond the end of a mapped file that was cut ends the process with a message and this exit code.
/// Elsewhere than on Linux it has no effect.
///
/// # Errors
/// If the system does not let the signal be handled.
pub fn exit_on_cut_files(code: i32) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    linux::handle(code)?;
    let _ = code;
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use super::TABLE;

    #[expect(unsafe_code, reason = "handling a signal is unsafe, and this is the only place")]
    pub(super) fn handle(code: i32) -> io::Result<()> {
        let on_signal = move |info: &libc::siginfo_t| {
            // SAFETY: the signal is SIGBUS, for which the system fills in the address.
            let address = unsafe { info.si_addr() }.addr();
            let Some(slot) = TABLE.iter().find(|slot| slot.holds(address)) else {
                // SAFETY: the default action of a signal may be set at any time. The access is repeated, and ends the process.
                unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
                return;
            };
            let load = |number: &std::sync::atomic::AtomicUsize| {
                number.load(std::sync::atomic::Ordering::Relaxed)
            };
            let message = std::ptr::with_exposed_provenance::<libc::c_void>(load(&slot.message));
            // SAFETY: this thread was reading the mapping, so it is not dropped, and neither is its message, of this length.
            unsafe { libc::write(libc::STDERR_FILENO, message, load(&slot.message_len)) };
            // SAFETY: it ends the process and runs nothing else.
            unsafe { libc::_exit(code) };
        };
        // SAFETY: the handler only reads atomics and calls functions that a signal handler may call.
        unsafe { signal_hook_registry::register_sigaction(libc::SIGBUS, on_signal) }.map(drop)
    }
}

/// Mappings that are listed at a time.
static TABLE: [Slot; 256] = [const { Slot::empty() }; 256];
