//! Leases: of several processes that work on one archive, one at a time asks a host.
//!
//! A holder has a locked file among the temporary files of its machine. A process that ends unlocks it, however it ends: other
//! processes of the machine go on with its lists at once, and those of other machines when its leases have ended.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive::{Lease, LeaseRow};

use super::run::{PageError, Run};
use crate::archive::now_micros;
use crate::failure::Failure;

/// This process, as leases name it.
#[derive(Debug)]
pub(super) struct Holder {
    name: String,
    /// Locked while the process lives.
    _file: File,
}

impl Holder {
    pub(super) fn new() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::Local(format!("{}: {error}", std::env::temp_dir().display()))
        };
        let file = tempfile::Builder::new().prefix(PREFIX).rand_bytes(NAME_LEN).tempfile();
        let (file, path) = file.and_then(|file| Ok(file.keep()?)).map_err(failed)?;
        file.try_lock().map_err(|error| failed(error.into()))?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        Ok(Self { name, _file: file })
    }

    /// Removes the file of a holder that has no list.
    pub(super) fn release(&self) {
        if let Some(path) = path_of(&self.name) {
            // One that stays is empty.
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether a holder was a process of this machine that has ended. Its empty file stays: it may have had other lists.
fn is_gone(holder: &str) -> bool {
    let file = path_of(holder).and_then(|path| File::open(path).ok());
    file.is_some_and(|file| file.try_lock().is_ok())
}

/// The file of a holder; `None` for a name that no holder has.
fn path_of(holder: &str) -> Option<PathBuf> {
    let random = holder.strip_prefix(PREFIX)?;
    let is_name =
        random.len() == NAME_LEN && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then(|| std::env::temp_dir().join(holder))
}

/// A list that this process has.
pub(super) struct ListLease {
    list: String,
    renewed: Instant,
}

impl Run {
    /// Takes the lease of a list; `None` if another process has it.
    pub(super) async fn lease(self: &Arc<Self>, list: &str) -> Result<Option<ListLease>, Failure> {
        let lease = ListLease { list: list.to_owned(), renewed: Instant::now() };
        match self.renew(&lease.list).await? {
            Lease::Held => Ok(Some(lease)),
            Lease::TakenOver => {
                // The other process may have stored a part of the next page.
                self.read_stored().await?;
                Ok(Some(lease))
            }
            Lease::Elsewhere => Ok(None),
        }
    }

    /// Works on a page, and renews the lease meanwhile; without the lease the work is dropped.
    pub(super) async fn with_lease<T>(
        self: &Arc<Self>,
        lease: &mut ListLease,
        work: impl Future<Output = Result<T, PageError>>,
    ) -> Result<T, PageError> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep_until((lease.renewed + RENEWAL).into()) => {}
            }
            // To its end: a renewal that went on after the work could follow the return of the list.
            let renewed = Instant::now();
            match self.renew(&lease.list).await? {
                Lease::Held => lease.renewed = renewed,
                Lease::TakenOver | Lease::Elsewhere => return Err(PageError::Elsewhere),
            }
        }
    }

    /// Returns the list, which another process may then have.
    pub(super) async fn return_lease(self: &Arc<Self>, lease: ListLease) -> Result<(), Failure> {
        let returned = self.on_thread(move |run, runtime| {
            Ok(runtime.block_on(run.ledger.return_lease(&lease.list, &run.holder.name))?)
        });
        returned.await
    }

    async fn renew(self: &Arc<Self>, list: &str) -> Result<Lease, Failure> {
        let list = list.to_owned();
        let renewed = self.on_thread(move |run, runtime| {
            let now = now_micros();
            let row = LeaseRow { holder: run.holder.name.clone(), until: now + SPAN_MICROS };
            Ok(runtime.block_on(run.ledger.lease(&list, &row, now, is_gone))?)
        });
        renewed.await
    }
}

/// The beginning of the names of holders and of their files, and the length of the random rest.
const PREFIX: &str = "wireproof-backfill-";
const NAME_LEN: usize = 22;

/// Time for which a lease is taken. Clocks that differ by less than half of it let no two machines ask one host.
const SPAN_MICROS: i64 = 120_000_000;

/// Time after which a lease is renewed.
const RENEWAL: Duration = Duration::from_secs(30);

/// Bounds of the pause before lists that other processes have are asked for again.
pub(super) const MIN_PAUSE: Duration = Duration::from_secs(1);
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_gone_when_its_process_has_ended_and_unknown_where_it_never_was() {
        let holder = Holder::new().unwrap();
        let (name, path) = (holder.name.clone(), path_of(&holder.name).unwrap());
        assert!(path.exists() && !is_gone(&name));
        drop(holder);
        assert!(is_gone(&name) && is_gone(&name), "of each of its lists");
        fs::remove_file(path).unwrap();
        assert!(!is_gone(&name), "another machine cannot know");
        let holder = Holder::new().unwrap();
        holder.release();
        assert!(!path_of(&holder.name).unwrap().exists());
    }

    #[test]
    fn a_name_of_a_holder_leads_to_no_other_file() {
        for name in ["", "/etc/passwd", "wireproof-backfill-../../../../../etc/passwd1", PREFIX] {
            assert_eq!(path_of(name), None, "{name}");
        }
    }
}
