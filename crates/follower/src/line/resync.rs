//! The lines of a repository: its records, or their difference from the records that the reader has.

use std::cmp::Ordering;
use std::io;

use atproto::event::Action;
use atproto::mst::canonical;
use atproto::repo::{Record, RepoError, Repository};
use atproto::syntax::DatetimeBuf;
use bumpalo::Bump;
use delivery::{DeliveredRecord, DeliveredRecords, RecordEffects};
use events::{Body, Code, Line, LineWriter, NewContent, NewOp, Proof, Resync, Text, Verdict};
use net::firehose::{ResyncedRecords, ResyncedRepo};
use verify::{InvalidRecord, repository};

use super::super::condition::Subject;
use super::super::repository_slice::Slice;
use super::super::selection::Filter;
use super::event::write_invalid;
use super::{LineHeader, deletion};

/// The lines of a resynced repository: its selected records in pieces, in order of their paths, or their difference
/// from the records that the reader has.
pub struct ResyncLines<'r, 'a> {
    resynced: &'r ResyncedRepo,
    repository: &'r Repository<'a>,
    filter: &'r Filter,
    has_proofs: bool,
    /// The collections in which the reader has all records after the last line; `None` for all collections.
    complete: Option<Vec<String>>,
    records: ResyncedRecords<'r, 'a>,
    /// The next selected record.
    next: Option<Record<'a>>,
    /// The records that the reader has; `None` where they are not known.
    delivered: Option<DeliveredRecords>,
    next_delivered: Option<DeliveredRecord>,
    pieces: u64,
}

/// A change that a line of a repository has.
#[derive(Debug)]
enum RepositoryChange<'a> {
    Put(Action, Record<'a>),
    /// `filtered`: the repository has the record, which does not match any more.
    Delete {
        path: Box<str>,
        filtered: bool,
    },
    /// The record is not selected, so that a whole repository without it may have replaced it at the reader: it is delivered again
    /// once it is selected.
    Forget(Box<str>),
}

impl<'r, 'a> ResyncLines<'r, 'a> {
    pub(crate) fn new(
        resynced: &'r ResyncedRepo,
        repository: &'r Repository<'a>,
        filter: &'r Filter,
        has_proofs: bool,
        complete: Option<Vec<String>>,
    ) -> Result<Self, RepoError> {
        let mut lines = Self {
            resynced,
            repository,
            filter,
            has_proofs,
            complete,
            records: resynced.records(repository)?,
            next: None,
            delivered: None,
            next_delivered: None,
            pieces: 0,
        };
        lines.advance()?;
        Ok(lines)
    }

    /// Leaves out the records that the reader has, if they are complete, and adds deletions of records that the
    /// repository does not have. Records that are not selected stay, except in a whole repository: the reader may delete
    /// what its lines lack, so the outbox forgets them.
    pub(crate) fn compare_with(&mut self, delivered: DeliveredRecords) -> io::Result<()> {
        self.delivered = Some(delivered);
        self.advance_delivered()
    }

    /// Whether the lines have all records.
    pub(crate) fn is_whole(&self) -> bool {
        self.delivered.as_ref().is_none_or(|delivered| !delivered.is_complete())
    }

    /// Whether the lines add collections to others that the reader does not have as of this commit, or of which nothing is known.
    pub(crate) fn lacks_base(&self) -> bool {
        let has_others = |of: &DeliveredRecords| of.is_complete() && of.is_widened();
        self.resynced.base.is_some() && !self.delivered.as_ref().is_some_and(has_others)
    }

    /// The repository.
    pub fn repository(&self) -> &'r ResyncedRepo {
        self.resynced
    }

    /// Number of the next line.
    pub(crate) fn next_piece(&self) -> u64 {
        self.pieces
    }

    /// Writes the next line, and adds its changes to `effects`. Whether it is the last; there is at least one, even
    /// without records.
    pub(crate) fn write_next(
        &mut self,
        lines: &mut Vec<u8>,
        header: LineHeader<'_>,
        mut effects: Option<&mut RecordEffects>,
    ) -> io::Result<bool> {
        let (head, is_whole) = (&self.resynced.head, self.is_whole());
        let (rev, commit) = (head.rev.to_string(), head.commit.to_string());
        let mut resync = Resync {
            time: header.fetch_time(),
            host: (&*self.resynced.host).into(),
            did: (&*self.resynced.did).into(),
            rev: rev.into(),
            commit: commit.into(),
            collections: self
                .resynced
                .collections
                .as_ref()
                .map(|names| names.iter().map(|name| Text::from(name.as_str())).collect()),
            complete: self
                .complete
                .as_ref()
                .map(|names| names.iter().map(|name| name.clone().into()).collect()),
            records: self.resynced.records,
            invalid_records: self.resynced.invalid_records,
            bytes: self.resynced.bytes,
            piece: self.pieces,
            whole: is_whole,
            ops: Vec::new(),
            last: false,
            proof: None,
        };
        let (id, live) = header.id_and_live();
        let line = |resync| {
            let id = id.clone();
            let verdict = Verdict::Verified;
            let code = Code::Verified;
            Line { id, live, verdict, code, body: Body::Resync(resync) }
        };
        let mut writer = LineWriter::begin(lines, &line(resync.clone()));
        writer.begin_ops();
        let mut slice = self.has_proofs.then(|| Slice::new(self.repository)).transpose()?;
        let (mut count, mut forgotten) = (0, 0);
        while count < MAX_PIECE_RECORDS
            && forgotten < MAX_PIECE_FORGOTTEN
            && writer.byte_len() < MAX_PIECE_BYTES
            && let Some(change) = self.next_change()?
        {
            if let Some(effects) = &mut effects {
                change.add_to(effects);
            }
            if matches!(change, RepositoryChange::Forget(_)) {
                forgotten += 1;
                continue;
            }
            change.write(&mut writer);
            if let Some(slice) = &mut slice {
                slice.add(change.path())?;
            }
            count += 1;
        }
        // The rest of the reader's records are skipped or deleted.
        resync.last = !self.has_change()?;
        resync.proof = slice.map(|slice| Proof::Blocks((&*slice.finish()).into()));
        let is_last = resync.last;
        writer.end(&line(resync));
        self.pieces += 1;
        Ok(is_last)
    }

    /// Whether another change follows, after skipping equal records.
    fn has_change(&mut self) -> io::Result<bool> {
        while self.is_unchanged() {
            self.advance().map_err(io::Error::other)?;
            self.advance_delivered()?;
        }
        Ok(self.next.is_some() || self.next_delivered.is_some())
    }

    /// Whether the next record needs no line: the reader has it, and all that the lines before brought.
    fn is_unchanged(&self) -> bool {
        let (Some(record), Some(delivered)) = (&self.next, &self.next_delivered) else {
            return false;
        };
        !self.is_whole()
            && *record.path == *delivered.path
            && delivered.has_hash(record.cid.digest())
    }

    /// The next change.
    fn next_change(&mut self) -> io::Result<Option<RepositoryChange<'a>>> {
        if !self.has_change()? {
            return Ok(None);
        }
        let delivered = self.next_delivered.as_ref().map(|delivered| delivered.path.clone());
        let order = match (&self.next, &delivered) {
            (Some(record), Some(path)) => (*record.path).cmp(path),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        if order != Ordering::Less {
            self.advance_delivered()?;
        }
        let change = match (order, self.next.take(), delivered) {
            (Ordering::Greater, next, Some(path)) => {
                self.next = next;
                if !self.filter.has_path(&path) {
                    return Ok(Some(RepositoryChange::Forget(path)));
                }
                let filtered = self.filter.condition.is_some() && self.has_record(&path)?;
                return Ok(Some(RepositoryChange::Delete { path, filtered }));
            }
            (order, record, _) => record.map(|record| {
                let is_update = order == Ordering::Equal && !self.is_whole();
                let action = if is_update { Action::Update } else { Action::Create };
                RepositoryChange::Put(action, record)
            }),
        };
        self.advance().map_err(io::Error::other)?;
        Ok(change)
    }

    /// Whether the repository has a record, selected or not.
    fn has_record(&self, path: &str) -> io::Result<bool> {
        let data = self.repository.commit().data;
        let found = canonical::search(data, self.repository, path.as_bytes());
        Ok(found.map_err(io::Error::other)?.value.is_some())
    }

    fn advance_delivered(&mut self) -> io::Result<()> {
        let is_whole = self.is_whole();
        let Some(delivered) = &mut self.delivered else { return Ok(()) };
        self.next_delivered = loop {
            match delivered.next_record().map_err(io::Error::other)? {
                Some(record) if !is_whole && !self.filter.has_path(&record.path) => {}
                next => break next,
            }
        };
        Ok(())
    }

    fn advance(&mut self) -> Result<(), RepoError> {
        let selected = |record: &Result<Record<'a>, RepoError>| {
            record.as_ref().map_or(true, |record| is_selected(self.filter, self.resynced, record))
        };
        self.next = self.records.find(selected).transpose()?;
        Ok(())
    }
}

impl RepositoryChange<'_> {
    fn path(&self) -> &str {
        match self {
            Self::Put(_, record) => &record.path,
            Self::Delete { path, .. } | Self::Forget(path) => path,
        }
    }

    fn add_to(&self, effects: &mut RecordEffects) {
        match self {
            Self::Put(_, record) => effects.put(&record.path, record.cid.digest()),
            Self::Delete { path, .. } | Self::Forget(path) => effects.delete(path),
        }
    }

    /// Writes the operation.
    fn write(&self, writer: &mut LineWriter<'_>) {
        match self {
            Self::Put(action, record) => write_record(writer, *action, record),
            Self::Delete { path, filtered } => writer.op(&deletion(path, *filtered)),
            Self::Forget(_) => {}
        }
    }
}

/// Whether a record of a repository is delivered.
fn is_selected(filter: &Filter, resynced: &ResyncedRepo, record: &Record<'_>) -> bool {
    let Some(condition) = filter.condition.as_ref().filter(|_| filter.has_path(&record.path))
    else {
        return filter.has_path(&record.path);
    };
    let (arena, rev) = (Bump::new(), resynced.head.rev.to_string());
    let max_bytes = repository::Options::default().max_record_bytes;
    let value = match InvalidRecord::of_record(record, max_bytes) {
        Some(_) => None,
        None => record.value(&arena).ok(),
    };
    condition.matches(&Subject {
        did: &resynced.did,
        rev: &rev,
        live: false,
        action: Action::Create,
        path: &record.path,
        record: value.as_ref().map(|value| (value, record.block.len())),
    })
}

impl LineHeader<'_> {
    /// When a repository was fetched.
    fn fetch_time(self) -> Option<Text<'static>> {
        let Self::History { fetched_micros, .. } = self else { return None };
        let time = i64::try_from(fetched_micros).ok().and_then(DatetimeBuf::from_unix_micros)?;
        Some(time.as_str().to_owned().into())
    }
}

/// Writes a record in the form of an operation.
fn write_record(writer: &mut LineWriter<'_>, action: Action, record: &Record<'_>) {
    let arena = Bump::new();
    let (path, cid) = (&*record.path, Some(record.cid.as_cid_ref()));
    let put = NewOp { action, path, cid, content: None, filtered: false };
    let max_bytes = repository::Options::default().max_record_bytes;
    if let Some(invalid) = InvalidRecord::of_record(record, max_bytes) {
        write_invalid(writer, put, &invalid, record.block);
    } else if let Ok(value) = record.value(&arena) {
        writer.op(&NewOp { content: Some(NewContent::Record(&value, record.block)), ..put });
    } else {
        writer.op(&put);
    }
}

/// Number of records that one line forgets.
const MAX_PIECE_FORGOTTEN: usize = 10_000;

/// Number of records, and size in bytes, at which the line of a resync ends.
const MAX_PIECE_RECORDS: usize = 100;
const MAX_PIECE_BYTES: usize = 1 << 20;
