//! Seals events: sorts them, writes the files of the tables, and commits them to the logs, once.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use atproto::event::{Decoder, Event, Options};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use store::crash_point;

use crate::archive::Archive;
use crate::delta::{Add, Change, Committed};
use crate::error::ArchiveError;
use crate::event::ArchivedEvent;
use crate::merge::MAX_FILE_BYTES;
use crate::rows::RowBuilder;
use crate::table::Table;
use crate::table_file::TableFile;

/// Who seals events, and the number of this work: the same work is committed once, however often it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkId {
    /// The writer: a name that no other writer uses.
    pub writer: String,
    /// Rises with each work of the writer.
    pub number: i64,
}

/// What was sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Number of events.
    pub events: u64,
    /// Number of files.
    pub files: u64,
    /// Size of the files in bytes.
    pub bytes: u64,
}

impl AddAssign for Sealed {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.files += other.files;
        self.bytes += other.bytes;
    }
}

impl Archive {
    /// Stores these events in the tables `events` and `ops`. A crash before the end leaves files that the logs do not
    /// name; the same work, done again, writes the same files and commits them once.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn seal(
        &self,
        mut events: Vec<ArchivedEvent<'_>>,
        work: &WorkId,
    ) -> Result<Sealed, ArchiveError> {
        if self.has_committed(Table::Events, work).await? {
            return Ok(Sealed { events: events.len() as u64, ..Sealed::default() });
        }
        self.drop_erased(&mut events).await?;
        let mut by_day: BTreeMap<Date, Vec<ArchivedEvent<'_>>> = BTreeMap::new();
        let mut sealed = Sealed { events: events.len() as u64, ..Sealed::default() };
        for event in events.drain(..) {
            by_day.entry(day_of(event.received)).or_default().push(event);
        }
        let mut added: BTreeMap<Table, Vec<Add>> = BTreeMap::new();
        for (day, mut events) in by_day {
            events.sort_by_key(|event| (event.did, event.arrival));
            for (table, add) in self.write_files(day, &events).await? {
                (sealed.files, sealed.bytes) = (sealed.files + 1, sealed.bytes + add.size);
                added.entry(table).or_default().push(add);
            }
        }
        crash_point("archive/uploaded");
        // Operations first: an event that a reader sees has its operations.
        for table in [Table::Ops, Table::Events] {
            let add = added.remove(&table).unwrap_or_default();
            let txn = Some((work.writer.clone(), work.number));
            let change = Change { operation: "WRITE", add, txn, ..Change::default() };
            let committed = self.commit(table, &change).await?;
            debug_assert_ne!(committed, Committed::Superseded, "nothing is removed");
            crash_point("archive/committed");
        }
        Ok(sealed)
    }

    /// Drops events of erased accounts, up to the one that says that its account is active again.
    async fn drop_erased(&self, events: &mut Vec<ArchivedEvent<'_>>) -> Result<(), ArchiveError> {
        let mut list = self.hide_list().await?;
        if list.erased_accounts() == 0 {
            return Ok(());
        }
        let (mut decoder, mut restored) = (Decoder::new(Options::default()), Vec::new());
        events.sort_by_key(|event| event.arrival);
        events.retain(|event| {
            let Some(did) = event.did.filter(|did| list.is_erased(did)) else { return true };
            let is_active = calls_active(&mut decoder, event);
            if is_active {
                list.restore(did);
                restored.push((did.to_owned(), event.received));
            }
            is_active
        });
        for (did, received) in restored {
            self.mark_restored(&did, &list, received).await?;
        }
        Ok(())
    }

    /// Writes the files of one day: events of the same order as in the tables.
    async fn write_files(
        &self,
        day: Date,
        events: &[ArchivedEvent<'_>],
    ) -> Result<Vec<(Table, Add)>, ArchiveError> {
        let mut written = Vec::new();
        let mut files = DayFiles::create(self, day)?;
        let mut builder = RowBuilder::new();
        for group in groups(events) {
            let rows = builder.build(group);
            files.events.write(&rows.events)?;
            files.ops.write(&rows.ops)?;
            if files.events.len() >= MAX_FILE_BYTES {
                std::mem::replace(&mut files, DayFiles::create(self, day)?)
                    .finish(self, &mut written)
                    .await?;
            }
        }
        files.finish(self, &mut written).await?;
        Ok(written)
    }
}

/// The files of a day that are being written.
struct DayFiles {
    events: TableFile,
    ops: TableFile,
}

impl DayFiles {
    fn create(archive: &Archive, day: Date) -> Result<Self, ArchiveError> {
        let create = |table| TableFile::create(archive.storage(), table, day);
        Ok(Self { events: create(Table::Events)?, ops: create(Table::Ops)? })
    }

    async fn finish(
        self,
        archive: &Archive,
        written: &mut Vec<(Table, Add)>,
    ) -> Result<(), ArchiveError> {
        for (table, file) in [(Table::Events, self.events), (Table::Ops, self.ops)] {
            written.extend(file.finish(archive.storage()).await?.map(|add| (table, add)));
        }
        Ok(())
    }
}

/// Whether an event says that its account is active.
fn calls_active(decoder: &mut Decoder, event: &ArchivedEvent<'_>) -> bool {
    event.verdict == "unchecked"
        && matches!(decoder.decode(event.frame), Ok(Event::Account(account)) if account.active)
}

/// Splits events into groups whose rows are built at once.
fn groups<'e, 'a>(
    mut events: &'e [ArchivedEvent<'a>],
) -> impl Iterator<Item = &'e [ArchivedEvent<'a>]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |event: &&ArchivedEvent<'_>| {
            bytes += event.frame.len();
            bytes <= GROUP_BYTES
        };
        let count = events.iter().take(GROUP_EVENTS).take_while(fits).count().max(1);
        let (group, rest) = events.split_at_checked(count)?;
        events = rest;
        Some(group)
    })
}

/// The day of a time in microseconds since 1970, UTC. A time that no calendar has is of the first day.
pub(crate) fn day_of(micros: i64) -> Date {
    let time = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    TimeZone::UTC.to_datetime(time).date()
}

/// Events whose rows are built at once.
const GROUP_EVENTS: usize = 256;

/// Bytes of frames whose rows are built at once.
const GROUP_BYTES: usize = 4 << 20;
