//! Leases of the lists of a backfill: of several processes, one at a time asks a host.
//!
//! `LIST/leases/NUMBER.json` has the holder of a list and the end of its lease: [`LeaseRow`]. A lease is taken and renewed by
//! creating the next number, which one process alone can do. A row of a page is created once as well, so a holder that is late
//! asks a host longer than it may, and nothing else.

use serde::{Deserialize, Serialize};

use crate::error::ArchiveError;
use crate::ledger::Ledger;

/// The holder of a list, and the end of its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRow {
    /// The holder: a name that no other process uses.
    pub holder: String,
    /// The end in microseconds since 1970; 0 if the holder has returned the list.
    pub until: i64,
}

/// The answer to a request for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// It is the asking holder's.
    Held,
    /// It is the asking holder's, and another one had it before.
    TakenOver,
    /// Another holder has it.
    Elsewhere,
}

impl Ledger {
    /// Takes the lease of a list until `row.until`, or renews it; `now` is in microseconds since 1970, too. The lease of another
    /// holder counts until its end, unless `is_gone` says that the holder has ended. One that would last more than twice as long
    /// as the requested one does not count: it was written with a wrong clock.
    ///
    /// # Errors
    /// If the archive cannot be read or written.
    pub async fn lease(
        &self,
        list: &str,
        row: &LeaseRow,
        now: i64,
        is_gone: impl Fn(&str) -> bool,
    ) -> Result<Lease, ArchiveError> {
        let folder = self.leases_of(list);
        let last = match self.numbers(&folder).await?.pop() {
            None => None,
            Some(number) => match self.find(&path(&folder, number)).await? {
                // It was deleted after another one.
                None => return Ok(Lease::Elsewhere),
                Some(last) => Some((number, last)),
            },
        };
        let is_others = |last: &LeaseRow| last.holder != row.holder;
        let others = last.as_ref().map(|(_, last)| last).filter(|last| is_others(last));
        let latest = row.until.saturating_add(row.until.saturating_sub(now));
        let counts = |until: i64| until > now && until <= latest;
        if others.is_some_and(|last| counts(last.until) && !is_gone(&last.holder)) {
            return Ok(Lease::Elsewhere);
        }
        let number = last.as_ref().map_or(0, |(number, _)| number.saturating_add(1));
        if !self.put(&path(&folder, number), row).await? {
            return Ok(Lease::Elsewhere);
        }
        let mut numbers = self.numbers(&folder).await?;
        if numbers.pop() != Some(number) {
            // The number was free because its lease was deleted: a later one is another holder's.
            self.delete(&path(&folder, number)).await?;
            return Ok(Lease::Elsewhere);
        }
        for earlier in numbers {
            self.delete(&path(&folder, earlier)).await?;
        }
        Ok(if others.is_some() { Lease::TakenOver } else { Lease::Held })
    }

    /// Returns a list, if the holder has it.
    ///
    /// # Errors
    /// If the archive cannot be read or written.
    pub async fn return_lease(&self, list: &str, holder: &str) -> Result<(), ArchiveError> {
        let row = LeaseRow { holder: holder.to_owned(), until: 0 };
        let folder = self.leases_of(list);
        let Some(number) = self.numbers(&folder).await?.pop() else { return Ok(()) };
        let last: Option<LeaseRow> = self.find(&path(&folder, number)).await?;
        if last.is_some_and(|last| last.holder == holder) {
            // If another one has taken the next number meanwhile, there is nothing to return.
            self.put(&path(&folder, number.saturating_add(1)), &row).await?;
        }
        Ok(())
    }

    fn leases_of(&self, list: &str) -> String {
        format!("{}/{LEASES}", self.folder_of(list))
    }

    /// The numbers of the leases in a folder, in their order.
    async fn numbers(&self, folder: &str) -> Result<Vec<u64>, ArchiveError> {
        let names = self.names(folder).await?;
        let numbers = names.iter().filter_map(|name| {
            let digits = name.strip_suffix(".json")?;
            (digits.len() == 20).then(|| digits.parse().ok())?
        });
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

fn path(folder: &str, number: u64) -> String {
    format!("{folder}/{number:020}.json")
}

const LEASES: &str = "leases";
