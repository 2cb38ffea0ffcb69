//! The frames, and what was written into them.

use std::collections::BTreeMap;

use codec::cbor::ItemCounts;
use serde::{Deserialize, Serialize};

use super::plan::{Member, Spec, plan};
use super::writes::writes;
use crate::account::Account;
use crate::random::Seed;
use crate::repository::{NewCommit, Repository};

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
    /// Makes the stream of `spec`, telling `progress` how many frames of how many are done.
    pub fn generate(spec: &Spec, progress: &mut dyn FnMut(usize, usize)) -> Self {
        let members = plan(spec);
        let mut frames = vec![Vec::new(); spec.frames];
        let mut counts = FrameCounts::default();
        let mut ops = 0;
        let mut done = 0;
        for (number, member) in members.iter().enumerate() {
            progress(done, spec.frames);
            run(spec, number, member, |index, frame, committed| {
                counts.add_frame(committed);
                ops += committed.ops.len() as u64;
                frames[index] = frame;
            });
            done += member.slots.len();
        }
        progress(done, spec.frames);
        Self { spec: spec.clone(), members, frames, counts, ops }
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The frames, in the order of the stream.
    pub fn frames(&self) -> &[Vec<u8>] {
        &self.frames
    }

    /// The frames as the bytes of a corpus file; see [`atproto::corpus`].
    pub fn to_file(&self) -> Vec<u8> {
        atproto::corpus::write(self.frames.iter().map(Vec::as_slice))
    }

    /// What was written into the blocks of the frames.
    pub fn counts(&self) -> &FrameCounts {
        &self.counts
    }

    /// What a judge of the commits must find who carries what is known of an account from frame to
    /// frame: all of them valid.
    pub fn verdicts(&self) -> VerdictCounts {
        let commits = self.frames.len() as u64;
        VerdictCounts { frames: commits, commits, accepted: commits, refused: 0, ops: self.ops }
    }

    /// The accounts that commit in the stream.
    pub fn accounts(&self) -> impl ExactSizeIterator<Item = &Account> {
        self.members.iter().map(|member| &member.account)
    }

    /// The key of each account as a `did:key`, by its DID.
    pub fn account_keys(&self) -> BTreeMap<String, String> {
        self.accounts().map(|account| (account.did().to_owned(), account.key().did_key())).collect()
    }

    /// The repository of the account with this index in [`Corpus::accounts`] as it is after the
    /// last frame, made once more.
    ///
    /// # Panics
    /// If there is no such account.
    pub fn repository(&self, account: usize) -> Repository {
        run(&self.spec, account, &self.members[account], |_, _, _| ())
    }
}

/// Lets one account commit in all of its slots; `emit` gets each frame with its index in the stream.
fn run(
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
        let committed = repository.commit(&writes, rev);
        let sent_micros = slot.micros + SENDING_MICROS;
        emit(slot.index, committed.to_frame(slot.seq, sent_micros), &committed);
    }
    repository
}

/// How much of each kind is in the blocks of the frames: what a decoder must find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameCounts {
    /// Frames.
    pub frames: u64,
    /// Frames that are not valid.
    pub errors: u64,
    /// CAR blocks.
    pub blocks: u64,
    /// Maps.
    pub maps: u64,
    /// Entries in those maps.
    pub map_entries: u64,
    /// Arrays.
    pub arrays: u64,
    /// Items in those arrays.
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
    fn add_frame(&mut self, committed: &NewCommit) {
        self.frames += 1;
        committed.blocks.iter().for_each(|block| self.add_block(&block.counts));
    }

    /// Adds a block with this in it.
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

/// How many commits of each kind there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictCounts {
    /// Frames.
    pub frames: u64,
    /// Frames that are `#commit`.
    pub commits: u64,
    /// Commits that are valid.
    pub accepted: u64,
    /// Commits that are not.
    pub refused: u64,
    /// Operations of valid commits.
    pub ops: u64,
}

/// From the commit to the event that tells of it.
const SENDING_MICROS: u64 = 700;
