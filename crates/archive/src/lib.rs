//! Archives: verified history in open tables, which anyone can prove again.
//!
//! ```text
//! events ── Wal::append ──> write-ahead log ── Wal::seal ──┐
//! frames of a file ── Archive::import_frames ──────────────┼──> Parquet files ──> Delta Lake log
//! repositories ── Archive::seal_repositories ──────────────┤          │
//! logs of did:plc ── Archive::seal_key_histories ──────────┤          │
//! labels ── Archive::seal_labels ──────────────────────────┘          │
//!                 Archive::verify, replay, events, rows <─────────────┘
//! ```
//!
//! An [`Archive`] is a folder or a prefix of an object store with ten [tables](Table). Their files are Parquet under a log of the
//! Delta Lake protocol, so other programs read them as they are; `docs/formats/archive.md` describes every column. A frame is
//! stored as it came, with its verdict and the key under which it was verified. [`Archive::verify`] compares every file with its
//! name, judges every verified event and every repository again, and compares its key with the history of the account's keys, if
//! the archive has it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let address = folder.path().to_str().ok_or("a path")?;
//! use wireproof::archive::{Archive, ImportOptions, VerifyOptions};
//! use wireproof::verify::sync::Policy;
//!
//! let archive = Archive::open(address)?;
//! let options = ImportOptions {
//!     host: "relay.example.com".to_owned(),
//!     name: "monday".to_owned(),
//!     now_micros: 1_782_864_000_000_000,
//!     policy: Policy::default(),
//! };
//! // From the accounts' DID documents; without a key an event is stored as not verified.
//! let key_of = |_did: &str| None;
//! let frames: [&[u8]; 1] = [b"\xa1\x62op\x20\xa1\x65error\x6cFutureCursor"];
//! let imported = archive.import_frames(frames, &key_of, &options).await?;
//! assert_eq!((imported.sealed.events, imported.unchecked), (1, 1));
//!
//! let report = archive.verify(&VerifyOptions::default(), &mut |finding| println!("{}: {}", finding.file, finding.message)).await?;
//! assert!(!report.is_refused());
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - An event that was reported as stored is in the tables once, whatever process ends when: an end between any two durable steps
//!   repeats the work with the same result.
//! - Several writers may seal into one archive: one of them wins a commit, and the others follow it.
//! - The bytes of a file depend on its rows alone, and its name is their SHA-256.
//! - A row group has at most 16 MiB before compression, plus the rows of one write. A reader holds one row group per file.

#![forbid(unsafe_code)]

mod accounts;
mod archive;
mod blob_rows;
mod blobs;
mod chain;
mod collections;
mod compact;
mod content_hash;
mod decode_limits;
mod delta;
mod erase;
mod erase_ledgers;
mod erasures;
mod error;
mod event;
mod event_rows;
mod file_batches;
mod frame_records;
mod hidden;
mod ids;
mod import;
mod key_history;
mod label_fields;
mod label_rows;
mod labels;
mod lease;
mod ledger;
mod merge;
mod newest_repository;
mod object_file;
#[cfg(feature = "object-stores")]
mod object_stores;
mod op_rows;
mod part;
mod part_rows;
mod part_slice;
mod plc_rows;
mod prove_compact;
mod prove_derived;
mod prove_labels;
mod prove_parts;
mod prove_snapshots;
mod record_proof;
mod record_trees;
mod replace;
mod replay;
mod repository;
mod repository_blocks;
mod repository_rows;
mod row_groups;
mod row_scan;
mod rows;
mod rule;
mod run_file;
mod runs;
mod scan;
mod seal;
mod sealed;
#[cfg(feature = "serve")]
mod serve;
mod signatures;
mod signed_commit;
mod spill;
mod spilled_file;
mod staged_file;
mod storage;
mod store_fault;
mod stored_file;
mod stored_revisions;
mod sweep;
mod table;
mod table_file;
mod table_rows;
mod table_scan;
mod thin;
mod uploads;
mod verification;
mod verify;
mod verify_files;
mod verify_layout;
mod wal;
mod walk;

pub use accounts::Accounts;
pub use archive::{Archive, TableStats};
pub use blobs::{BlobFault, BlobFile, StoredBlob};
pub use collections::Collections;
pub use compact::Compacted;
pub use decode_limits::DecodeLimit;
pub use erase::Erased;
pub use erasures::{ActiveAccounts, ErasureKey, NoConfirmation};
pub use error::{ArchiveError, ArchiveFault};
pub use event::{ArchivedEvent, kind};
pub use event_rows::EventRow;
pub use frame_records::{FrameRecords, OpPlace};
pub use hidden::{HideList, Subject};
pub use import::{ImportOptions, Imported, JUDGE};
pub use label_rows::{LabelRow, LabelScan};
pub use labels::{ArchivedLabel, LabelRange};
pub use lease::{Lease, LeaseRow};
pub use ledger::{FailedAccount, HostRow, Ledger, PageRow, StopRow};
pub use newest_repository::{LaterEvent, NewestRepository};
pub use part::ArchivedPart;
pub use part_slice::MAX_PART_BYTES;
pub use replay::{Replay, Replayed, ReplayedEvent};
pub use repository::ArchivedRepository;
pub use repository_blocks::RepositoryBlocks;
pub use row_scan::{RowScan, RowSelection};
pub use sealed::{Sealed, WorkId};
#[cfg(feature = "serve")]
pub use serve::{ArchiveServer, EventRate, ServeMetrics, ServeOptions};
pub use storage::Storage;
pub use store_fault::{StoreFault, StoreProblem};
pub use stored_file::StoredFile;
pub use stored_revisions::{StoredRevisions, account_key};
pub use table::Table;
pub use table_scan::EventScan;
pub use thin::Thinned;
pub use verification::{Finding, VerifyOptions, VerifyReport};
pub use wal::{Segment, StoredGroup, StoredResult, Unsealed, Wal, WalError, WalOptions, WalReader};
