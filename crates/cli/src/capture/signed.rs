//! Which commits did the accounts of these frames sign?

use std::fmt;

use bytes::Bytes;
use simnet::keys;
use simnet::signed_commits::{self, CommitCounts, CommitEntry};
use wireproof::atproto::event::{Commit, Decoder, Event, Options, Values};
use wireproof::crypto::{Curve, PublicKey};
use wireproof::verify;

use super::keys::Keys;

/// The commits that verified, and the others counted.
#[derive(Debug)]
pub(super) struct Signed {
    pub(super) file: Vec<u8>,
    pub(super) counts: CommitCounts,
    pub(super) dropped: Dropped,
}

/// How many commits were left out, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    /// Frames that cannot be read or have no commit object.
    unreadable: usize,
    /// Commits of accounts whose key is not to be had.
    without_key: usize,
    /// Commits that their account's key did not sign, or that are another account's.
    unsigned: usize,
}

/// Keeps the commit objects that their accounts signed.
pub(super) fn read(frames: &[Bytes], keys: &Keys) -> Signed {
    let (mut counts, mut dropped) = (CommitCounts::default(), Dropped::default());
    let mut opener = Opener::new();
    let mut kept: Vec<(Vec<u8>, &PublicKey)> = Vec::new();
    for frame in frames {
        match opener.signed(frame, keys) {
            Ok((object, key)) => {
                counts.commits += 1;
                match key.curve() {
                    Curve::K256 => counts.valid_k256 += 1,
                    Curve::P256 => counts.valid_p256 += 1,
                }
                kept.push((object, key));
            }
            Err(Fault::Unreadable) => dropped.unreadable += 1,
            Err(Fault::WithoutKey) => dropped.without_key += 1,
            Err(Fault::Unsigned) => dropped.unsigned += 1,
        }
    }
    let file = signed_commits::write(kept.iter().map(|(commit, key)| CommitEntry {
        curve: curve(key),
        commit,
        key: key.as_compressed().as_bytes(),
    }));
    Signed { file, counts, dropped }
}

/// Reads commits of frames.
pub(super) struct Opener(Decoder);

enum Fault {
    Unreadable,
    WithoutKey,
    Unsigned,
}

impl Opener {
    pub(super) fn new() -> Self {
        let options = Options { values: Values::ValidateOnly, ..Options::default() };
        Self(Decoder::new(options))
    }

    /// Whose commit it is, if it is one.
    pub(super) fn account(&mut self, frame: &[u8]) -> Option<String> {
        self.commit(frame).map(|commit| commit.repo.to_owned())
    }

    /// The commit object of a frame, and the key that signed it.
    fn signed<'k>(
        &mut self,
        frame: &[u8],
        keys: &'k Keys,
    ) -> Result<(Vec<u8>, &'k PublicKey), Fault> {
        let commit = self.commit(frame).ok_or(Fault::Unreadable)?;
        let key = keys.known.get(commit.repo).ok_or(Fault::WithoutKey)?;
        let mut blocks = commit.blocks.iter();
        let block = blocks.find(|block| block.cid == commit.commit.as_cid_ref());
        let object = block.ok_or(Fault::Unreadable)?.data;
        let signed = verify::commit::verify(object, key).map_err(|_| Fault::Unsigned)?;
        match signed.did == commit.repo && object.len() < MAX_OBJECT_BYTES {
            true => Ok((object.to_vec(), key)),
            false => Err(Fault::Unsigned),
        }
    }

    fn commit<'a>(&'a mut self, frame: &'a [u8]) -> Option<Commit<'a>> {
        match self.0.decode(frame) {
            Ok(Event::Commit(commit)) => Some(commit),
            _ => None,
        }
    }
}

fn curve(key: &PublicKey) -> keys::Curve {
    match key.curve() {
        Curve::K256 => keys::Curve::K256,
        Curve::P256 => keys::Curve::P256,
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unreadable, without_key, unsigned } = self;
        let all = unreadable + without_key + unsigned;
        write!(f, "{all} dropped ({unreadable} unreadable, {without_key} without a key, ")?;
        write!(f, "{unsigned} not signed)")
    }
}

/// What the file's format has room for.
const MAX_OBJECT_BYTES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use simnet::firehose::{Corpus, Spec};

    use super::*;

    #[test]
    fn what_its_account_did_not_sign_is_dropped_and_counted() {
        let corpus = Corpus::generate(&Spec::quick(), &mut |_, _| {});
        let mut frames: Vec<Bytes> = corpus.frames().iter().cloned().map(Bytes::from).collect();
        let count = frames.len();
        let mut keys = Keys::default();
        for (did, key) in corpus.account_keys() {
            keys.known.insert(did, PublicKey::from_did_key(&key).unwrap());
        }
        let all = read(&frames, &keys);
        assert_eq!((all.counts.commits as usize, all.dropped), (count, Dropped::default()));
        assert_eq!(signed_commits::read(&all.file).unwrap().len(), count);

        frames.push(Bytes::from_static(b"no frame"));
        let mut opener = Opener::new();
        let owners: Vec<_> = frames.iter().filter_map(|frame| opener.account(frame)).collect();
        let of_first = owners.iter().filter(|did| **did == owners[0]).count();
        keys.known.insert(owners[0].clone(), PublicKey::from_did_key(STRANGER).unwrap());
        let some = read(&frames, &keys);
        assert_eq!((some.dropped.unsigned, some.dropped.unreadable), (of_first, 1));
        assert_eq!(some.counts.commits as usize, count - of_first);
        keys.known.remove(&owners[0]);
        assert_eq!(read(&frames, &keys).dropped.without_key, of_first);
    }

    const STRANGER: &str = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme";
}
