//! repo-stream as documented: a CAR is loaded into memory, every block is hashed, and the records are
//! returned in chunks, in the order of their keys.
//!
//! It decodes the commit but does not verify its signature, so there is no stage `signature` and no count
//! `valid`.

use repo_stream::{DriverBuilder, MemCar};
use runner_shell::repo::{self, Owner, Sink, Stage};
use runner_shell::{BoxError, Runner, Variant, hostile, poll_once};

fn main() -> std::io::Result<()> {
    runner_shell::run(&Runner {
        engine: "repo-stream 0.5.0-alpha.10 (load_car in memory, next_chunk_strict)",
        version: "0.5.0-alpha.10",
        tasks: &[repo::task::<RepoStream>(), hostile::task::<RepoStream>()],
    })
}

struct RepoStream;

impl repo::Peer for RepoStream {
    const VARIANTS: &'static [Variant] = &[Variant { name: "total", checks: CHECKS }];

    fn start(_: &str, _: &Owner) -> Result<Self, BoxError> {
        Ok(RepoStream)
    }

    fn verify<S: Sink>(&mut self, car: &[u8], sink: &mut S) -> Result<(), BoxError> {
        let mut repository = load(car)?;
        sink.ended(Stage::Parse);
        walk(&mut repository, |record| sink.record(record))?;
        sink.root(&repository.commit.data.as_cid());
        sink.ended(Stage::Walk);
        Ok(())
    }
}

impl hostile::Peer for RepoStream {
    const VARIANTS: &'static [Variant] = &[Variant { name: "repo", checks: CHECKS }];

    /// Does not compare the owner: the library verifies neither DID nor signature.
    fn verify(car: &[u8], _: &Owner) -> Result<(), BoxError> {
        walk(&mut load(car)?, |record| {
            std::hint::black_box(record);
        })
    }
}

/// No `mst-prefix`: a prefix may be shorter than it could be. No `indefinite-lengths`: the suffix of a key may
/// have one. No `duplicate-keys`, `utf8` and `only-tag-42`: fields of the commit that it does not know are skipped. A node
/// that is reached twice is refused, because its keys are then repeated.
const CHECKS: &[&str] = &[
    "cid-sha256",
    "trailing-bytes",
    "depth-bound",
    "mst-order",
    "mst-layer",
    "mst-shape",
    "mst-once",
    "complete",
];

fn load(car: &[u8]) -> Result<MemCar, BoxError> {
    let builder = DriverBuilder::new().with_mem_limit_mb(MEMORY_LIMIT_MIB);
    // An error holds on to the reader.
    poll_once(builder.load_car(car))?.map_err(|error| error.to_string().into())
}

fn walk(repository: &mut MemCar, mut record: impl FnMut(&[u8])) -> Result<(), BoxError> {
    while let Some(chunk) = repository.next_chunk_strict(CHUNK)? {
        chunk.iter().for_each(|output| record(&output.data));
    }
    Ok(())
}

/// Larger repositories would be stored on disk.
const MEMORY_LIMIT_MIB: usize = 4096;

/// Records at a time, as in the documentation.
const CHUNK: usize = 256;
