//! The commits of a corpus, verified one after another.
//!
//! | variant | made at load | done |
//! |---|---|---|
//! | `full` | nothing | [`Peer::verify_commit`] |
//! | `crypto` | message and signature | [`Peer::parse_key`], [`Peer::verify`] |
//! | `preparsed` | message, signature and key | [`Peer::verify`] |

use std::hint::black_box;

use serde_json::json;

use super::corpus::{self, SignedCommit};
use super::{Curve, Peer};
use crate::protocol::{guarded, tell};
use crate::{Parts, Proof, Refusal, Size, Work};

pub(super) fn load<P: Peer>(variant: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    let commits = corpus::read(files)?;
    Ok(match variant {
        "full" => checks(
            commits,
            |unit| Ok(unit.clone()),
            |unit: &SignedCommit| P::verify_commit(&unit.commit, &unit.key),
        ),
        "crypto" => checks(
            commits,
            |unit| Ok((Signed::cut(&unit.commit)?, unit.key.clone())),
            |(signed, key)| P::verify(&signed.message, &signed.signature, &P::parse_key(key)?),
        ),
        _ => checks(
            commits,
            |unit| Ok((Signed::cut(&unit.commit)?, P::parse_key(&unit.key)?)),
            |(signed, key)| P::verify(&signed.message, &signed.signature, key),
        ),
    })
}

/// What is given to each unit's check, and the check.
struct Checks<G, C> {
    units: Vec<Unit<G>>,
    check: C,
}

struct Unit<G> {
    curve: Curve,
    commit_len: usize,
    given: Result<G, Refusal>,
}

fn checks<G: 'static>(
    commits: Vec<SignedCommit>,
    give: impl Fn(&SignedCommit) -> Result<G, Refusal>,
    check: impl Fn(&G) -> Result<bool, Refusal> + 'static,
) -> Box<dyn Work> {
    let unit = |commit: &SignedCommit| Unit {
        curve: commit.key.curve,
        commit_len: commit.commit.len(),
        given: guarded(|| give(commit)),
    };
    Box::new(Checks { units: commits.iter().map(unit).collect(), check })
}

impl<G, C: Fn(&G) -> Result<bool, Refusal>> Work for Checks<G, C> {
    fn size(&self) -> Size {
        let bytes = self.units.iter().map(|unit| unit.commit_len).sum();
        Size { units: self.units.len(), bytes }
    }

    fn prove(&mut self) -> Result<Proof, Refusal> {
        let (mut valid_k256, mut valid_p256, mut invalid, mut errors) = (0, 0, 0, 0);
        for (number, unit) in self.units.iter().enumerate() {
            match (self.verdict(unit), unit.curve) {
                (Ok(true), Curve::K256) => valid_k256 += 1,
                (Ok(true), Curve::P256) => valid_p256 += 1,
                (Ok(false), _) => invalid += 1,
                (Err(refusal), _) => {
                    errors += 1;
                    tell(number, errors, &refusal);
                }
            }
        }
        Ok(Proof::from(json!({
            "commits": self.units.len(),
            "valid_k256": valid_k256,
            "valid_p256": valid_p256,
            "invalid": invalid,
            "errors": errors,
        })))
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        for unit in &self.units {
            let _ = black_box(self.verdict(unit));
        }
        Ok(Parts::default())
    }
}

impl<G, C: Fn(&G) -> Result<bool, Refusal>> Checks<G, C> {
    fn verdict(&self, unit: &Unit<G>) -> Result<bool, Refusal> {
        let given = unit.given.as_ref().map_err(|refusal| refusal.to_string())?;
        guarded(|| (self.check)(given))
    }
}

/// What was signed, and with what.
pub(super) struct Signed {
    pub(super) message: Vec<u8>,
    pub(super) signature: [u8; 64],
}

impl Signed {
    /// Takes a canonical commit apart: the message is the same map without the entry `sig`.
    pub(super) fn cut(commit: &[u8]) -> Result<Self, Refusal> {
        let start = commit.windows(SIG_KEY.len()).position(|window| window == SIG_KEY);
        let start = start.ok_or("a commit holds a signature of 64 bytes")?;
        let (signature, rest) =
            commit[start + SIG_KEY.len()..].split_first_chunk().ok_or("a signature is whole")?;
        let mut message = [&commit[..start], rest].concat();
        message[0] -= 1;
        Ok(Signed { message, signature: *signature })
    }
}

/// The key `sig` and the head of 64 bytes. It ends in `@`, which no DID holds, and so what stands
/// before it in a commit cannot be mistaken for it.
const SIG_KEY: &[u8] = b"\x63sig\x58\x40";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_the_map_without_its_signature() {
        let commit = [b"\xa3\x61a\x01\x63sig\x58\x40".as_slice(), &[9; 64], b"\x61b\x02"].concat();
        let signed = Signed::cut(&commit).unwrap();
        assert_eq!(signed.message, b"\xa2\x61a\x01\x61b\x02");
        assert_eq!(signed.signature, [9; 64]);
    }

    #[test]
    fn a_commit_without_a_whole_signature_has_no_message() {
        assert!(Signed::cut(b"\xa1\x61a\x01").is_err());
        assert!(Signed::cut(b"\xa1\x63sig\x58\x40\x00").is_err());
    }
}
