//! Which commits are the units of work, and whose are they?
//!
//! | bytes | what |
//! |---|---|
//! | 4 | number of commits, big-endian |
//! | 1 | curve: 0 for P-256, 1 for K-256 |
//! | 2, … | length, big-endian, and the signed commit |
//! | 2, 33 | length, big-endian, and the compressed key; then the next curve |

use std::fs;

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
pub(super) struct SignedCommit {
    pub(super) commit: Vec<u8>,
    pub(super) key: PublicKey,
}

pub(super) fn read(paths: &[&str]) -> Result<Vec<SignedCommit>, String> {
    let mut commits = Vec::new();
    for path in paths {
        let file = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        commits.extend(split(&file).ok_or_else(|| format!("{path}: not a file of commits"))?);
    }
    Ok(commits)
}

fn split(file: &[u8]) -> Option<Vec<SignedCommit>> {
    let (count, mut rest) = file.split_first_chunk()?;
    let mut commits = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let curve = curve(*rest.split_off_first()?)?;
        let commit = piece(&mut rest)?.to_vec();
        let point = piece(&mut rest)?.try_into().ok()?;
        commits.push(SignedCommit { commit, key: PublicKey { curve, point } });
    }
    rest.is_empty().then_some(commits)
}

fn curve(code: u8) -> Option<Curve> {
    match code {
        0 => Some(Curve::P256),
        1 => Some(Curve::K256),
        _ => None,
    }
}

fn piece<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, bytes) = rest.split_first_chunk()?;
    let (piece, behind) = bytes.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    *rest = behind;
    Some(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_split_by_their_lengths_and_no_cut_or_tail_is_taken() {
        let file = [&[0, 0, 0, 1, 1, 0, 2, 7, 8, 0, 33], [5; 33].as_slice()].concat();
        let key = PublicKey { curve: Curve::K256, point: [5; 33] };
        assert_eq!(split(&file), Some(vec![SignedCommit { commit: vec![7, 8], key }]));
        assert!((0..file.len()).all(|len| split(&file[..len]).is_none()));
        assert_eq!(split(&[file.as_slice(), &[0]].concat()), None);
    }
}
