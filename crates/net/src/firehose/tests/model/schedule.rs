//! Random schedules: the settings of a run, and the steps that follow. A step that has no meaning where it
//! stands does nothing, so any part of a schedule is one.

use super::environment::{KeyAnswer, RepoAnswer};
use super::world::{Fault, MAX_ACCOUNTS};

/// A schedule.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) settings: Settings,
    pub(super) steps: Vec<Step>,
}

/// The settings of all runs of a schedule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) accounts: usize,
    pub(super) hosts: usize,
    /// Whether the only host is a PDS, which has no other accounts than its own.
    pub(super) is_pds: bool,
    pub(super) workers: usize,
    pub(super) max_batch: usize,
    pub(super) max_in_flight: usize,
    pub(super) max_parked: usize,
    pub(super) resyncs_new: bool,
    /// Decides the workers of the accounts, and the sizes of compared batches.
    pub(super) seed: u64,
}

/// A step. Accounts, lookups and the like are chosen by a number, of which the remainder counts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    // The accounts and their servers.
    Commit(usize),
    /// A commit that the hosts do not send.
    MissedCommit(usize),
    Sync(usize),
    /// A forged event, at one host.
    Forge {
        account: usize,
        fault: Fault,
        host: usize,
    },
    /// The next commit, signed by another key.
    ForgeSignature {
        account: usize,
        is_old_key: bool,
        host: usize,
    },
    /// An earlier commit again, as a new event.
    Replay {
        account: usize,
        back: usize,
        host: usize,
    },
    RotateKey {
        account: usize,
        is_announced: bool,
    },
    /// The account becomes active or inactive.
    SetActive {
        account: usize,
        is_active: bool,
    },
    /// A host calls the account so, which may be wrong.
    ClaimActive {
        account: usize,
        is_active: bool,
        host: usize,
    },
    Identity(usize),
    Migrate(usize),
    Other {
        host: usize,
        is_info: bool,
    },
    // The connection.
    Send(usize),
    SendAgain(usize),
    SendSwapped,
    Disconnect,
    SwitchHost,
    // The follower.
    Work(usize),
    Checkpoint,
    Stop {
        keeps_keys: bool,
    },
    Kill {
        keeps_keys: bool,
    },
    // Its surroundings.
    HoldAcks(bool),
    Ack(usize),
    DropAck(usize),
    FailCheckpoint {
        is_stored: bool,
    },
    AnswerKey {
        at: usize,
        answer: KeyAnswer,
    },
    AnswerStatus {
        at: usize,
        answer: Option<bool>,
    },
    AnswerRepo {
        at: usize,
        answer: RepoAnswer,
    },
    Wait {
        millis: u64,
    },
}

impl Schedule {
    /// The schedule of a seed.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let is_pds = random.below(4) == 0;
        let settings = Settings {
            accounts: 1 + random.below(MAX_ACCOUNTS),
            hosts: if is_pds { 1 } else { 1 + random.below(2) },
            is_pds,
            workers: 1 + random.below(2),
            max_batch: [1, 2, 8, 512][random.below(4)],
            max_in_flight: [2, 5, 20, 100][random.below(4)],
            max_parked: [2, 6, 100][random.below(3)],
            resyncs_new: random.below(4) == 0,
            seed,
        };
        let count = 20 + random.below(80);
        let mut steps = if random.below(2) == 0 { Vec::new() } else { Step::under_way(&settings) };
        steps.extend((0..count).map(|_| Step::new(&mut random)));
        Self { settings, steps }
    }
}

impl Step {
    /// Brings a run under way: all accounts are known, and one is desynchronized.
    fn under_way(settings: &Settings) -> Vec<Self> {
        let mut steps: Vec<Self> = (0..settings.accounts).map(Self::Commit).collect();
        let work = (0..settings.workers).map(Self::Work);
        steps.extend([Self::Send(settings.accounts), Self::Checkpoint]);
        steps.extend(work.clone().chain(work.clone()));
        let answer = KeyAnswer::Current;
        steps.extend([Self::AnswerKey { at: 0, answer }; MAX_ACCOUNTS]);
        steps.extend(work.clone().chain(work.clone()));
        steps.extend([Self::MissedCommit(0), Self::Commit(0), Self::Send(1)]);
        steps.extend(work);
        steps
    }

    fn new(random: &mut Random) -> Self {
        let (account, host) = (random.below(MAX_ACCOUNTS), random.below(2));
        let (at, yes) = (random.below(8), random.below(2) == 0);
        match random.below(100) {
            0..=17 => Self::Commit(account),
            18..=19 => Self::MissedCommit(account),
            20..=21 => Self::Sync(account),
            22..=24 => Self::Forge { account, fault: Fault::ALL[random.below(6)], host },
            25..=26 => Self::ForgeSignature { account, is_old_key: yes, host },
            27 => Self::Replay { account, back: at, host },
            28..=30 => Self::RotateKey { account, is_announced: random.below(4) > 0 },
            31..=32 => Self::SetActive { account, is_active: yes },
            33 => Self::ClaimActive { account, is_active: yes, host },
            34 => Self::Identity(account),
            35 => Self::Migrate(account),
            36 => Self::Other { host, is_info: yes },
            37..=49 => Self::Send(1 + random.below(6)),
            50 => Self::SendAgain(at),
            51 => Self::SendSwapped,
            52 => Self::Disconnect,
            53 => Self::SwitchHost,
            54..=71 => Self::Work(at),
            72..=76 => Self::Checkpoint,
            77 => Self::Stop { keeps_keys: yes },
            78..=79 => Self::Kill { keeps_keys: yes },
            80 => Self::HoldAcks(yes),
            81..=83 => Self::Ack(at),
            84 if yes => Self::DropAck(at),
            84 => Self::FailCheckpoint { is_stored: random.below(2) == 0 },
            85..=89 => Self::AnswerKey { at, answer: KeyAnswer::new(random) },
            90..=91 => Self::AnswerStatus {
                at,
                answer: [Some(true), Some(false), Some(false), None][random.below(4)],
            },
            92..=95 => Self::AnswerRepo { at, answer: RepoAnswer::new(random) },
            _ => Self::Wait { millis: [1, 300, 2_000, 31_000][random.below(4)] },
        }
    }
}

impl Step {
    /// The name under which it is counted.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Commit(_) => "step: commit",
            Self::MissedCommit(_) => "step: missed commit",
            Self::Sync(_) => "step: #sync",
            Self::Forge { .. } => "step: forged event",
            Self::ForgeSignature { .. } => "step: forged signature",
            Self::Replay { .. } => "step: replayed commit",
            Self::RotateKey { .. } => "step: key rotation",
            Self::SetActive { .. } => "step: status",
            Self::ClaimActive { .. } => "step: claimed status",
            Self::Identity(_) => "step: #identity",
            Self::Migrate(_) => "step: migration",
            Self::Other { .. } => "step: #info or garbage",
            Self::Send(_) => "step: send",
            Self::SendAgain(_) => "step: repeated frame",
            Self::SendSwapped => "step: reordered frames",
            Self::Disconnect => "step: disconnect",
            Self::SwitchHost => "step: switch of host",
            Self::Work(_) => "step: work",
            Self::Checkpoint => "step: checkpoint",
            Self::Stop { .. } => "step: stop",
            Self::Kill { .. } => "step: kill",
            Self::HoldAcks(_) => "step: hold acknowledgements",
            Self::Ack(_) => "step: late acknowledgement",
            Self::DropAck(_) => "step: dropped acknowledgement",
            Self::FailCheckpoint { .. } => "step: failed checkpoint",
            Self::AnswerKey { .. } => "step: answer of a key lookup",
            Self::AnswerStatus { .. } => "step: answer of a status lookup",
            Self::AnswerRepo { .. } => "step: answer with a repository",
            Self::Wait { .. } => "step: wait",
        }
    }
}

impl KeyAnswer {
    fn new(random: &mut Random) -> Self {
        match random.below(10) {
            0..=6 => Self::Current,
            7 => Self::Stale,
            8 => Self::Unavailable,
            _ => Self::None,
        }
    }
}

impl RepoAnswer {
    fn new(random: &mut Random) -> Self {
        let by = 1 + random.below(4);
        match random.below(10) {
            0..=3 => Self::Current,
            4..=5 => Self::Old(by),
            6 => Self::New(by),
            7 => Self::Forged,
            8 => [Self::OtherAccount, Self::CutOff][random.below(2)],
            _ => Self::Unavailable,
        }
    }
}

/// A small generator of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

/// The shortest schedule that still breaks a rule: steps are left out as long as one stays broken.
pub(super) fn shrink(schedule: &Schedule, breaks: impl Fn(&Schedule) -> bool) -> Schedule {
    let mut shortest = schedule.clone();
    let mut len = schedule.steps.len() / 2;
    while len > 0 {
        let mut at = 0;
        while at < shortest.steps.len() {
            let mut shorter = shortest.clone();
            let end = (at + len).min(shorter.steps.len());
            shorter.steps.drain(at..end);
            if breaks(&shorter) { shortest = shorter } else { at += len }
        }
        len /= 2;
    }
    shortest
}
