//! Parts of every long run: a stop signal, the clock, locks of files, and the places at which tests end a process.

#![forbid(unsafe_code)]

mod clock;
mod crash;
mod lock;
mod stop;

pub use clock::now_micros;
#[doc(hidden)]
pub use crash::crash_point;
pub use lock::{Lock, LockError, LockFault, OpenFile, with_suffix};
pub use stop::StopSignal;
