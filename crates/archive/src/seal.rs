//! Seals events: sorts them, writes the files of the tables, and commits them to the logs, once.

use std::collections::{BTreeMap, HashMap, HashSet};

use atproto::event::{Decoder, Event, Options};
use base::crash_point;
use jiff::civil::Date;

use crate::archive::Archive;
use crate::delta::{Add, Change, Committed};
use crate::erasures::{ActiveAccounts, Erasure, NoConfirmation};
use crate::error::ArchiveError;
use crate::event::ArchivedEvent;
use crate::hidden::HideList;
use crate::merge::MAX_FILE_BYTES;
use crate::rows::RowBuilder;
use crate::sealed::{Sealed, WorkId};
use crate::table::{Table, day_of};
use crate::table_file::TableFile;

impl Archive {
    /// Stores these events in the tables `events` and `ops`. A crash before the end leaves files that the logs do not
    /// name; the same work, done again, writes the same files and commits them once. Events of erased accounts are left out.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn seal(
        &self,
        events: Vec<ArchivedEvent<'_>>,
        work: &WorkId,
    ) -> Result<Sealed, ArchiveError> {
        self.seal_confirmed(events, work, &NoConfirmation).await
    }

    /// Stores events as [`seal`](Self::seal). Events of an erased account that came after its erasure are stored from the first one
    /// on for which the account's own server confirms that it is active: no event is believed that says so, as none is signed.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn seal_confirmed(
        &self,
        mut events: Vec<ArchivedEvent<'_>>,
        work: &WorkId,
        servers: &dyn ActiveAccounts,
    ) -> Result<Sealed, ArchiveError> {
        if self.has_committed(Table::Events, work).await? {
            return Ok(Sealed { events: events.len() as u64, ..Sealed::default() });
        }
        self.drop_erased(&mut events, servers).await?;
        let mut by_day: BTreeMap<Date, Vec<ArchivedEvent<'_>>> = BTreeMap::new();
        let mut sealed = Sealed { events: events.len() as u64, ..Sealed::default() };
        for event in events.drain(..) {
            by_day.entry(day_of(event.received)).or_default().push(event);
        }
        let mut added: BTreeMap<Table, Vec<Add>> = BTreeMap::new();
        for (day, mut events) in by_day {
            events.sort_by_key(|event| (event.did, event.arrival));
            for (table, add) in self.write_files(day, &events).await? {
                sealed.files += 1;
                sealed.bytes += add.size;
                added.entry(table).or_default().push(add);
            }
        }
        crash_point("archive/uploaded");
        // Operations first: an event that a reader sees has its operations.
        for table in [Table::Ops, Table::Events] {
            let add = added.remove(&table).unwrap_or_default();
            let txns = vec![(work.writer.clone(), work.number)];
            let change = Change { operation: "WRITE", add, txns, ..Change::default() };
            let committed = self.commit(table, &change).await?;
            debug_assert_ne!(committed, Committed::Superseded, "nothing is removed");
            crash_point("archive/committed");
        }
        Ok(sealed)
    }

    /// Drops events of erased accounts, up to the one from which on their own servers confirm that they are active.
    async fn drop_erased(
        &self,
        events: &mut Vec<ArchivedEvent<'_>>,
        servers: &dyn ActiveAccounts,
    ) -> Result<(), ArchiveError> {
        let list = self.hide_list().await?;
        list.check_erasure_keys()?;
        if list.has_no_erasure() {
            return Ok(());
        }
        events.sort_by_key(|event| event.arrival);
        let restored = self.restore_active(events, &list, servers).await?;
        events.retain(|event| {
            let Some(did) = event.did else { return true };
            match (list.erasure(did), restored.get(did)) {
                (None, _) => true,
                (Some(_), Some(arrival)) => event.arrival >= *arrival,
                (Some(erasure), None) => !erasure.drops(event.received),
            }
        });
        Ok(())
    }

    /// Asks the servers of erased accounts that have later events, and records the active ones. Returns the arrival of the
    /// first event stored again, by account.
    async fn restore_active(
        &self,
        events: &[ArchivedEvent<'_>],
        list: &HideList,
        servers: &dyn ActiveAccounts,
    ) -> Result<HashMap<Box<str>, i64>, ArchiveError> {
        let mut decoder = Decoder::new(Options::default());
        let mut asked = HashSet::new();
        let mut restored = HashMap::new();
        for event in events {
            let Some(did) = event.did else { continue };
            let is_later =
                |erasure: Erasure| erasure.restored.is_none() && event.received > erasure.at;
            let may_restore = list.erasure(did).is_some_and(is_later)
                && is_of_active(&mut decoder, event)
                && asked.len() < MAX_ASKED
                && asked.insert(did);
            if may_restore && servers.is_active(did).await {
                self.mark_restored(did, list, event.received).await?;
                restored.insert(did.into(), event.arrival);
            }
        }
        Ok(restored)
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

/// Whether an event is one of an active account, if it is true: a verified one, or one that says so.
fn is_of_active(decoder: &mut Decoder, event: &ArchivedEvent<'_>) -> bool {
    let calls_active = |decoder: &mut Decoder| matches!(decoder.decode(event.frame), Ok(Event::Account(of)) if of.active);
    event.is_verified() || event.verdict == "unchecked" && calls_active(decoder)
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

/// Accounts of a seal whose servers are asked: a limit on the wait that a stranger can cause.
const MAX_ASKED: usize = 1_000;

/// Events whose rows are built at once.
const GROUP_EVENTS: usize = 256;

/// Bytes of frames whose rows are built at once.
const GROUP_BYTES: usize = 4 << 20;
