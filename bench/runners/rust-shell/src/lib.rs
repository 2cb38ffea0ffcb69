//! How does a Rust peer become a runner? It implements the `Peer` of each task that it can do, and
//! calls [`run`].
//!
//! The shell speaks the protocol of `bench/runners/PROTOCOL.md`, splits the corpus, holds the clock
//! and adds up the counts. A runner is left with one thing: how its libraries do the work of a unit.

pub mod commit;
pub mod decode;
mod files;
mod heap;
pub mod hostile;
pub mod mst;
pub mod nostr;
mod protocol;
pub mod repo;
pub mod schnorr;
pub mod sigs;

use std::borrow::Cow;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

pub use protocol::run;

/// All Rust peers allocate alike, with what rsky's relay ships: on one core of an EPYC it makes the
/// peers that build values on the heap a third faster than glibc's allocator, and none slower.
#[global_allocator]
static ALLOCATOR: heap::Counted<mimalloc::MiMalloc> = heap::Counted(mimalloc::MiMalloc);

/// Why a unit was refused. Boxed, because nobody pays for it until it happens.
pub type Refusal = Box<dyn std::error::Error>;

/// Runs a future that never waits, because all it needs is in memory, without the cost of a runtime.
///
/// # Errors
///
/// When it would wait.
pub fn at_once<F: Future>(future: F) -> Result<F::Output, Refusal> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err("what is in memory is waited for".into()),
    }
}

/// What a peer says of itself, and what it can do.
pub struct Runner<'a> {
    /// The libraries that do the work, with their versions.
    pub engine: &'a str,
    /// The version of the peer itself.
    pub version: &'a str,
    pub tasks: &'a [Task],
}

/// A task that a peer can do; made by the function `task` of the module that is named like it. A task
/// that is there more than once has the variants of all.
#[derive(Clone, Copy)]
pub struct Task {
    name: &'static str,
    variants: &'static [Variant],
    load: Load,
}

/// A way of doing a task, and the checks its measured path makes.
#[derive(Clone, Copy)]
pub struct Variant {
    pub name: &'static str,
    pub checks: &'static [&'static str],
}

/// Makes ready to work as a variant, given by its name, on the files at some paths.
type Load = fn(&str, &[&str]) -> Result<Box<dyn Work>, String>;

/// A task with its corpus in memory.
trait Work {
    fn size(&self) -> Size;

    /// Does the work once and counts what came out.
    fn prove(&mut self) -> Result<Proof, Refusal>;

    /// Does the same work once, uncounted.
    fn pass(&mut self) -> Result<Parts, Refusal>;
}

/// What came out of the work.
struct Proof {
    counts: serde_json::Value,
    /// The peer's own word for a refusal, where the task asks for it.
    reason: Option<String>,
    /// How often the same work, once it is warm, asks the heap for memory.
    allocations: Option<u64>,
}

impl From<serde_json::Value> for Proof {
    fn from(counts: serde_json::Value) -> Self {
        Proof { counts, reason: None, allocations: None }
    }
}

/// How long the parts of a pass took, where its task has some.
#[derive(Default)]
struct Parts {
    stages_ns: Stages,
    /// Those of each 20 units that follow one another.
    chunks_ns: Vec<u64>,
}

impl From<Stages> for Parts {
    fn from(stages_ns: Stages) -> Self {
        Parts { stages_ns, chunks_ns: Vec::new() }
    }
}

/// The nanoseconds of each stage, by its name.
type Stages = Vec<(Cow<'static, str>, u64)>;

#[derive(Clone, Copy)]
struct Size {
    units: usize,
    bytes: usize,
}
