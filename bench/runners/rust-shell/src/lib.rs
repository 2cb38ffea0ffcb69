//! The shared parts of all Rust runners: a `Peer` trait per task with its work loop, the corpus readers,
//! the allocator, and the tests of the checks that codecs of Nostr events claim. The protocol is in the crate `protocol`.
//!
//! A runner implements the `Peer` trait of every task that it supports, with the calls of its libraries for one unit, and
//! calls [`run`].

pub mod commit;
pub mod decode;
mod files;
mod heap;
pub mod hostile;
pub mod mst;
pub mod nostr;
pub mod repo;
pub mod schnorr;
pub mod sigs;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use protocol::{Description, Load, Service, Session, Work};

pub use protocol::BoxError;

/// All Rust peers use the allocator that rsky's relay ships: on one core of an EPYC it makes the peers that build values
/// on the heap a third faster than glibc's allocator, and none slower.
#[global_allocator]
static ALLOCATOR: heap::Counted<mimalloc::MiMalloc> = heap::Counted(mimalloc::MiMalloc);

/// A peer's description and tasks.
pub struct Runner<'a> {
    /// The libraries that do the work, with their versions.
    pub engine: &'a str,
    /// The version of the peer itself.
    pub version: &'a str,
    pub tasks: &'a [Task],
}

/// A task that a peer can do; made by the function `task` of the module with its name. Entries with the same name have
/// the variants of all.
#[derive(Clone, Copy)]
pub struct Task {
    name: &'static str,
    variants: &'static [Variant],
    load: LoadFn,
}

/// A variant of a task, and the checks that its measured path makes.
#[derive(Clone, Copy)]
pub struct Variant {
    pub name: &'static str,
    pub checks: &'static [&'static str],
}

/// Loads a variant, given by its name, with the files at some paths.
type LoadFn = fn(&str, &[&str]) -> Result<Box<dyn Work>, BoxError>;

/// Answers the requests on standard input until it ends.
///
/// # Errors
///
/// When standard input or output fails.
pub fn run(runner: &Runner<'_>) -> io::Result<()> {
    protocol::serve(runner, io::stdin().lock(), io::stdout().lock())
}

impl Service for Runner<'_> {
    fn describe(&self) -> Description {
        let mut tasks: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        for task in self.tasks {
            let variants = tasks.entry(task.name.to_owned()).or_default();
            for Variant { name, checks } in task.variants {
                let checks = checks.iter().map(|check| (*check).to_owned()).collect();
                variants.insert((*name).to_owned(), checks);
            }
        }
        Description {
            engine: format!("{}, on mimalloc", self.engine),
            version: self.version.to_owned(),
            language: "rust".to_owned(),
            tasks,
        }
    }

    fn load(&self, load: &Load, session: &mut Session<'_>) -> Result<(), BoxError> {
        let Load { task, variant, files } = load;
        let has_variant = |known: &&Task| known.variants.iter().any(|it| it.name == *variant);
        let known = self.tasks.iter().filter(|known| known.name == *task).find(has_variant);
        let known = known.ok_or_else(|| format!("unknown variant {variant:?} of task {task:?}"))?;
        let paths = files.iter().map(|path| path.to_str().ok_or("a path is not UTF-8"));
        let mut work = (known.load)(variant, &paths.collect::<Result<Vec<_>, _>>()?)?;
        session(&mut *work);
        Ok(())
    }
}

/// Polls a future once, without a runtime: all that it needs is in memory.
///
/// # Errors
///
/// When it is not ready.
pub fn poll_once<F: Future>(future: F) -> Result<F::Output, BoxError> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err("a future over data in memory is not ready".into()),
    }
}

/// Does the work of a unit. A panic of the library counts as an error of the unit, so that it never ends a run.
#[inline]
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> Result<T, BoxError>) -> Result<T, BoxError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("panicked".into()))
}

/// Does the work of all units; a panic counts as an error of its unit. Without panics this costs nothing.
pub(crate) fn catch_panics<T>(units: &[T], mut work: impl FnMut(&T)) {
    let mut next = units.iter();
    while !next.as_slice().is_empty() {
        let _ = catch_unwind(AssertUnwindSafe(|| next.by_ref().for_each(&mut work)));
    }
}

/// Logs one of the first errors to standard error.
pub(crate) fn log_error(unit: usize, errors: u64, error: &BoxError) {
    if errors <= LOGGED_ERRORS {
        eprintln!("unit {unit}: {error}");
    }
}

/// Errors that are logged; the rest are only counted.
const LOGGED_ERRORS: u64 = 5;
