//! A schedule from its first step to the end: then everything is answered, sent and acknowledged, and the follower
//! must have caught up with the world.

use std::time::Duration;

use atproto::event::Frame;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use verify::sync::{Judge, MemoryState};

use super::environment::{Counts, Environment, Incoming, KeyAnswer, RepoAnswer, stream_name};
use super::follower::{Follower, MAX_WORKERS};
use super::reference::{Head, Key, Known, judge};
use super::schedule::{Random, Schedule, Step};
use super::world::{self, Content, SimEvent, World};
use crate::firehose::{RunError, RunSummary, Verdict};
use crate::hosts::HostId;

/// Plays a schedule, and counts its steps and outcomes.
///
/// # Errors
/// The rule that was broken.
pub(super) fn play(schedule: &Schedule, counts: &mut Counts) -> Result<(), String> {
    play_traced(schedule, counts).0
}

/// Plays a schedule, and returns its trace too.
pub(super) fn play_traced(
    schedule: &Schedule,
    counts: &mut Counts,
) -> (Result<(), String>, Vec<String>) {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let local = LocalSet::new();
    let (outcome, trace) = local.block_on(&runtime, async {
        let mut player = Player::new(schedule);
        let result = player.play(schedule).await;
        let mut of = player.environment.lock();
        for (what, count) in std::mem::take(&mut of.counts) {
            *counts.entry(what).or_default() += count;
        }
        (result.map(|()| of.world.clone()), of.model.take_trace())
    });
    (outcome.and_then(|world| compare_batches(&world, schedule)), trace)
}

struct Player<'s> {
    schedule: &'s Schedule,
    environment: Environment,
    follower: Follower,
    /// Whether a failure of the journal, or of an acknowledgement, ends the run.
    expects_failure: bool,
}

impl<'s> Player<'s> {
    fn new(schedule: &'s Schedule) -> Self {
        let settings = &schedule.settings;
        let environment = Environment::new(settings.accounts, settings.hosts, settings.is_pds);
        environment.lock().begin_run(true);
        let follower = Follower::start(&environment, settings, HostId(0));
        Self { schedule, environment, follower, expects_failure: false }
    }

    async fn play(&mut self, schedule: &Schedule) -> Result<(), String> {
        for step in &schedule.steps {
            self.step(*step).await;
            self.follower.settle().await;
            if self.follower.is_ending() {
                self.end_run().await;
                self.restart(true).await;
            }
            self.check()?;
        }
        self.catch_up().await;
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        let of = self.environment.lock();
        of.model.violation().map_or(Ok(()), |violation| Err(violation.to_owned()))
    }

    async fn step(&mut self, step: Step) {
        self.environment.lock().begin_step(step);
        match step {
            Step::Send(count) => (0..count).for_each(|_| self.send()),
            Step::SendAgain(back) => self.send_again(back),
            Step::SendSwapped => self.send_swapped(),
            Step::Disconnect => self.follower.reconnect(self.follower.host),
            Step::SwitchHost => {
                let hosts = self.environment.lock().world.streams.len();
                self.follower.reconnect(HostId((self.follower.host.0 + 1) % hosts));
            }
            Step::Work(worker) => self.follower.work(worker % MAX_WORKERS),
            Step::Checkpoint => self.follower.checkpoint(),
            Step::Stop { keeps_keys } => {
                self.follower.stop.request();
                self.end_run().await;
                self.restart(keeps_keys).await;
            }
            Step::Kill { keeps_keys } => self.restart(keeps_keys).await,
            Step::Wait { millis } => tokio::time::sleep(Duration::from_millis(millis)).await,
            Step::AnswerStatus { .. } => {
                self.change_surroundings(step);
                // The follower counts the validity of the answer from here.
                self.follower.settle().await;
                (0..MAX_WORKERS).for_each(|worker| self.follower.work(worker));
            }
            Step::DropAck(at) => {
                let mut of = self.environment.lock();
                if !of.held.is_empty() {
                    let at = at % of.held.len();
                    self.expects_failure = true;
                    of.count("acknowledgement dropped");
                    drop(of.held.remove(at));
                }
            }
            Step::FailCheckpoint { is_stored } => {
                self.expects_failure = true;
                self.environment.lock().checkpoint_fault = Some(is_stored);
            }
            step => self.change_surroundings(step),
        }
    }

    fn change_surroundings(&self, step: Step) {
        let mut of = self.environment.lock();
        match step {
            Step::HoldAcks(holds) => of.holds = holds,
            Step::Ack(at) if !of.held.is_empty() => {
                let at = at % of.held.len();
                of.ack_held(at);
            }
            Step::AnswerKey { at, answer } if !of.keys.is_empty() => {
                let at = at % of.keys.len();
                of.answer_key(at, answer);
            }
            Step::AnswerStatus { at, answer } if !of.statuses.is_empty() => {
                let at = at % of.statuses.len();
                of.answer_status(at, answer);
            }
            Step::AnswerRepo { at, answer } if !of.repos.is_empty() => {
                let at = at % of.repos.len();
                of.answer_repo(at, answer);
            }
            step => of.world.step(step),
        }
    }

    // The connection.

    /// Sends the next event of the stream.
    fn send(&self) {
        let mut of = self.environment.lock();
        let Some((host, at)) = of.position else { return };
        let Some(event) = of.world.streams[host].get(at).cloned() else { return };
        of.position = Some((host, at + 1));
        of.model.sent(host, &event);
        self.follower.receive(Incoming::Frame(HostId(host), event.frame));
    }

    /// Sends an event that was sent before.
    fn send_again(&self, back: usize) {
        let mut of = self.environment.lock();
        let Some((host, at)) = of.position else { return };
        let Some(at) = at.checked_sub(1 + back) else { return };
        of.world.streams[host][at].was_reordered = true;
        let event = of.world.streams[host][at].clone();
        of.model.sent(host, &event);
        self.follower.receive(Incoming::Frame(HostId(host), event.frame));
    }

    /// Sends the next two events in the wrong order.
    fn send_swapped(&self) {
        let mut of = self.environment.lock();
        let Some((host, at)) = of.position else { return };
        if of.world.streams[host].len() < at + 2 {
            return;
        }
        of.world.streams[host][at].was_reordered = true;
        for at in [at + 1, at] {
            let event = of.world.streams[host][at].clone();
            of.model.sent(host, &event);
            self.follower.receive(Incoming::Frame(HostId(host), event.frame));
        }
        of.position = Some((host, at + 2));
    }

    // The ends of runs.

    /// Lets a run end that was stopped or has failed.
    async fn end_run(&mut self) -> Option<RunSummary> {
        let ended = self.follower.finish().await;
        let mut of = self.environment.lock();
        match ended {
            Some(Ok(summary)) => return Some(summary),
            Some(Err(RunError::Journal(_) | RunError::Unacknowledged { .. }))
                if self.expects_failure => {}
            Some(Err(error)) => of.model.violate(format!("the run failed: {error}")),
            None => of.model.violate("the run did not end in time"),
        }
        None
    }

    /// Kills the run, and starts the next one from the journal.
    async fn restart(&mut self, keeps_keys: bool) {
        self.environment.lock().begin_run(keeps_keys);
        let host = self.follower.host;
        let next = Follower::start(&self.environment, &self.schedule.settings, host);
        std::mem::replace(&mut self.follower, next).kill().await;
        self.expects_failure = false;
    }

    // The end of the schedule.

    /// Answers, sends and acknowledges everything. Then all accounts must be synchronized at their last commit, with
    /// all of it in the journal.
    async fn catch_up(&mut self) {
        self.calm();
        self.quiesce().await;
        // All delays after failures end.
        tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
        self.quiesce().await;
        let last = self.publish_last_commits();
        self.quiesce().await;
        self.follower.stop.request();
        let summary = self.end_run().await;
        self.check_end(summary, &last);
    }

    /// Holds the journal against the world.
    fn check_end(&self, summary: Option<RunSummary>, last: &[(usize, Head)]) {
        let mut of = self.environment.lock();
        for (host, stream) in of.world.streams.clone().iter().enumerate() {
            of.model.check_loss(host, stream);
        }
        let host = self.follower.host.0;
        let end = of.world.streams[host].iter().rev().find_map(|event| event.seq);
        if of.model.cursor(host) != end {
            let cursor = of.model.cursor(host);
            of.model.violate(format!("the cursor is {cursor:?} in place of {end:?}"));
        }
        let cursors = |summary: RunSummary| {
            summary.cursors.into_iter().nth(host).and_then(|(_, cursor)| cursor)
        };
        if summary.map(cursors) != Some(end) || of.stored.get(&stream_name(host)).copied() != end {
            of.model.violate("the last cursor is not that of the summary");
        }
        for (account, head) in last {
            let known = of.model.journaled(*account);
            let expected = Known { head: Some(*head), is_synchronized: true, is_active: true };
            if known != expected {
                of.model.violate(format!("account {account} ends as {known:?}, not {expected:?}"));
            }
        }
    }

    fn calm(&self) {
        let mut of = self.environment.lock();
        of.is_calm = true;
        of.checkpoint_fault = None;
        while !of.held.is_empty() {
            of.ack_held(0);
        }
    }

    /// One more commit of every account, which is active and hosted here. Account, and head.
    fn publish_last_commits(&self) -> Vec<(usize, Head)> {
        let mut of = self.environment.lock();
        let mut last = Vec::new();
        for account in 0..of.world.accounts.len() {
            of.world.step(Step::SetActive { account, is_active: true });
            of.world.accounts[account].is_hosted = true;
            of.world.publish_identity(account);
            let Some(index) = of.world.commit(account) else { continue };
            let key = of.world.accounts[account].key;
            of.world.publish_commit(account, index, key, None, None);
            let (rev, data) = world::rev_and_data(account, index);
            last.push((account, (rev, data, world::commit_cid(account, index, key))));
        }
        last
    }

    /// Works until everything is sent, delivered and acknowledged. The time for that is bounded.
    async fn quiesce(&mut self) {
        for _ in 0..MAX_ROUNDS {
            self.send();
            self.answer_all();
            self.follower.settle().await;
            (0..MAX_WORKERS).for_each(|worker| self.follower.work(worker));
            self.follower.checkpoint();
            self.follower.settle().await;
            if self.is_quiet() || self.follower.is_ending() || self.check().is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        self.environment.lock().model.violate("events are in flight forever");
    }

    /// Answers the lookups that wait from before.
    fn answer_all(&self) {
        let mut of = self.environment.lock();
        of.forget_waiting();
        while !of.keys.is_empty() {
            of.answer_key(0, KeyAnswer::Current);
        }
        while let Some(request) = of.statuses.first() {
            let is_active = of.world.accounts[request.account].is_active;
            of.answer_status(0, Some(is_active));
        }
        while !of.repos.is_empty() {
            of.answer_repo(0, RepoAnswer::Current);
        }
    }

    fn is_quiet(&self) -> bool {
        let of = self.environment.lock();
        let is_sent = of.position.is_some_and(|(host, at)| at == of.world.streams[host].len());
        is_sent && of.model.is_quiet() && self.follower.in_flight() == 0
    }
}

/// Judges the stream of the first host one by one and in batches: with the same verdicts, which the model agrees
/// with, and the same states.
fn compare_batches(world: &World, schedule: &Schedule) -> Result<(), String> {
    let mut stream = &world.streams[0][..];
    let (mut random, mut comparison) = (Random(schedule.settings.seed), Comparison::new(world));
    while !stream.is_empty() {
        let (batch, rest) = stream.split_at((1 + random.below(40)).min(stream.len()));
        comparison.judge(batch)?;
        stream = rest;
    }
    comparison.compare_states()
}

/// Two judges, and the model, with the keys of now.
struct Comparison<'w> {
    world: &'w World,
    single: (Judge, MemoryState),
    batched: (Judge, MemoryState),
    known: Vec<Known>,
}

impl<'w> Comparison<'w> {
    fn new(world: &'w World) -> Self {
        let judge = || Judge::builder().key_cache_bytes(64 << 10).build();
        let single = (judge(), MemoryState::new([1; 16]));
        let batched = (judge(), MemoryState::new([2; 16]));
        Self { world, single, batched, known: vec![Known::NOTHING; world.accounts.len()] }
    }

    fn judge(&mut self, batch: &[SimEvent]) -> Result<(), String> {
        let (world, now) = (self.world, base::now_micros());
        let keys = |did: &str| {
            let account = world.account(did)?;
            Some(world::compressed_key(account, world.accounts[account].key))
        };
        let frames: Vec<Frame<'_>> = batch.iter().map(|event| Frame::from(&*event.frame)).collect();
        let (judge, state) = &mut self.batched;
        let of_batch = judge.judge_batch(&frames, &keys, state, now).unwrap();
        for (event, of_batch) in batch.iter().zip(of_batch) {
            let (judge, state) = &mut self.single;
            let of_single = judge.judge(&event.frame, &keys, state, now).unwrap();
            let codes = [of_single, of_batch].map(|judged| Verdict::Judged(judged.outcome).code());
            let expected = expected(world, event, &mut self.known);
            if codes != [expected; 2] {
                return Err(format!("single and batch: {codes:?}, not {expected} for {event:?}"));
            }
        }
        Ok(())
    }

    fn compare_states(&self) -> Result<(), String> {
        let states = [&self.single.1, &self.batched.1];
        for (account, known) in self.world.accounts.iter().zip(&self.known) {
            let states = states.map(|state| Known::of(&state.get(&account.did)));
            if states != [*known; 2] {
                return Err(format!("single and batch: the states {states:?}, not {known:?}"));
            }
        }
        Ok(())
    }
}

/// The code of an event where every account is active and has its key of now.
fn expected(world: &World, event: &SimEvent, known: &mut [Known]) -> &'static str {
    match (event.account, &event.content) {
        (_, Content::Account { .. } | Content::Identity) => "unchecked",
        (Some(account), content) => {
            let key = Some(Key::Number(world.accounts[account].key));
            let (code, after) = judge(known[account], content, key, false);
            known[account] = after;
            code
        }
        (None, content) => judge(Known::NOTHING, content, None, false).0,
    }
}

/// Rounds of half a second.
const MAX_ROUNDS: usize = 600;
