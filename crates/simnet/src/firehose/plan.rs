//! Who commits when, and what kind of thing?

use std::collections::BTreeMap;

use crate::account::{Account, AccountHistory};
use crate::random::{Random, Seed};
use crate::record::Collection;
use crate::tree::Layer;

/// What stream to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Everything follows from this number.
    pub seed: u64,
    /// How many frames, all of them `#commit`.
    pub frames: usize,
    /// The highest tree; what would be higher has this height. Keys for a layer are found by
    /// hashing four times as many as for the layer below.
    pub max_height: Layer,
}

impl Default for Spec {
    /// The full stream: 3,298 frames, seed 4621332152 (a commit of the live stream that had 42
    /// operations), trees up to height 12.
    fn default() -> Self {
        Self { seed: 4_621_332_152, frames: 3_298, max_height: 12 }
    }
}

impl Spec {
    /// A stream for tests: 160 frames, trees up to height 7, the same seed.
    pub fn quick() -> Self {
        Self { frames: 160, max_height: 7, ..Self::default() }
    }
}

/// An account, and when it commits.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) account: Account,
    pub(super) height: Layer,
    pub(super) slots: Vec<Slot>,
}

/// A place in the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The frame's index in the stream.
    pub(super) index: usize,
    pub(super) seq: i64,
    pub(super) micros: u64,
    pub(super) task: Task,
}

/// What a commit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Makes one record.
    Create(Collection),
    /// Changes the profile.
    Update,
    /// Deletes one recent record.
    Delete,
    /// Makes a post with its two gates: three operations.
    GatedPost,
    /// Makes this many likes and follows, in turn.
    Burst(usize),
    /// Deletes this many recent likes.
    Unlikes(usize),
}

/// Deals the slots of the stream to accounts.
pub(super) fn plan(spec: &Spec) -> Vec<Member> {
    let mut random = Seed::new(spec.seed, "plan").stream(0);
    let heights = heights(spec, &mut random);
    let tasks = tasks(&heights, &mut random);
    let mut members = members(spec, &heights);
    let mut of_height: BTreeMap<Layer, Vec<usize>> = BTreeMap::new();
    for (at, member) in members.iter().enumerate() {
        of_height.entry(member.height).or_default().push(at);
    }
    let (mut seq, mut micros) = (FIRST_SEQ, FIRST_MICROS);
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

/// The height of the tree behind each frame.
fn heights(spec: &Spec, random: &mut Random) -> Vec<Layer> {
    let deck = random.deck(&HEIGHTS.map(|(_, weight)| weight), spec.frames);
    deck.into_iter().map(|index| HEIGHTS[index].0.min(spec.max_height)).collect()
}

/// The accounts for these heights, without slots.
fn members(spec: &Spec, heights: &[Layer]) -> Vec<Member> {
    let seed = |number: usize| Seed::new(spec.seed, &format!("account {number}"));
    let mut members = Vec::new();
    for height in 0..=spec.max_height {
        let frames = heights.iter().filter(|other| **other == height).count();
        let per_account = if height < TALL { FRAMES_PER_ACCOUNT } else { FRAMES_PER_TALL_ACCOUNT };
        for _ in 0..frames.div_ceil(per_account) {
            let past = AccountHistory::Thinned(height);
            let account = Account::new(seed(members.len()), past, JOINED_MICROS);
            members.push(Member { account, height, slots: Vec::new() });
        }
    }
    members
}

/// What each frame's commit does.
fn tasks(heights: &[Layer], random: &mut Random) -> Vec<Task> {
    let deck = random.deck(&TASKS.map(|(_, weight)| weight), heights.len());
    let mut tasks: Vec<Task> = deck.into_iter().map(|index| TASKS[index].0).collect();
    let mut place = tasks.len() / 4;
    for (task, height) in TAILS {
        let found = (place..tasks.len()).find(|&at| heights[at] >= height);
        if let Some(at) = found {
            tasks[at] = task;
            place = at + 1 + tasks.len() / 8;
        }
    }
    tasks
}

/// How many of a thousand frames have a tree of this height.
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

/// How many of a thousand frames do what.
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

/// The large commits, each on a tree of at least this height.
const TAILS: [(Task, Layer); 4] =
    [(Task::Burst(42), 8), (Task::Unlikes(12), 6), (Task::Burst(18), 6), (Task::Burst(9), 5)];

/// How many frames an account has on average.
const FRAMES_PER_ACCOUNT: usize = 8;

/// The same for trees that cost much to make.
const FRAMES_PER_TALL_ACCOUNT: usize = 30;

/// From this height on a tree costs much to make.
const TALL: Layer = 9;

/// When the stream begins: 2026-07-01T00:00:00Z.
const FIRST_MICROS: u64 = 1_782_864_000_000_000;

/// Until when the accounts have written before: a minute earlier.
const JOINED_MICROS: u64 = FIRST_MICROS - 60_000_000;

/// The sequence number before the first.
const FIRST_SEQ: i64 = 26_650_000_000;
