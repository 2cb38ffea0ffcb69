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
    /// An account without events.
    pub(crate) fn new(did: DidBuf) -> Self {
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
    /// Created when they have an event.
    files: [Option<BufWriter<File>>; FILES],
    level: u8,
    max_file_bytes: u64,
    /// Bytes that may still be written.
    room: u64,
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
    /// A fold of files that are divided above `max_file_bytes`, of at most `max_bytes` in all.
    pub(crate) fn new(max_file_bytes: u64, max_bytes: u64) -> Self {
        Self::of_level(0, max_file_bytes, max_bytes)
    }

    fn of_level(level: u8, max_file_bytes: u64, room: u64) -> Self {
        let files = std::array::from_fn(|_| None);
        Self { files, level, max_file_bytes, room, without_account: 0 }
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
        let Some(room) = self.room.checked_sub(event.len()) else {
            let text = "the events have more bytes than --max-temporary-bytes allows";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        };
        self.room = room;
        let number =
            usize::from(sha256::digest(event.did.as_bytes())[usize::from(self.level)]) % FILES;
        let file = match &mut self.files[number] {
            Some(file) => file,
            none => none.insert(BufWriter::new(tempfile::tempfile()?)),
        };
        event.write(file)
    }

    /// All accounts.
    pub(crate) fn finish(self) -> io::Result<FoldedAccounts> {
        let max_file_bytes = self.max_file_bytes;
        Ok(FoldedAccounts { files: self.into_files()?, max_file_bytes })
    }

    fn into_files(self) -> io::Result<Vec<EventFile>> {
        let level = self.level;
        let files = self.files.into_iter().flatten();
        files
            .map(|file| {
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
            let mut fold = Fold::of_level(file.level + 1, self.max_file_bytes, u64::MAX);
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
    /// Bytes in the file.
    fn len(&self) -> u64 {
        (HEAD_LEN + self.did.len() + self.path.len() + self.rev.len() + self.payload.len()) as u64
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let parts = [self.did.as_bytes(), self.path.as_bytes(), self.rev.as_bytes(), self.payload];
        out.write_all(&[self.kind as u8])?;
        for part in parts {
            // Parts come from columns whose lengths have at most four bytes.
            out.write_all(&(part.len() as u32).to_le_bytes())?;
        }
        parts.iter().try_for_each(|part| out.write_all(part))
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

#[cfg(test)]
mod tests {
    use codec::cbor::Encoder;
    use simnet::random::{Random, Seed};

    use super::*;
    use crate::segment::Block;
    use simnet::jetstream_segment::{SealedSegment, SegmentEvent};

    const REVS: [&str; 4] = ["3kzzzzzzzzz2a", "3lzzzzzzzzz2a", "3mzzzzzzzzz2a", "3nzzzzzzzzz2a"];

    fn account_event(status: Option<&str>) -> Vec<u8> {
        let mut out = Encoder::new();
        out.map(1 + usize::from(status.is_some())).text("active").boolean(status.is_none());
        if let Some(status) = status {
            out.text("status").text(status);
        }
        out.into_bytes()
    }

    fn random_event(random: &mut Random, seq: u64) -> SegmentEvent {
        let kind = *random.pick(&[1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 7]);
        let status = *random.pick(&[None, None, Some("deleted"), Some("deactivated")]);
        let is_operation = !(4..=6).contains(&kind);
        let text = |text: String| if is_operation { text } else { String::new() };
        SegmentEvent {
            seq,
            kind,
            did: format!("did:web:account{}.test", random.below(40)),
            collection: text(format!("app.bsky.feed.kind{}", random.below(2))),
            rkey: text(format!("key{}", random.below(12))),
            rev: text((*random.pick(&REVS)).to_owned()),
            payload: match kind {
                3 => Vec::new(),
                5 => account_event(status),
                _ => seq.to_le_bytes().to_vec(),
            },
            ..SegmentEvent::default()
        }
    }

    /// The state of every account, computed from all of its events at once.
    fn brute_force(events: &[SegmentEvent]) -> BTreeMap<String, BTreeMap<String, Vec<u8>>> {
        let mut accounts = BTreeMap::new();
        for did in events.iter().map(|event| &event.did) {
            let own: Vec<&SegmentEvent> = events.iter().filter(|event| event.did == *did).collect();
            let is_end = |event: &&SegmentEvent| {
                event.kind == 6
                    || event.kind == 5 && event.payload == account_event(Some("deleted"))
            };
            let start = own.iter().rposition(is_end).map_or(0, |end| end + 1);
            let last_of = |path: &String| {
                let same = own[start..].iter().rev();
                same.copied().find(|event| {
                    matches!(event.kind, 1 | 2 | 3 | 7)
                        && format!("{}/{}", event.collection, event.rkey) == *path
                })
            };
            let paths = own.iter().map(|event| format!("{}/{}", event.collection, event.rkey));
            let records = paths.filter_map(|path| {
                let last = last_of(&path).filter(|last| last.kind != 3)?;
                Some((path, last.payload.clone()))
            });
            accounts.insert(did.clone(), records.collect());
        }
        accounts
    }

    fn folded(events: &[SegmentEvent], max_file_bytes: u64) -> Vec<FoldedAccount> {
        let mut fold = Fold::new(max_file_bytes, u64::MAX);
        let segment = SealedSegment::write(events, 50);
        for number in 0..segment.blocks.len() {
            let block = Block::read(segment.frame(number).unwrap()).unwrap();
            block.rows().for_each(|row| fold.add(&row.unwrap()).unwrap());
        }
        let mut accounts = fold.finish().unwrap();
        let groups = std::iter::from_fn(|| accounts.next().unwrap());
        let mut all: Vec<FoldedAccount> = groups.flatten().collect();
        all.sort_by(|one, other| one.did.as_str().cmp(other.did.as_str()));
        all
    }

    #[test]
    fn random_events_are_folded_to_the_same_records_as_by_brute_force_whatever_the_memory() {
        for seed in 0..30 {
            let mut random = Seed::new(seed, "events").stream(0);
            let count = random.between(1, 1500);
            let events: Vec<_> = (1..=count).map(|seq| random_event(&mut random, seq)).collect();
            let expected = brute_force(&events);
            for max_file_bytes in [1 << 20, 700, 1] {
                let accounts = folded(&events, max_file_bytes);
                let records: BTreeMap<String, BTreeMap<String, Vec<u8>>> = accounts
                    .iter()
                    .map(|account| {
                        let records = account.records.iter();
                        let owned = records.map(|(path, record)| (path.clone(), record.to_vec()));
                        (account.did.to_string(), owned.collect())
                    })
                    .collect();
                assert_eq!(records, expected, "seed {seed}, {max_file_bytes} bytes");
                let counted: u64 = accounts.iter().map(|account| account.events).sum();
                assert_eq!(counted, count);
            }
        }
    }

    fn one(events: &[(u8, &str, Vec<u8>)]) -> FoldedAccount {
        let events: Vec<SegmentEvent> = (1..)
            .zip(events)
            .map(|(seq, (kind, key, payload))| SegmentEvent {
                seq,
                kind: *kind,
                did: "did:web:a.test".to_owned(),
                collection: if key.is_empty() { "" } else { "app.bsky.feed.post" }.to_owned(),
                rkey: (*key).to_owned(),
                rev: if key.is_empty() { "" } else { REVS[seq as usize % 4] }.to_owned(),
                payload: payload.clone(),
                ..SegmentEvent::default()
            })
            .collect();
        folded(&events, 1 << 20).remove(0)
    }

    #[test]
    fn the_latest_revision_is_kept_even_if_its_record_is_gone() {
        let account = one(&[(1, "a", vec![1]), (3, "a", Vec::new()), (1, "b", vec![2])]);
        assert_eq!(account.rev.unwrap().to_string(), REVS[3]);
        assert_eq!(account.records.len(), 1);
    }

    #[test]
    fn a_status_lasts_until_the_account_is_active_again() {
        let deactivated = account_event(Some("deactivated"));
        let account = one(&[(1, "a", vec![1]), (5, "", deactivated.clone())]);
        assert_eq!((account.status.as_deref(), account.records.len()), (Some("deactivated"), 1));
        let account = one(&[(1, "a", vec![1]), (5, "", deactivated), (5, "", account_event(None))]);
        assert_eq!((account.status, account.records.len()), (None, 1));
        assert_eq!(one(&[(5, "", vec![0xff])]).unusable, 1);
    }

    #[test]
    fn events_that_no_repository_can_have_are_counted_and_change_nothing() {
        let account = one(&[(1, "a", vec![1]), (2, "a", Vec::new()), (1, "no key", vec![1])]);
        assert_eq!((account.unusable, account.records.len()), (2, 1));
    }

    #[test]
    fn events_that_need_more_room_than_there_is_are_refused() {
        let payload = vec![0xa0; 100];
        let event = SegmentEvent {
            seq: 1,
            kind: 4,
            did: "did:web:a.test".into(),
            payload,
            ..Default::default()
        };
        let segment = SealedSegment::write(&[event.clone(), SegmentEvent { seq: 2, ..event }], 2);
        let block = Block::read(segment.frame(0).unwrap()).unwrap();
        let mut fold = Fold::new(MAX_FILE_BYTES, 200);
        let added: Vec<bool> = block.rows().map(|row| fold.add(&row.unwrap()).is_ok()).collect();
        assert_eq!(added, [true, false]);
    }

    #[test]
    fn a_row_without_a_did_is_of_no_account() {
        let event = SegmentEvent { seq: 1, kind: 4, did: "nobody".into(), ..Default::default() };
        let segment = SealedSegment::write(&[event], 1);
        let block = Block::read(segment.frame(0).unwrap()).unwrap();
        let mut fold = Fold::new(MAX_FILE_BYTES, u64::MAX);
        block.rows().for_each(|row| fold.add(&row.unwrap()).unwrap());
        assert_eq!(fold.without_account, 1);
        assert!(fold.finish().unwrap().next().unwrap().is_none());
    }
}
