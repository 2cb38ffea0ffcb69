//! Archives: verified history in open tables, which anyone can prove again.

#![forbid(unsafe_code)]

mod archive;
mod delta;
mod error;
mod event;
mod import;
mod object_file;
mod prove_snapshots;
mod replay;
mod repository;
mod rows;
mod scan;
mod seal;
mod storage;
mod table;
mod table_file;
mod verify;
mod wal;

pub use archive::{Archive, TableStats};
pub use error::{ArchiveError, ArchiveFault};
pub use event::{ArchivedEvent, kind};
pub use import::{ImportOptions, Imported, JUDGE};
pub use replay::Replayed;
pub use repository::ArchivedRepository;
pub use scan::{EventRow, EventScan};
pub use seal::{Sealed, WorkId};
pub use storage::Storage;
pub use table::Table;
pub use verify::{Finding, VerifyReport};
pub use wal::{Segment, StoredResult, Wal, WalError, WalOptions};
