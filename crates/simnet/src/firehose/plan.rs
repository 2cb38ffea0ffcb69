//! The plan of a stream: its accounts, and the times and tasks of their commits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::account::{Account, AccountHistory};
use crate::random::{DEFAULT_SEED, Random, Seed};
use crate::record::Collection;
use crate::time::START_MICROS;
use crate::tree::Layer;

/// The specification of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The seed.
    pub seed: u64,
    /// The number of frames, all of them `#commit`.
    pub frames: usize,
    /// The maximum height of trees; higher ones get this height. The cost of finding keys for a layer
    /// is four times the cost for the layer below.
    pub max_height: Layer,
}

impl Default for Spec {
    /// The full stream: 3,298 frames, trees up to height 12.
    fn default() -> Self {
        Self { seed: DEFAULT_SEED, frames: 3_298, max_height: 12 }
    }
}

impl Spec {
    /// A small stream for tests: 160 frames, trees up to height 7.
    pub fn quick() -> Self {
        Self { frames: 160, max_height: 7, ..Self::default() }
    }
}

/// An account and its commits.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) account: Account,
    pub(super) height: Layer,
    pub(super) slots: Vec<Slot>,
}

/// One commit of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The frame's index in the stream.
    pub(super) index: usize,
    pub(super) seq: i64,
    pub(super) micros: u64,
    pub(super) task: Task,
}

/// The operations of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Creates one record.
    Create(Collection),
    /// Updates the profile.
    Update,
    /// Deletes one recent record.
    Delete,
    /// Creates a post with its two gates: three operations.
    GatedPost,
    /// Creates this many likes and follows, alternating.
    Burst(usize),
    /// Deletes this many recent likes.
    Unlikes(usize),
}

/// Assigns the commits of the stream to accounts.
pub(super) fn plan(spec: &Spec) -> Vec<Member> {
    let mut random = Seed::new(spec.seed, "plan").stream(0);
    let heights = heights(spec, &mut random);
    let tasks = tasks(&heights, &mut random);
    let mut members = members(spec, &heights);
    let mut of_height: BTreeMap<Layer, Vec<usize>> = BTreeMap::new();
    for (at, member) in members.iter().enumerate() {
        of_height.entry(member.height).or_default().push(at);
    }
    let (mut seq, mut micros) = (FIRST_SEQ, START_MICROS);
    for (index, (height, task)) in heights.into_iter().zip(tasks).enumerate() {
        seq += random.between(1, 3) as i64;
        micros += random.between(1_000, 13_000);
        let of_height = &of_height[&height];
        // The lesser of two draws: some accounts write much more than others.
        let draws = [random.pick(of_height), random.pick(of_height)];
        let member = **draws.iter().min().expect("two draws");
        members[member].slots.push(Slot { index, seq, micros, task });
    }
    members.retain(|member| !member.slots.is_empty());
    members
}

/// The heights of the frames' trees.
fn heights(spec: &Spec, random: &mut Random) -> Vec<Layer> {
    let drawn = random.apportioned(&HEIGHTS.map(|(_, weight)| weight), spec.frames);
    drawn.into_iter().map(|index| HEIGHTS[index].0.min(spec.max_height)).collect()
}

/// The accounts for these heights, without commits.
fn members(spec: &Spec, heights: &[Layer]) -> Vec<Member> {
    let seed = |number: usize| Seed::new(spec.seed, &format!("account {number}"));
    let mut members = Vec::new();
    for height in 0..=spec.max_height {
        let frames = heights.iter().filter(|other| **other == height).count();
        let per_account = if height < TALL { FRAMES_PER_ACCOUNT } else { FRAMES_PER_TALL_ACCOUNT };
        for _ in 0..frames.div_ceil(per_account) {
            let history = AccountHistory::Thinned(height);
            let account = Account::new(seed(members.len()), history, JOINED_MICROS);
            members.push(Member { account, height, slots: Vec::new() });
        }
    }
    members
}

/// The operations of the frames' commits.
fn tasks(heights: &[Layer], random: &mut Random) -> Vec<Task> {
    let drawn = random.apportioned(&TASKS.map(|(_, weight)| weight), heights.len());
    let mut tasks: Vec<Task> = drawn.into_iter().map(|index| TASKS[index].0).collect();
    let mut start = tasks.len() / 4;
    for (task, height) in LARGE_COMMITS {
        let found = (start..tasks.len()).find(|&at| heights[at] >= height);
        if let Some(at) = found {
            tasks[at] = task;
            start = at + 1 + tasks.len() / 8;
        }
    }
    tasks
}

/// The shares of frames by height of the tree, per mille.
const HEIGHTS: [(Layer, u64); 11] = [
    (1, 19),
    (3, 13),
    (4, 67),
    (5, 104),
    (6, 183),
    (7, 316),
    (8, 187),
    (9, 67),
    (10, 24),
    (11, 17),
    (12, 3),
];

/// The shares of frames by task, per mille.
const TASKS: [(Task, u64); 11] = [
    (Task::Create(Collection::Like), 692),
    (Task::Create(Collection::Post), 110),
    (Task::Create(Collection::Repost), 97),
    (Task::Create(Collection::Follow), 39),
    (Task::Create(Collection::Block), 7),
    (Task::Create(Collection::Threadgate), 4),
    (Task::Create(Collection::Postgate), 2),
    (Task::Create(Collection::Document), 2),
    (Task::Update, 13),
    (Task::Delete, 27),
    (Task::GatedPost, 7),
];

/// The large commits, on trees of at least the given height.
const LARGE_COMMITS: [(Task, Layer); 4] =
    [(Task::Burst(42), 8), (Task::Unlikes(12), 6), (Task::Burst(18), 6), (Task::Burst(9), 5)];

/// The mean number of frames of an account.
const FRAMES_PER_ACCOUNT: usize = 8;

/// The same for trees that are expensive to generate.
const FRAMES_PER_TALL_ACCOUNT: usize = 30;

/// The least height of trees that are expensive to generate.
const TALL: Layer = 9;

/// The time of the last commit before the stream: a minute before its start.
const JOINED_MICROS: u64 = START_MICROS - 60_000_000;

/// The sequence number before the first.
const FIRST_SEQ: i64 = 26_650_000_000;
