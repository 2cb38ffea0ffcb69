//! The signed bytes of a commit: its block without the entry of the signature.
//!
//! ```text
//! block      a6 │ 63 did … 63 rev … │ 63 sig 58 40 … │ 64 data … 64 prev … 67 version 03
//! signed     a5 │ 63 did … 63 rev … │                  64 data … 64 prev … 67 version 03
//!           head       before                                    after
//! ```
//!
//! The parser reports the position of the entry. A search would be wrong: a DID such as
//! `did:web:csig.example` contains the same four bytes. So would encoding the fields again, which loses
//! signed entries that this version does not know.

use std::ops::Range;

use kernels::sha256::{self, Digest};

/// The signed bytes of a commit, in three parts, two of them borrowed from its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigningBytes<'a> {
    head: Head,
    before: &'a [u8],
    after: &'a [u8],
}

impl<'a> SigningBytes<'a> {
    /// Omits the entry at `sig` from a block that is a canonical map of `count` entries, the first at
    /// `entries_at`.
    pub(super) fn cut(block: &'a [u8], count: usize, entries_at: usize, sig: Range<usize>) -> Self {
        Self {
            head: Head::of_map(count - 1),
            before: &block[entries_at..sig.start],
            after: &block[sig.end..],
        }
    }

    /// The parts, whose concatenation is signed.
    pub fn parts(&self) -> [&[u8]; 3] {
        [self.head.as_bytes(), self.before, self.after]
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// Always false: there is at least the head.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The SHA-256, which ECDSA signs. The parts are hashed without copying.
    pub fn digest(&self) -> Digest {
        sha256::digest_parts(&self.parts())
    }

    /// The bytes, concatenated.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts().concat()
    }
}

/// The SHA-256 digests, in order.
///
/// Copies the bytes first, because the hash lanes take a message as one slice.
pub fn digest_many(commits: &[SigningBytes<'_>]) -> Vec<Digest> {
    let mut gathered = Vec::with_capacity(commits.iter().map(SigningBytes::len).sum());
    for commit in commits {
        commit.parts().iter().for_each(|part| gathered.extend_from_slice(part));
    }
    let mut rest = gathered.as_slice();
    let mut next = |commit: &SigningBytes<'_>| {
        let (message, others) = rest.split_at(commit.len());
        rest = others;
        message
    };
    let messages: Vec<&[u8]> = commits.iter().map(&mut next).collect();
    sha256::digest_many(&messages)
}

/// The head of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    bytes: [u8; 9],
    len: u8,
}

impl Head {
    /// The shortest head of a map of `count` entries.
    fn of_map(count: usize) -> Self {
        let (info, width) = match count {
            0..24 => (count as u8, 0),
            24..=0xff => (24, 1),
            0x100..=0xffff => (25, 2),
            0x1_0000..=0xffff_ffff => (26, 4),
            _ => (27, 8),
        };
        let mut bytes = [0; 9];
        bytes[0] = 5 << 5 | info;
        bytes[1..=width].copy_from_slice(&(count as u64).to_be_bytes()[8 - width..]);
        Self { bytes, len: 1 + width as u8 }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}
