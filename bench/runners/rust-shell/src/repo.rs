//! The task `repo`: the unit is a whole repository, from the bytes of its CAR to the verdict.

use std::fmt::Display;
use std::hint::black_box;

use protocol::{BoxError, Counts, Loaded, Parts, Proof, StageClock, Work};

use crate::files::read_pair;
use crate::{Task, Variant, catch_panic};

pub use protocol::Owner;

/// A library that can verify repositories.
pub trait Peer: Sized + 'static {
    const VARIANTS: &'static [Variant];

    /// Prepares to verify a repository of `owner` as `variant`, which is one of [`Self::VARIANTS`].
    ///
    /// # Errors
    ///
    /// When the key cannot be read.
    fn start(variant: &str, owner: &Owner) -> Result<Self, BoxError>;

    /// Verifies the repository in a CAR, stage by stage, and passes the findings to `sink`.
    ///
    /// # Errors
    ///
    /// When any stage rejects the repository.
    fn verify<S: Sink>(&mut self, car: &[u8], sink: &mut S) -> Result<(), BoxError>;
}

/// Receives the records of a peer: to time stages in `pass`, to count in `prove`.
pub trait Sink {
    /// Whether this is `prove`. A peer whose call does not expose the records may look for them then, and only then.
    fn is_counting(&self) -> bool;

    /// A stage has ended.
    fn ended(&mut self, stage: Stage);

    /// The number of blocks in the CAR, whether needed or not.
    fn blocks(&mut self, count: usize);

    /// The signature was verified and is valid.
    fn valid(&mut self);

    /// The block of a record.
    fn record(&mut self, block: &[u8]);

    /// The root of the tree that the commit names.
    fn root(&mut self, data: &impl Display);

    /// The root of the rebuilt tree.
    fn rebuilt_root(&mut self, root: &impl Display);
}

/// The stages of the work. A stage that a peer cannot separate belongs to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Parse,
    Signature,
    Walk,
    Rebuild,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::Parse => "parse",
            Stage::Signature => "signature",
            Stage::Walk => "walk",
            Stage::Rebuild => "rebuild",
        }
    }
}

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "repo", variants: P::VARIANTS, load: load::<P> }
}

/// Times the stages and keeps the optimiser from removing the work.
impl Sink for StageClock {
    fn is_counting(&self) -> bool {
        false
    }

    fn ended(&mut self, stage: Stage) {
        self.lap(stage.name());
    }

    #[inline]
    fn blocks(&mut self, _: usize) {}

    #[inline]
    fn valid(&mut self) {}

    #[inline]
    fn record(&mut self, block: &[u8]) {
        black_box(block);
    }

    fn root(&mut self, _: &impl Display) {}

    fn rebuilt_root(&mut self, _: &impl Display) {}
}

/// Counts the values passed; others are left out.
#[derive(Default)]
struct Counter {
    /// `blocks`, `valid`, `root`, `rebuilt_root`, where they were passed.
    counts: Counts,
    records: u64,
    record_bytes: u64,
}

impl Counter {
    fn add(&mut self, name: &str, more: u64) {
        let before = self.counts.get(name).unwrap_or(0);
        self.counts = std::mem::take(&mut self.counts).with(name, before + more);
    }

    fn set(&mut self, name: &str, value: &impl Display) {
        self.counts = std::mem::take(&mut self.counts).with(name, value.to_string());
    }

    fn into_counts(self) -> Counts {
        let counts = self.counts.with("repositories", 1).with("records", self.records);
        counts.with("record_bytes", self.record_bytes)
    }
}

impl Sink for Counter {
    fn is_counting(&self) -> bool {
        true
    }

    fn ended(&mut self, _: Stage) {}

    fn blocks(&mut self, count: usize) {
        self.add("blocks", count as u64);
    }

    fn valid(&mut self) {
        self.add("valid", 1);
    }

    fn record(&mut self, block: &[u8]) {
        self.records += 1;
        self.record_bytes += block.len() as u64;
    }

    fn root(&mut self, data: &impl Display) {
        self.set("root", data);
    }

    fn rebuilt_root(&mut self, root: &impl Display) {
        self.set("rebuilt_root", root);
    }
}

struct Repository<P> {
    peer: P,
    car: Vec<u8>,
}

fn load<P: Peer>(variant: &str, files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let (car, owner) = read_pair::<Owner>(files)?;
    Ok(Box::new(Repository { peer: P::start(variant, &owner)?, car }))
}

impl<P: Peer> Work for Repository<P> {
    fn loaded(&self) -> Loaded {
        Loaded::of([self.car.len()])
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counter = Counter::default();
        catch_panic(|| self.peer.verify(&self.car, &mut counter))?;
        Ok(counter.into_counts().into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        let mut clock = StageClock::start();
        catch_panic(|| self.peer.verify(&self.car, &mut clock))?;
        clock.extend_last();
        Ok(clock.into_parts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte is a separate record, except zero.
    struct Bytes {
        did: String,
    }

    impl Peer for Bytes {
        const VARIANTS: &'static [Variant] = &[];

        fn start(_: &str, owner: &Owner) -> Result<Self, BoxError> {
            Ok(Bytes { did: owner.did.clone() })
        }

        fn verify<S: Sink>(&mut self, car: &[u8], sink: &mut S) -> Result<(), BoxError> {
            sink.blocks(car.len());
            sink.ended(Stage::Parse);
            for block in car.chunks(1) {
                assert_ne!(block, [0], "a record");
                sink.record(block);
            }
            sink.root(&self.did);
            sink.ended(Stage::Walk);
            Ok(())
        }
    }

    fn open(name: &str, car: &[u8]) -> Box<dyn Work> {
        let files = ["car", "json"].map(|kind| crate::files::scratch(&format!("{name}.{kind}")));
        std::fs::write(&files[0], car).unwrap();
        std::fs::write(&files[1], r#"{"did":"did:a","signing_key":"did:key:z"}"#).unwrap();
        let paths = files.each_ref().map(|path| path.to_str().unwrap());
        let work = load::<Bytes>("total", &paths).unwrap();
        files.into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
        work
    }

    #[test]
    fn what_a_peer_passes_is_counted_and_the_rest_is_left_out() {
        let mut work = open("counted", &[1, 2, 3]);
        let counts = [("repositories", 1), ("blocks", 3), ("records", 3), ("record_bytes", 3)];
        let counts = Counts::from_iter(counts).with("root", "did:a");
        assert_eq!(work.prove().unwrap().counts, counts);
        assert_eq!(work.loaded(), Loaded { units: 1, bytes: 3 });
    }

    #[test]
    fn a_pass_reports_the_stages_of_the_peer_in_order() {
        let stages = open("staged", &[1]).pass().unwrap().stages_ns;
        assert_eq!(stages.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["parse", "walk"]);
    }

    #[test]
    fn a_rejected_repository_has_no_counts() {
        assert!(open("rejected", &[1, 0]).prove().is_err());
    }
}
