//! The calibrated firehose: a file of `#commit` frames.
//!
//! ```text
//! Spec ── plan ──> accounts, and the slots of the stream in which the accounts commit
//!                  └── per account: its repository, then its commits one by one
//! Corpus <── the frames in stream order, with counts of the items in them
//! ```
//!
//! Heights of trees, operations by collection and sizes of records follow measurements of the live
//! stream. Sizes of nodes and frames are not drawn: they result from real trees.
//!
//! ```
//! use wireproof_simnet::firehose::{Corpus, Spec};
//! let corpus = Corpus::generate(&Spec::quick(), &mut |_done, _total| {});
//! assert_eq!(corpus.frames().len(), 160);
//! ```

pub mod many;
mod plan;
#[cfg(test)]
mod tests;
mod writes;

use std::collections::BTreeMap;

use codec::cbor::ItemCounts;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::corpus;
use crate::random::Seed;
use crate::repository::{NewCommit, Repository};

pub use plan::Spec;
use plan::{Member, plan};
use writes::writes;

/// The description of a file of frames.
pub type Manifest = corpus::Manifest<Spec, FrameCounts, StreamDetails>;

/// The keys for verifying the commits of a stream, and the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamDetails {
    /// The counts that verifying the commits yields.
    pub verdicts: VerdictCounts,
    /// The keys that sign the commits, in order of the DIDs.
    pub accounts: Vec<AccountKey>,
}

/// An account and the key that signs its commits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AccountKey {
    /// The DID.
    pub did: String,
    /// The public key, as a `did:key`.
    pub signing_key: String,
}

/// A generated stream.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    members: Vec<Member>,
    frames: Vec<Vec<u8>>,
    counts: FrameCounts,
    ops: u64,
}

impl Corpus {
    /// Generates the stream of `spec`; `progress` receives the number of finished frames and of all.
    pub fn generate(spec: &Spec, progress: &mut dyn FnMut(usize, usize)) -> Self {
        let members = plan(spec);
        let mut frames = vec![Vec::new(); spec.frames];
        let mut counts = FrameCounts::default();
        let mut ops = 0;
        let mut done = 0;
        for (number, member) in members.iter().enumerate() {
            progress(done, spec.frames);
            commit_all(spec, number, member, |index, frame, commit| {
                counts.add_frame(commit);
                ops += commit.ops.len() as u64;
                frames[index] = frame;
            });
            done += member.slots.len();
        }
        progress(done, spec.frames);
        Self { spec: spec.clone(), members, frames, counts, ops }
    }

    /// The specification.
    pub fn spec(&self) -> &Spec {
        &self.spec
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
        let account = |(did, signing_key)| AccountKey { did, signing_key };
        let accounts = self.account_keys().into_iter().map(account).collect();
        let details = StreamDetails { verdicts: self.verdicts(), accounts };
        Manifest::new(self.spec.clone(), self.counts, details, file)
    }

    /// The counts that a decoder finds in the blocks of the frames.
    pub fn counts(&self) -> &FrameCounts {
        &self.counts
    }

    /// The counts of a verifier that keeps the accounts' states: all commits are valid, and the first of an
    /// account is its first sighting.
    pub fn verdicts(&self) -> VerdictCounts {
        let (commits, accounts) = (self.frames.len() as u64, self.members.len() as u64);
        VerdictCounts {
            frames: commits,
            commits,
            accepted: commits - accounts,
            first_sighting: accounts,
            chain_broken: 0,
            refused: 0,
            ops: self.ops,
        }
    }

    /// The accounts that commit in the stream.
    pub fn accounts(&self) -> impl ExactSizeIterator<Item = &Account> {
        self.members.iter().map(|member| &member.account)
    }

    /// The keys of the accounts as `did:key`, by DID.
    pub fn account_keys(&self) -> BTreeMap<String, String> {
        self.accounts().map(|account| (account.did().to_owned(), account.key().did_key())).collect()
    }

    /// The repository after the last frame of the account with this index in [`Corpus::accounts`],
    /// generated again.
    ///
    /// # Panics
    /// If there is no such account.
    pub fn repository(&self, account: usize) -> Repository {
        commit_all(&self.spec, account, &self.members[account], |_, _, _| ())
    }
}

/// Commits in all slots of one account; `emit` receives every frame and its index in the stream.
fn commit_all(
    spec: &Spec,
    number: usize,
    member: &Member,
    mut emit: impl FnMut(usize, Vec<u8>, &NewCommit),
) -> Repository {
    let mut random = Seed::new(spec.seed, "writes").stream(number as u64);
    let mut repository = member.account.open_repository();
    for slot in &member.slots {
        let writes = writes(&repository, slot, &mut random);
        let rev = repository.account().tid(slot.micros);
        let commit = repository.commit(&writes, rev);
        let sent_micros = slot.micros + SEND_DELAY_MICROS;
        emit(slot.index, commit.to_frame(slot.seq, sent_micros), &commit);
    }
    repository
}

/// The counts that a decoder finds in the blocks of the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameCounts {
    /// Frames.
    pub frames: u64,
    /// Invalid frames.
    pub errors: u64,
    /// CAR blocks.
    pub blocks: u64,
    /// Maps.
    pub maps: u64,
    /// Entries in these maps.
    pub map_entries: u64,
    /// Arrays.
    pub arrays: u64,
    /// Items in these arrays.
    pub array_items: u64,
    /// Bytes of UTF-8 in text values and in map keys.
    pub text_bytes: u64,
    /// Bytes in byte strings.
    pub byte_string_bytes: u64,
    /// CID links.
    pub links: u64,
    /// Integers.
    pub integers: u64,
    /// Floats.
    pub floats: u64,
    /// Booleans.
    pub booleans: u64,
    /// Nulls.
    pub nulls: u64,
}

impl FrameCounts {
    fn add_frame(&mut self, commit: &NewCommit) {
        self.frames += 1;
        commit.blocks.iter().for_each(|block| self.add_block(&block.counts));
    }

    /// Adds the items of one block.
    pub fn add_block(&mut self, block: &ItemCounts) {
        self.blocks += 1;
        self.maps += block.maps;
        self.map_entries += block.map_entries;
        self.arrays += block.arrays;
        self.array_items += block.array_items;
        self.text_bytes += block.text_bytes;
        self.byte_string_bytes += block.byte_string_bytes;
        self.links += block.links;
        self.integers += block.integers;
        self.floats += block.floats;
        self.booleans += block.booleans;
        self.nulls += block.nulls;
    }
}

/// The counts that a verifier of the commits finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictCounts {
    /// Frames.
    pub frames: u64,
    /// Frames that are `#commit`.
    pub commits: u64,
    /// Valid commits that continue the state of their account.
    pub accepted: u64,
    /// Valid commits of accounts without state.
    pub first_sighting: u64,
    /// Valid commits that do not continue the state of their account.
    pub chain_broken: u64,
    /// Invalid commits.
    pub refused: u64,
    /// Operations of valid commits.
    pub ops: u64,
}

/// The time from a commit to its event.
const SEND_DELAY_MICROS: u64 = 700;
