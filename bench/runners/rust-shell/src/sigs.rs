//! The task `sigs`: a unit is a signed commit of a repository.
//!
//! | variant | made at load | measured |
//! |---|---|---|
//! | `full` | nothing | [`Peer::verify_commit`] |
//! | `crypto` | message and signature | [`Peer::parse_key`], [`Peer::verify`] |
//! | `preparsed` | message, signature and key | [`Peer::verify`] |
//!
//! A file of commits:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | number of commits, big-endian |
//! | 1 | curve: 0 for P-256, 1 for K-256 |
//! | 2, … | length, big-endian, and the signed commit |
//! | 2, 33 | length, big-endian, and the compressed key; then the next curve |

use std::hint::black_box;

use protocol::{BoxError, Loaded, Parts, Proof, SignatureCounts, Verdict, Work};

use crate::files::{read, split_prefixed, split_u32};
use crate::{Task, Variant, catch_panic, log_error};

/// A stack of libraries that can verify signed commits.
pub trait Peer: 'static {
    /// A public key as the libraries hold it.
    type Key;

    /// Made by [`variants`].
    const VARIANTS: &'static [Variant];

    /// Parses a compressed point.
    ///
    /// # Errors
    ///
    /// When there is no such point.
    fn parse_key(key: &PublicKey) -> Result<Self::Key, BoxError>;

    /// Whether `signature`, 64 bytes `r‖s`, is `key`'s over the SHA-256 of `message`.
    ///
    /// # Errors
    ///
    /// When it cannot be a signature.
    fn verify(message: &[u8], signature: &[u8; 64], key: &Self::Key) -> Result<bool, BoxError>;

    /// Decodes a commit and says whether `key` signed it.
    ///
    /// # Errors
    ///
    /// When the commit or the key cannot be read.
    fn verify_commit(commit: &[u8], key: &PublicKey) -> Result<bool, BoxError>;
}

/// The variants, with the checks of a path that decodes the commit, and of a path that does not.
pub const fn variants(full: CheckNames, decoded: CheckNames) -> [Variant; 3] {
    [
        Variant { name: "full", checks: full },
        Variant { name: "crypto", checks: decoded },
        Variant { name: "preparsed", checks: decoded },
    ]
}

type CheckNames = &'static [&'static str];

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "sigs", variants: P::VARIANTS, load: load::<P> }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    P256,
    K256,
}

/// A compressed point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    pub curve: Curve,
    pub point: [u8; 33],
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SignedCommit {
    commit: Vec<u8>,
    key: PublicKey,
}

fn read_commits(paths: &[&str]) -> Result<Vec<SignedCommit>, BoxError> {
    let mut commits = Vec::new();
    for path in paths {
        commits
            .extend(split(&read(path)?).ok_or_else(|| format!("{path}: not a file of commits"))?);
    }
    Ok(commits)
}

fn split(mut file: &[u8]) -> Option<Vec<SignedCommit>> {
    let rest = &mut file;
    let mut commits = Vec::new();
    for _ in 0..split_u32(rest)? {
        let curve = match rest.split_off_first()? {
            0 => Curve::P256,
            1 => Curve::K256,
            _ => return None,
        };
        let commit = split_prefixed(rest)?.to_vec();
        let point = split_prefixed(rest)?.try_into().ok()?;
        commits.push(SignedCommit { commit, key: PublicKey { curve, point } });
    }
    rest.is_empty().then_some(commits)
}

fn load<P: Peer>(variant: &str, files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let commits = read_commits(files)?;
    Ok(match variant {
        "full" => checks(
            commits,
            |unit| Ok(unit.clone()),
            |unit: &SignedCommit| P::verify_commit(&unit.commit, &unit.key),
        ),
        "crypto" => checks(
            commits,
            |unit| Ok((Signed::split(&unit.commit)?, unit.key.clone())),
            |(signed, key)| P::verify(&signed.message, &signed.signature, &P::parse_key(key)?),
        ),
        _ => checks(
            commits,
            |unit| Ok((Signed::split(&unit.commit)?, P::parse_key(&unit.key)?)),
            |(signed, key)| P::verify(&signed.message, &signed.signature, key),
        ),
    })
}

/// The prepared commits, and the check.
struct Checks<G, C> {
    units: Vec<Unit<G>>,
    check: C,
}

struct Unit<G> {
    curve: Curve,
    commit_len: usize,
    prepared: Result<G, BoxError>,
}

fn checks<G: 'static>(
    commits: Vec<SignedCommit>,
    prepare: impl Fn(&SignedCommit) -> Result<G, BoxError>,
    check: impl Fn(&G) -> Result<bool, BoxError> + 'static,
) -> Box<dyn Work> {
    let unit = |commit: &SignedCommit| Unit {
        curve: commit.key.curve,
        commit_len: commit.commit.len(),
        prepared: catch_panic(|| prepare(commit)),
    };
    Box::new(Checks { units: commits.iter().map(unit).collect(), check })
}

impl<G, C: Fn(&G) -> Result<bool, BoxError>> Work for Checks<G, C> {
    fn loaded(&self) -> Loaded {
        Loaded::of(self.units.iter().map(|unit| unit.commit_len))
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = SignatureCounts::default();
        for (number, unit) in self.units.iter().enumerate() {
            let outcome = self.verify(unit);
            counts.add(unit.curve == Curve::K256, Verdict::from(&outcome));
            if let Err(error) = outcome {
                log_error(number, counts.errors, &error);
            }
        }
        Ok(counts.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        for unit in &self.units {
            let _ = black_box(self.verify(unit));
        }
        Ok(Parts::default())
    }
}

impl<G, C: Fn(&G) -> Result<bool, BoxError>> Checks<G, C> {
    fn verify(&self, unit: &Unit<G>) -> Result<bool, BoxError> {
        let prepared = unit.prepared.as_ref().map_err(|error| error.to_string())?;
        catch_panic(|| (self.check)(prepared))
    }
}

/// The signed message and the signature.
struct Signed {
    message: Vec<u8>,
    signature: [u8; 64],
}

impl Signed {
    /// Splits a canonical commit: the message is the same map without the entry `sig`.
    fn split(commit: &[u8]) -> Result<Self, BoxError> {
        let start = commit.windows(SIG_KEY.len()).position(|window| window == SIG_KEY);
        let start = start.ok_or("a commit holds a signature of 64 bytes")?;
        let (signature, rest) =
            commit[start + SIG_KEY.len()..].split_first_chunk().ok_or("a signature is whole")?;
        let mut message = [&commit[..start], rest].concat();
        message[0] -= 1;
        Ok(Signed { message, signature: *signature })
    }
}

/// The key `sig` and the head of 64 bytes. It ends in `@`, which no DID contains, so nothing before it in a commit can
/// equal it.
const SIG_KEY: &[u8] = b"\x63sig\x58\x40";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_split_by_their_lengths_and_truncated_or_extended_files_are_rejected() {
        let file = [&[0, 0, 0, 1, 1, 0, 2, 7, 8, 0, 33], [5; 33].as_slice()].concat();
        let key = PublicKey { curve: Curve::K256, point: [5; 33] };
        assert_eq!(split(&file), Some(vec![SignedCommit { commit: vec![7, 8], key }]));
        assert!((0..file.len()).all(|len| split(&file[..len]).is_none()));
        assert_eq!(split(&[file.as_slice(), &[0]].concat()), None);
    }

    #[test]
    fn the_message_is_the_map_without_its_signature() {
        let commit = [b"\xa3\x61a\x01\x63sig\x58\x40".as_slice(), &[9; 64], b"\x61b\x02"].concat();
        let signed = Signed::split(&commit).unwrap();
        assert_eq!(signed.message, b"\xa2\x61a\x01\x61b\x02");
        assert_eq!(signed.signature, [9; 64]);
    }

    #[test]
    fn a_commit_without_a_whole_signature_has_no_message() {
        assert!(Signed::split(b"\xa1\x61a\x01").is_err());
        assert!(Signed::split(b"\xa1\x63sig\x58\x40\x00").is_err());
    }
}
