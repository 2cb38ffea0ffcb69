//! The task `hostile`: a unit is a repository or a stream that may break a rule.
//!
//! Every case has a separate process. Nothing here catches a panic, because it would affect the peer's users too.

use protocol::{BoxError, Loaded, Owner, Parts, Proof, Work};

use crate::commit;
use crate::files::{Frames, read_pair};
use crate::{Task, Variant};

/// A library that can verify repositories.
pub trait Peer: 'static {
    /// `repo`; and `frames`, if the peer does [`task_with_frames`].
    const VARIANTS: &'static [Variant];

    /// Verifies a repository by the calls that the peer's users make.
    ///
    /// # Errors
    ///
    /// When it rejects the repository.
    fn verify(car: &[u8], owner: &Owner) -> Result<(), BoxError>;
}

/// The task on repositories, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "hostile", variants: P::VARIANTS, load: load_repo::<P> }
}

/// The task on repositories, done by `P`, and on frames, done by `J`.
pub const fn task_with_frames<P: Peer, J: commit::Peer>() -> Task {
    Task { name: "hostile", variants: P::VARIANTS, load: load::<P, J> }
}

fn load<P: Peer, J: commit::Peer>(
    variant: &str,
    files: &[&str],
) -> Result<Box<dyn Work>, BoxError> {
    match variant {
        "frames" => load_frames::<J>(files),
        _ => load_repo::<P>(variant, files),
    }
}

fn load_repo<P: Peer>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let (car, owner) = read_pair::<Owner>(files)?;
    Ok(case(car.len(), move || P::verify(&car, &owner)))
}

fn load_frames<J: commit::Peer>(files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let (file, owner) = read_pair::<Owner>(files)?;
    let frames = Frames::read(files.iter().copied().take(1))?;
    let mut peer = start::<J>(owner)?;
    Ok(case(file.len(), move || verify_last(&frames, &mut peer)))
}

fn start<J: commit::Peer>(owner: Owner) -> Result<J, BoxError> {
    let now = owner.now.as_deref().map(humantime::parse_rfc3339).transpose()?;
    J::start(&[(owner.did, owner.signing_key)], now)
}

/// Verifies all frames; the frames before the last only set the state.
fn verify_last<J: commit::Peer>(frames: &Frames, peer: &mut J) -> Result<(), BoxError> {
    peer.reset();
    let last = frames.iter().map(|frame| peer.verify(frame)).last();
    last.ok_or("a case has no frame")?.into_result()
}

fn case(bytes: usize, verify: impl FnMut() -> Result<(), BoxError> + 'static) -> Box<dyn Work> {
    Box::new(Case { bytes, verify })
}

struct Case<V> {
    bytes: usize,
    verify: V,
}

impl<V: FnMut() -> Result<(), BoxError>> Work for Case<V> {
    fn loaded(&self) -> Loaded {
        Loaded::of([self.bytes])
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        Ok(Proof::of_case((self.verify)().err().map(|error| error.to_string())))
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        (self.verify)()?;
        Ok(Parts::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_has_a_reason() {
        let proof = case(3, || Err("a key is out of order".into())).prove().unwrap();
        assert_eq!((proof.counts.get("accepted"), proof.counts.get("refused")), (Some(0), Some(1)));
        assert_eq!(proof.reason.as_deref(), Some("a key is out of order"));
        let proof = case(3, || Ok(())).prove().unwrap();
        assert_eq!((proof.counts.get("accepted"), proof.counts.get("refused")), (Some(1), Some(0)));
        assert_eq!(proof.reason, None);
    }

    #[test]
    #[should_panic(expected = "as a peer does")]
    fn a_panic_is_not_caught() {
        let _ = case(3, || panic!("as a peer does")).prove();
    }
}
