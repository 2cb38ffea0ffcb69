//! The write-ahead log: events that were received and are not sealed yet.
//!
//! A segment is a file to which groups of events are appended; a group is on the disk when its events are reported as
//! stored. At a size or an age the segment is closed, and the next one begins. A closed segment is sealed into the tables
//! and deleted, or kept for readers.
//!
//! | name | content |
//! |---|---|
//! | `wal.lock` | the lock of the folder |
//! | `writer` | the name of this writer in the tables' logs |
//! | `00000000000000000042.wal` | segment 42 |
//! | `00000000000000000042.kept` | segment 42, closed and kept |
//! | `00000000000000000042.sealed` | hashes of the events of segment 42 |

mod catalogue;
mod keep;
mod read;
pub(crate) mod record;
mod repeats;
mod seal;
mod segment;
mod writer;

pub use read::{StoredGroup, WalReader};
pub use segment::Segment;
pub use writer::{StoredResult, Unsealed, Wal, WalError, WalOptions};
