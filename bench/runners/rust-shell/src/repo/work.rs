//! One repository, verified as a whole.

use super::sink::{Counts, Stopwatch};
use super::{Owner, Peer};
use crate::files::read_pair;
use crate::protocol::guarded;
use crate::{Parts, Proof, Refusal, Size, Work};

struct Repository<P> {
    peer: P,
    car: Vec<u8>,
}

pub(super) fn load<P: Peer>(variant: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    let (car, owner) = read_pair::<Owner>(files)?;
    let peer = P::start(variant, &owner).map_err(|refusal| refusal.to_string())?;
    Ok(Box::new(Repository { peer, car }))
}

impl<P: Peer> Work for Repository<P> {
    fn size(&self) -> Size {
        Size { units: 1, bytes: self.car.len() }
    }

    fn prove(&mut self) -> Result<Proof, Refusal> {
        let mut counts = Counts::of_one();
        guarded(|| self.peer.verify(&self.car, &mut counts))?;
        Ok(counts.into_json().into())
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        let mut stopwatch = Stopwatch::start();
        guarded(|| self.peer.verify(&self.car, &mut stopwatch))?;
        Ok(stopwatch.stop().into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Sink, Stage};
    use super::*;
    use crate::Variant;

    /// Every byte is a record of its own, and zero is not one.
    struct Bytes {
        did: String,
    }

    impl Peer for Bytes {
        const VARIANTS: &'static [Variant] = &[];

        fn start(_: &str, owner: &Owner) -> Result<Self, Refusal> {
            Ok(Bytes { did: owner.did.clone() })
        }

        fn verify<S: Sink>(&mut self, car: &[u8], sink: &mut S) -> Result<(), Refusal> {
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

    fn loaded(name: &str, car: &[u8]) -> Box<dyn Work> {
        let files = ["car", "json"].map(|kind| crate::files::scratch(&format!("{name}.{kind}")));
        std::fs::write(&files[0], car).unwrap();
        std::fs::write(&files[1], r#"{"did":"did:a","signing_key":"did:key:z"}"#).unwrap();
        let paths = files.each_ref().map(|path| path.to_str().unwrap());
        let work = load::<Bytes>("total", &paths).unwrap();
        files.into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
        work
    }

    #[test]
    fn what_a_peer_hands_over_is_counted_and_what_it_does_not_is_left_out() {
        let mut work = loaded("counted", &[1, 2, 3]);
        assert_eq!(
            work.prove().unwrap().counts,
            json!({
                "repositories": 1, "blocks": 3, "records": 3, "record_bytes": 3, "root": "did:a",
            })
        );
        assert_eq!((work.size().units, work.size().bytes), (1, 3));
    }

    #[test]
    fn a_pass_tells_the_stages_that_the_peer_told_in_their_order() {
        let stages = loaded("staged", &[1]).pass().unwrap().stages_ns;
        assert_eq!(stages.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["parse", "walk"]);
    }

    #[test]
    fn a_repository_that_is_refused_has_no_counts() {
        assert!(loaded("refused", &[1, 0]).prove().is_err());
    }
}
