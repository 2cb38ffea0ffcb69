//! How does a Rust peer become a runner? It implements the `Peer` of each task that it can do, and
//! calls [`run`].
//!
//! The shell speaks the protocol of `bench/runners/PROTOCOL.md`, splits the corpus, holds the clock
//! and adds up the counts. A runner is left with one thing: how its libraries do the work of a unit.

pub mod decode;
mod protocol;
pub mod schnorr;
pub mod sigs;

pub use protocol::run;

/// All Rust peers allocate alike, with what rsky's relay ships: on one core of an EPYC it makes the
/// peers that build values on the heap a third faster than glibc's allocator, and none slower.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Why a unit was refused. Boxed, because nobody pays for it until it happens.
pub type Refusal = Box<dyn std::error::Error>;

/// What a peer says of itself, and what it can do.
pub struct Runner<'a> {
    /// The libraries that do the work, with their versions.
    pub engine: &'a str,
    /// The version of the peer itself.
    pub version: &'a str,
    pub tasks: &'a [Task],
}

/// A task that a peer can do; made by the function `task` of the module that is named like it.
pub struct Task {
    name: &'static str,
    variants: &'static [Variant],
    load: Load,
}

/// A way of doing a task, and the checks its measured path makes.
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
    fn prove(&mut self) -> serde_json::Value;

    /// Does the same work once, uncounted.
    fn pass(&mut self);
}

struct Size {
    units: usize,
    bytes: usize,
}
