//! Folds events, which come in the order of the archive, to the present records of each account, in bounded memory.
//!
//! Events are written to temporary files by a hash of their account. A file that is too large is divided again. So the events of
//! an account are in one file, in order, and only the accounts of one file are folded at a time: their records stay in the file,
//! which is mapped.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

use atproto::syntax::{Did, DidBuf, RepoPathChecker, Tid};
use bytes::Bytes;
use codec::cbor;
use kernels::sha256;
use mapping::MappedFile;

use crate::segment::{Row, RowKind};

/// An account as the archive has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoldedAccount {
    /// The account.
    pub(crate) did: DidBuf,
    /// The latest revision of its events.
    pub(crate) rev: Option<Tid>,
    /// Its status, if it is not active.
    pub(crate) status: Option<Box<str>>,
    /// Its present records, by path.
    pub(crate) records: BTreeMap<String, Bytes>,
    /// Number of its events.
    pub(crate) events: u64,
    /// Number of its events that cannot be a part of a repository: without a path, or a record without bytes.
    pub(crate) unusable: u64,
}

impl FoldedAccount {
    fn new(did: DidBuf) -> Self {
        let records = BTreeMap::new();
        Self { did, rev: None, status: None, records, events: 0, unusable: 0 }
    }

    fn apply(&mut self, event: &StoredEvent<'_>, file: &Bytes, paths: &mut RepoPathChecker) {
        self.events += 1;
        self.rev = self.rev.max(event.rev());
        match event.kind {
            RowKind::Create | RowKind::Update | RowKind::Resync => {
                let is_path = paths.check(event.path.as_bytes()).is_ok();
                if is_path && !event.payload.is_empty() {
                    self.records.insert(event.path.to_owned(), file.slice_ref(event.payload));
                } else {
                    self.unusable += 1;
                }
            }
            RowKind::Delete => drop(self.records.remove(event.path)),
            // The repository begins anew, with the records that follow.
            RowKind::Sync => self.records.clear(),
            RowKind::Account => self.set_status(event.payload),
            RowKind::Identity => {}
        }
    }

    fn set_status(&mut self, event: &[u8]) {
        let arena = cbor::Arena::new();
        let Ok(event) = cbor::decode(event, &arena) else {
            self.unusable += 1;
            return;
        };
        let is_active =
            event.get("active").is_some_and(|value| matches!(value, cbor::Value::Boolean(true)));
        let status = event.get("status").and_then(|value| value.as_text()).unwrap_or("inactive");
        self.status = (!is_active).then(|| status.chars().take(MAX_STATUS_CHARS).collect());
        if !is_active && status == "deleted" {
            self.records.clear();
        }
    }
}

/// Takes the events of the archive in order.
#[derive(Debug)]
pub(crate) struct Fold {
    files: Vec<BufWriter<File>>,
    sizes: Vec<u64>,
    level: u8,
    max_file_bytes: u64,
    /// Number of events without an account.
    pub(crate) without_account: u64,
}

/// Events of accounts whose hashes begin alike.
#[derive(Debug)]
struct EventFile {
    events: Bytes,
    level: u8,
}

/// The accounts, a group at a time.
#[derive(Debug)]
pub(crate) struct FoldedAccounts {
    files: Vec<EventFile>,
    max_file_bytes: u64,
}

impl Fold {
    pub(crate) fn new(max_file_bytes: u64) -> io::Result<Self> {
        Self::of_level(0, max_file_bytes)
    }

    fn of_level(level: u8, max_file_bytes: u64) -> io::Result<Self> {
        let files = (0..FILES).map(|_| tempfile::tempfile().map(BufWriter::new));
        Ok(Self {
            files: files.collect::<io::Result<_>>()?,
            sizes: vec![0; FILES],
            level,
            max_file_bytes,
            without_account: 0,
        })
    }

    /// Adds the next event.
    pub(crate) fn add(&mut self, row: &Row<'_>) -> io::Result<()> {
        if Did::parse(row.did).is_err() {
            self.without_account += 1;
            return Ok(());
        }
        let path = if row.collection.is_empty() && row.rkey.is_empty() {
            String::new()
        } else {
            format!("{}/{}", row.collection, row.rkey)
        };
        let event = StoredEvent {
            kind: row.kind,
            did: row.did,
            path: &path,
            rev: row.rev,
            payload: row.payload,
        };
        self.write(&event)
    }

    fn write(&mut self, event: &StoredEvent<'_>) -> io::Result<()> {
        let number =
            usize::from(sha256::digest(event.did.as_bytes())[usize::from(self.level)]) % FILES;
        self.sizes[number] += event.write(&mut self.files[number])?;
        Ok(())
    }

    /// All accounts.
    pub(crate) fn finish(self) -> io::Result<FoldedAccounts> {
        let max_file_bytes = self.max_file_bytes;
        Ok(FoldedAccounts { files: self.into_files()?, max_file_bytes })
    }

    fn into_files(self) -> io::Result<Vec<EventFile>> {
        let level = self.level;
        let filled = self.files.into_iter().zip(self.sizes).filter(|(_, size)| *size > 0);
        filled
            .map(|(file, _)| {
                let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.rewind()?;
                Ok(EventFile { events: Bytes::from_owner(Mapped(MappedFile::of(&file)?)), level })
            })
            .collect()
    }
}

impl FoldedAccounts {
    /// The accounts of the next file, by DID; `None` after the last.
    pub(crate) fn next(&mut self) -> io::Result<Option<Vec<FoldedAccount>>> {
        while let Some(file) = self.files.pop() {
            if file.events.len() as u64 <= self.max_file_bytes || file.level == MAX_LEVEL {
                return Ok(Some(file.fold()));
            }
            let mut fold = Fold::of_level(file.level + 1, self.max_file_bytes)?;
            file.read().try_for_each(|event| fold.write(&event))?;
            drop(file);
            self.files.extend(fold.into_files()?);
        }
        Ok(None)
    }
}

impl EventFile {
    fn read(&self) -> impl Iterator<Item = StoredEvent<'_>> {
        let mut rest = &self.events[..];
        std::iter::from_fn(move || StoredEvent::read(&mut rest))
    }

    fn fold(&self) -> Vec<FoldedAccount> {
        let mut accounts: BTreeMap<&str, FoldedAccount> = BTreeMap::new();
        let mut paths = RepoPathChecker::default();
        for event in self.read() {
            let account = accounts.entry(event.did).or_insert_with(|| {
                FoldedAccount::new(event.did.parse().expect("a DID, as it was when it was written"))
            });
            account.apply(&event, &self.events, &mut paths);
        }
        accounts.into_values().collect()
    }
}

struct Mapped(MappedFile);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// An event in a temporary file: its kind, four lengths, and four parts.
#[derive(Clone, Copy, Debug)]
struct StoredEvent<'e> {
    kind: RowKind,
    did: &'e str,
    path: &'e str,
    rev: &'e str,
    payload: &'e [u8],
}

impl<'e> StoredEvent<'e> {
    fn write(&self, out: &mut impl Write) -> io::Result<u64> {
        let parts = [self.did.as_bytes(), self.path.as_bytes(), self.rev.as_bytes(), self.payload];
        out.write_all(&[self.kind as u8])?;
        for part in parts {
            // Parts come from columns whose lengths have at most four bytes.
            out.write_all(&(part.len() as u32).to_le_bytes())?;
        }
        parts.iter().try_for_each(|part| out.write_all(part))?;
        let len: usize = parts.iter().map(|part| part.len()).sum();
        Ok((HEAD_LEN + len) as u64)
    }

    fn read(rest: &mut &'e [u8]) -> Option<Self> {
        let (head, after) = rest.split_first_chunk::<HEAD_LEN>()?;
        let kind = KINDS.into_iter().find(|kind| *kind as u8 == head[0])?;
        let mut after = after;
        let mut parts = [&[][..]; 4];
        for (part, len) in parts.iter_mut().zip(head[1..].chunks_exact(4)) {
            let len = u32::from_le_bytes(len.try_into().ok()?) as usize;
            (*part, after) = after.split_at_checked(len)?;
        }
        *rest = after;
        let [did, path, rev, payload] = parts;
        let text = |part| std::str::from_utf8(part).ok();
        Some(Self { kind, did: text(did)?, path: text(path)?, rev: text(rev)?, payload })
    }

    /// The revision: of an operation in its column, of a `#sync` in the event.
    fn rev(&self) -> Option<Tid> {
        if self.kind != RowKind::Sync || !self.rev.is_empty() {
            return Tid::parse(self.rev).ok();
        }
        let arena = cbor::Arena::new();
        let event = cbor::decode(self.payload, &arena).ok()?;
        Tid::parse(event.get("rev")?.as_text()?).ok()
    }
}

const KINDS: [RowKind; 7] = [
    RowKind::Create,
    RowKind::Update,
    RowKind::Delete,
    RowKind::Identity,
    RowKind::Account,
    RowKind::Sync,
    RowKind::Resync,
];

/// Bytes before the parts of an event.
const HEAD_LEN: usize = 17;

/// Number of files that events are divided into.
const FILES: usize = 64;

/// How often a file is divided again. Files of the last level are folded whatever their size: they have few accounts.
const MAX_LEVEL: u8 = 3;

/// Bytes of the events of a file that are folded at a time.
pub(crate) const MAX_FILE_BYTES: u64 = 256 << 20;

const MAX_STATUS_CHARS: usize = 32;
