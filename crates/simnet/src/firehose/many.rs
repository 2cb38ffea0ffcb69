//! A stream of very many accounts: the commits of the calibrated stream, signed again by accounts that occur once or
//! twice.
//!
//! A relay has more accounts than its caches of keys and states hold. Trees for so many accounts would take hours to
//! generate, so the commits of the calibrated stream are repeated under other accounts: with other DIDs, signed with other
//! keys, over the same trees. Two of its commits that follow each other sometimes stay with one account, whose chain
//! is then unbroken.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::plan::plan;
use super::{FrameCounts, SEND_DELAY_MICROS, Spec as StreamSpec, VerdictCounts, commit_all};
use crate::corpus;
use crate::keys::{Curve, SigningKey};
use crate::random::{Random, Seed};
use crate::record::did_plc;
use crate::repository::NewCommit;

/// The specification of a stream of many accounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The stream whose commits are repeated.
    pub stream: StreamSpec,
    /// The number of accounts with a key; most of them do not commit in the stream.
    pub accounts: usize,
    /// The number of times that every commit occurs.
    pub copies: usize,
    /// The share of accounts with a P-256 key in percent; the others have a K-256 key.
    pub p256_percent: u64,
}

impl Default for Spec {
    /// 13,192 frames, 100,000 accounts, 2 % of them on P-256, trees up to height 8.
    fn default() -> Self {
        let stream = StreamSpec { max_height: 8, ..StreamSpec::default() };
        Self { stream, accounts: 100_000, copies: 4, p256_percent: 2 }
    }
}

impl Spec {
    /// A tenth of the default, with lower trees.
    pub fn quick() -> Self {
        let stream = StreamSpec { frames: 320, ..StreamSpec::quick() };
        Self { stream, accounts: 10_000, ..Self::default() }
    }
}

/// The description of a file of frames of many accounts.
pub type Manifest = corpus::Manifest<Spec, FrameCounts, Verdicts>;

/// The result of verifying the commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdicts {
    /// The counts that verifying the commits yields.
    pub verdicts: VerdictCounts,
}

/// A generated stream of many accounts.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    frames: Vec<Vec<u8>>,
    counts: FrameCounts,
    verdicts: VerdictCounts,
    accounts: BTreeMap<String, String>,
}

impl Corpus {
    /// Generates the stream of `spec`; `progress` receives the number of finished frames and of all.
    ///
    /// # Panics
    /// If there are fewer accounts than frames.
    pub fn generate(spec: &Spec, progress: &mut dyn FnMut(usize, usize)) -> Self {
        let per_copy = spec.stream.frames;
        let count = per_copy * spec.copies;
        let mut frames = vec![Vec::new(); count];
        let mut counts = FrameCounts::default();
        let mut ops = 0;
        let mut done = 0;
        let mut signers = Signers::of(spec);
        for (number, member) in plan(&spec.stream).iter().enumerate() {
            progress(done, count);
            let mut commits = Vec::with_capacity(member.slots.len());
            commit_all(&spec.stream, number, member, |_, _, commit| commits.push(commit.clone()));
            for copy in 0..spec.copies {
                for (slot, commit) in member.slots.iter().zip(&commits) {
                    let (did, key) = signers.of_next_commit(slot.index == member.slots[0].index);
                    let signed = commit.signed_by(did, key);
                    counts.add_frame(&signed);
                    ops += signed.ops.len() as u64;
                    let seq = slot.seq + SEQ_PER_COPY * copy as i64;
                    let frame = signed.to_frame(seq, slot.micros + SEND_DELAY_MICROS);
                    frames[copy * per_copy + slot.index] = frame;
                }
            }
            done += member.slots.len() * spec.copies;
        }
        progress(count, count);
        let (frame_count, first_sighting) = (count as u64, signers.used as u64);
        let verdicts = VerdictCounts {
            frames: frame_count,
            commits: frame_count,
            accepted: frame_count - first_sighting,
            first_sighting,
            ops,
            ..VerdictCounts::default()
        };
        Self { spec: spec.clone(), frames, counts, verdicts, accounts: signers.into_keys() }
    }

    /// The frames in stream order.
    pub fn frames(&self) -> &[Vec<u8>] {
        &self.frames
    }

    /// The bytes of the file; see [`atproto::corpus`].
    pub fn to_file(&self) -> Vec<u8> {
        atproto::corpus::write(self.frames.iter().map(Vec::as_slice))
    }

    /// The description of `file`, the bytes of [`Corpus::to_file`].
    pub fn manifest(&self, file: &[u8]) -> Manifest {
        let details = Verdicts { verdicts: self.verdicts };
        Manifest::new(self.spec.clone(), self.counts, details, file)
    }

    /// The counts of a verifier that keeps the accounts' states: all commits are valid, and most are the first
    /// of their account.
    pub fn verdicts(&self) -> VerdictCounts {
        self.verdicts
    }

    /// The keys of the accounts as `did:key`, by DID, including accounts that do not commit.
    pub fn account_keys(&self) -> &BTreeMap<String, String> {
        &self.accounts
    }
}

/// The accounts, in the order in which they sign.
struct Signers {
    accounts: Vec<(String, SigningKey)>,
    used: usize,
    random: Random,
}

impl Signers {
    fn of(spec: &Spec) -> Self {
        let seed = Seed::new(spec.stream.seed, "many accounts");
        let account = |number: usize| {
            let mut random = seed.stream(number as u64);
            let did = did_plc(&mut random);
            let is_p256 = random.chance(spec.p256_percent, 100);
            let curve = if is_p256 { Curve::P256 } else { Curve::K256 };
            (did, SigningKey::generate(curve, &mut random))
        };
        let accounts = (0..spec.accounts).map(account).collect();
        Self { accounts, used: 0, random: seed.stream(u64::MAX) }
    }

    /// The signer of the next commit: sometimes the signer of the last one, if that had the same tree.
    fn of_next_commit(&mut self, is_first_of_tree: bool) -> (&str, &SigningKey) {
        if is_first_of_tree || !self.random.chance(1, 5) {
            self.used += 1;
        }
        let (did, key) = &self.accounts[self.used - 1];
        (did, key)
    }

    fn into_keys(self) -> BTreeMap<String, String> {
        self.accounts.into_iter().map(|(did, key)| (did, key.did_key())).collect()
    }
}

impl NewCommit {
    /// The same commit of another account.
    fn signed_by(&self, did: &str, key: &SigningKey) -> Self {
        let commit = crate::repository::sign(did, key, self.rev, self.data);
        let cid = commit.cid;
        let mut blocks = self.blocks.clone();
        let old = blocks.iter_mut().find(|block| block.cid == self.commit);
        *old.expect("an event has its commit") = Arc::new(commit);
        Self { did: did.to_owned(), commit: cid, blocks, ..self.clone() }
    }
}

/// More than the sequence numbers of a copy of the stream.
const SEQ_PER_COPY: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use atproto::commit::Commit as CommitObject;
    use atproto::event::{Decoder, Event, Options};

    use super::*;
    use crate::keys::PublicKey;

    #[test]
    fn each_commit_is_signed_by_its_account_and_most_accounts_occur_once() {
        let stream = StreamSpec { frames: 40, max_height: 4, ..StreamSpec::quick() };
        let spec = Spec { stream, accounts: 200, copies: 3, p256_percent: 20 };
        let corpus = Corpus::generate(&spec, &mut |_, _| {});
        assert_eq!((corpus.frames().len(), corpus.account_keys().len()), (120, 200));
        let mut decoder = Decoder::new(Options::default());
        let mut dids = BTreeSet::new();
        for frame in corpus.frames() {
            let Ok(Event::Commit(commit)) = decoder.decode(frame) else { panic!("no commit") };
            let block = commit.blocks.iter().find(|block| block.cid == commit.commit.as_cid_ref());
            let object = CommitObject::parse(block.unwrap().data).unwrap();
            let key = PublicKey::from_did_key(&corpus.account_keys()[commit.repo]).unwrap();
            assert!(key.verifies(&object.signing_bytes().to_vec(), object.sig));
            assert_eq!(object.did, commit.repo);
            dids.insert(commit.repo.to_owned());
        }
        let verdicts = corpus.verdicts();
        assert_eq!(verdicts.first_sighting, dids.len() as u64);
        assert!(dids.len() > 80 && verdicts.accepted > 0, "{verdicts:?}");
        assert_eq!(verdicts.accepted + verdicts.first_sighting, 120);
    }
}
