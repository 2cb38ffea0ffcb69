//! Leases: of several processes that work on one archive, one at a time asks a host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archive::{Lease, LeaseRow};

use crate::backfill_run::{BackfillRun, PageError};
use crate::holder::is_gone;
use program::clock::now_micros;
use program::failure::Failure;

/// A list that this process has.
pub(crate) struct ListLease {
    list: String,
    renewed: Instant,
}

impl BackfillRun {
    /// Takes the lease of a list; `None` if another process has it.
    pub(crate) async fn lease(self: &Arc<Self>, list: &str) -> Result<Option<ListLease>, Failure> {
        let lease = ListLease { list: list.to_owned(), renewed: Instant::now() };
        match self.renew(&lease.list).await? {
            Lease::Held => Ok(Some(lease)),
            Lease::TakenOver => {
                // The other process may have stored this page, or a part of it.
                self.read_stored().await?;
                Ok(Some(lease))
            }
            Lease::Elsewhere => Ok(None),
        }
    }

    /// Works on a page, and renews the lease meanwhile; without the lease the work is dropped.
    pub(crate) async fn with_lease<T>(
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
    pub(crate) async fn return_lease(self: &Arc<Self>, lease: ListLease) -> Result<(), Failure> {
        let returned = self.on_thread(move |run, runtime| {
            Ok(runtime.block_on(run.ledger.return_lease(&lease.list, run.holder.name()))?)
        });
        returned.await
    }

    async fn renew(self: &Arc<Self>, list: &str) -> Result<Lease, Failure> {
        let list = list.to_owned();
        let renewed = self.on_thread(move |run, runtime| {
            let now = now_micros();
            let row = LeaseRow { holder: run.holder.name().to_owned(), until: now + SPAN_MICROS };
            Ok(runtime.block_on(run.ledger.lease(&list, &row, now, is_gone))?)
        });
        renewed.await
    }
}

/// Time for which a lease is taken. Clocks that differ by less than half of it let no two machines ask one host.
const SPAN_MICROS: i64 = 120_000_000;

/// Time after which a lease is renewed.
const RENEWAL: Duration = Duration::from_secs(30);

/// Bounds of the pause before lists that other processes have are asked for again.
pub(crate) const MIN_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(15);
