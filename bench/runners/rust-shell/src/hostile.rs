//! The task `hostile`: does a peer accept what breaks a rule?
//!
//! Each case has a process of its own, and what befalls it there befell the peer's user: nothing here
//! catches a panic.

use serde_json::json;

use crate::commit;
use crate::decode::Corpus;
use crate::files::{Owner, read_pair};
use crate::{Parts, Proof, Refusal, Size, Task, Variant, Work};

/// A library that can verify repositories.
pub trait Peer: 'static {
    /// `repo`; and `frames`, if the peer does [`task_with_frames`].
    const VARIANTS: &'static [Variant];

    /// Takes the path that the peer's users take to verify a repository.
    ///
    /// # Errors
    ///
    /// When it refuses the repository.
    fn verify(car: &[u8], owner: &Owner) -> Result<(), Refusal>;
}

/// The task on repositories, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "hostile", variants: P::VARIANTS, load: load_repo::<P> }
}

/// The task on repositories, done by `P`, and on frames, done by `J`.
pub const fn task_with_frames<P: Peer, J: commit::Peer>() -> Task {
    Task { name: "hostile", variants: P::VARIANTS, load: load::<P, J> }
}

fn load<P: Peer, J: commit::Peer>(variant: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    match variant {
        "frames" => load_frames::<J>(files),
        _ => load_repo::<P>(variant, files),
    }
}

fn load_repo<P: Peer>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    let (car, owner) = read_pair::<Owner>(files)?;
    Ok(case(car.len(), move || P::verify(&car, &owner)))
}

fn load_frames<J: commit::Peer>(files: &[&str]) -> Result<Box<dyn Work>, String> {
    let (file, owner) = read_pair::<Owner>(files)?;
    let frames = Corpus::read(files.iter().copied().take(1))?;
    let mut judge = start::<J>(owner).map_err(|refusal| refusal.to_string())?;
    Ok(case(file.len(), move || judge_last(&frames, &mut judge)))
}

fn start<J: commit::Peer>(owner: Owner) -> Result<J, Refusal> {
    let now = owner.now.as_deref().map(humantime::parse_rfc3339).transpose()?;
    J::start(&[(owner.did, owner.signing_key)], now)
}

/// Judges all frames; those before the last only set the state.
fn judge_last<J: commit::Peer>(frames: &Corpus, judge: &mut J) -> Result<(), Refusal> {
    judge.forget();
    let last = frames.units().map(|frame| judge.judge(frame)).last();
    last.ok_or("a case has a frame")?.into_outcome()
}

fn case(bytes: usize, judge: impl FnMut() -> Result<(), Refusal> + 'static) -> Box<dyn Work> {
    Box::new(Case { bytes, judge })
}

struct Case<J> {
    bytes: usize,
    judge: J,
}

impl<J: FnMut() -> Result<(), Refusal>> Work for Case<J> {
    fn size(&self) -> Size {
        Size { units: 1, bytes: self.bytes }
    }

    fn prove(&mut self) -> Result<Proof, Refusal> {
        let verdict = (self.judge)();
        let counts = json!({
            "accepted": u8::from(verdict.is_ok()),
            "refused": u8::from(verdict.is_err()),
        });
        let reason = verdict.err().map(|refusal| refusal.to_string());
        Ok(Proof { reason, ..counts.into() })
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        (self.judge)()?;
        Ok(Parts::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_an_answer_and_brings_its_reason() {
        let proof = case(3, || Err("a key is out of order".into())).prove().unwrap();
        assert_eq!(proof.counts, json!({ "accepted": 0, "refused": 1 }));
        assert_eq!(proof.reason.as_deref(), Some("a key is out of order"));
        let proof = case(3, || Ok(())).prove().unwrap();
        assert_eq!(proof.counts, json!({ "accepted": 1, "refused": 0 }));
        assert_eq!(proof.reason, None);
    }

    #[test]
    #[should_panic(expected = "as a peer does")]
    fn a_panic_is_not_caught() {
        let _ = case(3, || panic!("as a peer does")).prove();
    }
}
