//! The keys of captured accounts, and the commits that they signed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::pin;

use atproto::event::{Commit, Decoder, Event, Options, Values};
use atproto::syntax::DidBuf;
use bytes::Bytes;
use crypto::{Curve, PublicKey};
use futures_util::{StreamExt, stream};
use net::identity::Resolver;
use simnet::keys;
use simnet::signed_commits::{self, CommitCounts, CommitEntry};

use crate::progress::ProgressLine;

/// The keys of the accounts of captured frames.
#[derive(Clone, Debug, Default)]
pub(super) struct CapturedKeys {
    /// By DID.
    pub(super) found: BTreeMap<String, PublicKey>,
    /// Number of accounts without a key.
    pub(super) missing: usize,
}

impl CapturedKeys {
    /// Looks up the keys of all accounts of the frames, some of them concurrently. Keys not found when
    /// `stopped` completes are missing.
    pub(super) async fn look_up(
        frames: &[Bytes],
        resolver: &Resolver,
        stopped: impl Future<Output = ()>,
        line: &mut ProgressLine,
    ) -> Self {
        let mut reader = CommitReader::new();
        let dids: BTreeSet<String> =
            frames.iter().filter_map(|frame| reader.account(frame)).collect();
        let total = dids.len() as u64;
        let lookups = dids.into_iter().map(|did| async {
            let key = look_up(resolver, &did).await;
            (did, key)
        });
        let mut results = stream::iter(lookups).buffer_unordered(CONCURRENT_LOOKUPS);
        let (mut keys, mut done) = (Self::default(), 0);
        let mut stopped = pin!(stopped);
        loop {
            let next = tokio::select! {
                next = results.next() => next,
                () = &mut stopped => None,
            };
            let Some((did, key)) = next else { break };
            done += 1;
            line.at("looking up keys".to_owned(), done, total);
            match key {
                Some(key) => drop(keys.found.insert(did, key)),
                None => keys.missing += 1,
            }
        }
        keys.missing += (total - done) as usize;
        keys
    }

    /// An object of DID to did:key.
    pub(super) fn to_did_keys(&self) -> BTreeMap<&String, String> {
        self.found.iter().map(|(did, key)| (did, key.to_did_key())).collect()
    }
}

async fn look_up(resolver: &Resolver, did: &str) -> Option<PublicKey> {
    let did: DidBuf = did.parse().ok()?;
    resolver.account(did.as_did()).await.ok()?.key.clone()
}

/// The commits with a valid signature, and the number of the others.
#[derive(Debug)]
pub(super) struct SignedCommits {
    pub(super) file: Vec<u8>,
    pub(super) counts: CommitCounts,
    pub(super) dropped: DroppedCommits,
}

/// Number of commits that are left out, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DroppedCommits {
    /// Frames that cannot be read or have no commit object.
    unreadable: usize,
    /// Commits of accounts without a key.
    without_key: usize,
    /// Commits with a wrong signature or of another account.
    unsigned: usize,
}

/// Reads the commit objects with a valid signature.
pub(super) fn read(frames: &[Bytes], keys: &CapturedKeys) -> SignedCommits {
    let (mut counts, mut dropped) = (CommitCounts::default(), DroppedCommits::default());
    let mut reader = CommitReader::new();
    let mut signed: Vec<(Vec<u8>, &PublicKey)> = Vec::new();
    for frame in frames {
        match reader.signed(frame, keys) {
            Ok((object, key)) => {
                counts.commits += 1;
                match key.curve() {
                    Curve::K256 => counts.valid_k256 += 1,
                    Curve::P256 => counts.valid_p256 += 1,
                }
                signed.push((object, key));
            }
            Err(DropReason::Unreadable) => dropped.unreadable += 1,
            Err(DropReason::WithoutKey) => dropped.without_key += 1,
            Err(DropReason::Unsigned) => dropped.unsigned += 1,
        }
    }
    let file = signed_commits::write(signed.iter().map(|(commit, key)| CommitEntry {
        curve: curve(key),
        commit,
        key: key.as_compressed().as_bytes(),
    }));
    SignedCommits { file, counts, dropped }
}

/// Reads the commits of frames.
struct CommitReader(Decoder);

enum DropReason {
    Unreadable,
    WithoutKey,
    Unsigned,
}

impl CommitReader {
    fn new() -> Self {
        let mut options = Options::default();
        options.values = Values::ValidateOnly;
        Self(Decoder::new(options))
    }

    /// The account of a commit.
    fn account(&mut self, frame: &[u8]) -> Option<String> {
        self.commit(frame).map(|commit| commit.repo.to_owned())
    }

    /// The commit object of a frame, and the key that signed it.
    fn signed<'k>(
        &mut self,
        frame: &[u8],
        keys: &'k CapturedKeys,
    ) -> Result<(Vec<u8>, &'k PublicKey), DropReason> {
        let commit = self.commit(frame).ok_or(DropReason::Unreadable)?;
        let key = keys.found.get(commit.repo).ok_or(DropReason::WithoutKey)?;
        let mut blocks = commit.blocks.iter();
        let block = blocks.find(|block| block.cid == commit.commit.as_cid_ref());
        let object = block.ok_or(DropReason::Unreadable)?.data;
        let signed = verify::commit::verify(object, key).map_err(|_| DropReason::Unsigned)?;
        if signed.did == commit.repo && object.len() < MAX_OBJECT_BYTES {
            Ok((object.to_vec(), key))
        } else {
            Err(DropReason::Unsigned)
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

impl fmt::Display for DroppedCommits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unreadable, without_key, unsigned } = self;
        let all = unreadable + without_key + unsigned;
        write!(f, "{all} dropped ({unreadable} unreadable, {without_key} without a key, ")?;
        write!(f, "{unsigned} not signed)")
    }
}

/// Maximum number of concurrent lookups; the resolver limits them per host.
const CONCURRENT_LOOKUPS: usize = 32;

/// Limit of the file format.
const MAX_OBJECT_BYTES: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use simnet::firehose::{Corpus, Spec};

    use super::*;

    #[test]
    fn commits_without_a_valid_signature_are_dropped_and_counted() {
        let corpus = Corpus::generate(&Spec::quick(), &mut |_, _| {});
        let mut frames: Vec<Bytes> = corpus.frames().iter().cloned().map(Bytes::from).collect();
        let count = frames.len();
        let mut keys = CapturedKeys::default();
        for (did, key) in corpus.account_keys() {
            keys.found.insert(did, PublicKey::from_did_key(&key).unwrap());
        }
        let all = read(&frames, &keys);
        assert_eq!((all.counts.commits as usize, all.dropped), (count, DroppedCommits::default()));
        assert_eq!(signed_commits::read(&all.file).unwrap().len(), count);

        frames.push(Bytes::from_static(b"no frame"));
        let mut reader = CommitReader::new();
        let owners: Vec<_> = frames.iter().filter_map(|frame| reader.account(frame)).collect();
        let of_first = owners.iter().filter(|did| **did == owners[0]).count();
        keys.found.insert(owners[0].clone(), PublicKey::from_did_key(OTHER_KEY).unwrap());
        let some = read(&frames, &keys);
        assert_eq!((some.dropped.unsigned, some.dropped.unreadable), (of_first, 1));
        assert_eq!(some.counts.commits as usize, count - of_first);
        keys.found.remove(&owners[0]);
        assert_eq!(read(&frames, &keys).dropped.without_key, of_first);
    }

    const OTHER_KEY: &str = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme";
}
