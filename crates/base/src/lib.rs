//! What every long run needs: a stop signal, locks of files, and the places at which tests end a process.

#![forbid(unsafe_code)]

mod crash;
mod lock;
mod stop;

#[doc(hidden)]
pub use crash::crash_point;
pub use lock::{Lock, LockError, LockFault, OpenFile, with_suffix};
pub use stop::StopSignal;
