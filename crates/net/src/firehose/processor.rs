//! What is to be thought of a batch of events, and what follows from that?

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use atproto::event::{Decoder, Event};
use crypto::KeyCache;
use verify::sync::{
    AccountKey, Chain, ChainState, Judge, Judged, KeySource, Outcome, SyncEffect, SyncRejection,
};

use super::counter::Dispatcher;
use super::handler::{Handler, Verdict};
use super::item::{Answer, Item, Numbers};
use super::keys::{KeyError, KeyProvider};
use super::options::{Options, Verification};
use super::recording::RecordingState;

/// Where events are settled.
pub(super) enum Processor<S> {
    Judge(Box<Verifier<S>>),
    Reader(Decoder),
}

impl<S> Processor<S> {
    /// The processor of one of the workers, who knows this of its accounts.
    pub(super) fn new(options: &Options, state: S, numbers: &Numbers) -> Self {
        match &options.verify {
            Verification::Off { decoding } => Self::Reader(Decoder::new(*decoding)),
            Verification::On { policy, keys, cache_bytes } => {
                let cache = KeyCache::new(cache_bytes / options.workers.max(1), seed());
                let (judge, keys) = (Judge::new(*policy, cache), keys.clone());
                let resync = options.resync.as_ref();
                let fetches_new = resync.is_some_and(|resync| resync.on_first_seen);
                let numbers = numbers.clone();
                Self::Judge(Box::new(Verifier { judge, state, keys, numbers, fetches_new }))
            }
        }
    }
}

/// Judges events, with all that takes.
pub(super) struct Verifier<S> {
    pub(super) judge: Judge,
    pub(super) state: S,
    pub(super) keys: Arc<dyn KeyProvider>,
    pub(super) numbers: Numbers,
    /// Whether an account that was not known before is out of step.
    pub(super) fetches_new: bool,
}

/// What follows from a batch.
#[derive(Debug, Default)]
pub(super) struct BatchOutcome {
    /// The accounts of which somebody should find out the key.
    pub(super) doubts: Vec<UnresolvedKey>,
    /// Their events, in order, which were not handed over.
    pub(super) unsettled: Vec<Item>,
    /// The accounts that are out of step.
    pub(super) out_of_step: Vec<(u64, Box<str>)>,
}

/// An account whose key is in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnresolvedKey {
    pub(super) account: u64,
    pub(super) did: Box<str>,
    /// Whether there is a key, but it did not sign.
    pub(super) is_doubted: bool,
    /// The first of its events that are not settled, by its place in the batch.
    from: usize,
}

impl<S: ChainState> Verifier<S> {
    /// Judges these events and hands them over, but for those whose key is in doubt.
    ///
    /// An account has at most one `#account` or `#identity` among them, and nothing behind that.
    pub(super) fn settle<H: Handler>(
        &mut self,
        items: Vec<Item>,
        counter: &Dispatcher<H>,
    ) -> Result<BatchOutcome, S::Error> {
        let Self { judge, state, keys, numbers, fetches_new } = self;
        let began = Instant::now();
        let before = judge.cache().stats();
        let frames: Vec<&[u8]> = items.iter().map(|item| &*item.arrival.frame).collect();
        let mut state = RecordingState::new(state, numbers, counter.keeps_accounts);
        let known = KnownKeys::new(&**keys, &items);
        let judged = judge.judge_batch(&frames, &known, &mut state, now_micros())?;
        counter.counters.verify_time.count(began.elapsed());
        let doubts = doubts(&items, &judged);
        let settled = |at: &usize| !is_in_doubt(&doubts, &items[*at], *at);
        let places = (0..items.len()).filter(settled);
        let mut news =
            News { state, keys: &**keys, fetches_new: *fetches_new, out_of_step: vec![] };
        let mut handing_over = counter.begin(places.clone().map(|at| &items[at]));
        for at in places {
            let (item, Judged { event, outcome }) = (&items[at], &judged[at]);
            handing_over.event(item, *event, verdict(outcome, item));
            news.take(item, outcome)?;
        }
        let News { state, out_of_step, .. } = news;
        handing_over.end(state.stored.unwrap_or_default());
        drop(judged);
        let after = judge.cache().stats();
        counter.counters.cached(&before, &after);
        let unsettled = match doubts.is_empty() {
            true => Vec::new(),
            false => keep(items, |item, at| is_in_doubt(&doubts, item, at)),
        };
        Ok(BatchOutcome { doubts, unsettled, out_of_step })
    }
}

/// What is known from now on because an event was handed over, beside what the judge has stored.
struct News<'s, S> {
    state: RecordingState<'s, S>,
    keys: &'s dyn KeyProvider,
    fetches_new: bool,
    out_of_step: Vec<(u64, Box<str>)>,
}

impl<S: ChainState> News<'_, S> {
    fn take(&mut self, item: &Item, outcome: &Outcome<'_>) -> Result<(), S::Error> {
        match outcome {
            Outcome::Unjudged(Event::Account(event)) => self.state.set_active(event)?,
            Outcome::Unjudged(Event::Identity(event)) => self.keys.invalidate(event.did),
            outcome if is_out_of_step(outcome, self.fetches_new) => {
                let did = item.arrival.did().unwrap_or_default();
                self.out_of_step.push((item.account, did.into()));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Reads these events and hands them over.
pub(super) fn read<H: Handler>(decoder: &mut Decoder, items: &[Item], counter: &Dispatcher<H>) {
    let began = Instant::now();
    let frames: Vec<&[u8]> = items.iter().map(|item| &*item.arrival.frame).collect();
    let events = decoder.decode_batch(&frames);
    counter.counters.verify_time.count(began.elapsed());
    let mut handing_over = counter.begin(items.iter());
    for (item, event) in items.iter().zip(events) {
        match event {
            Ok(event) => handing_over.event(item, Some(event), Verdict::NotVerified),
            Err(error) => handing_over.event(item, None, Verdict::Undecodable(*error)),
        }
    }
    handing_over.end(Vec::new());
}

/// The accounts whose key may be another by now, each from the first event on that says so. If a later
/// event of the account is accepted, then its key is no other, and the refusal stands.
fn doubts(items: &[Item], judged: &[Judged<'_>]) -> Vec<UnresolvedKey> {
    let mut doubts: Vec<UnresolvedKey> = Vec::new();
    for (at, (item, judgement)) in items.iter().zip(judged).enumerate() {
        let Outcome::Rejected(rejection) = &judgement.outcome else { continue };
        if !rejection.may_be_stale_key() || is_answered(item, rejection) {
            continue;
        }
        let account = item.account;
        let is_first = doubts.iter().all(|doubt| doubt.account != account);
        let mut later = items.iter().zip(judged).skip(at);
        if is_first && !later.any(|(item, j)| item.account == account && j.outcome.is_accepted()) {
            let did = item.arrival.did().unwrap_or_default().into();
            let is_doubted = !matches!(rejection, SyncRejection::NoKey);
            doubts.push(UnresolvedKey { account, did, is_doubted, from: at });
        }
    }
    doubts
}

/// Whether there is nothing more to find out: the key is not to be had, or is the second one.
fn is_answered(item: &Item, rejection: &SyncRejection<'_>) -> bool {
    let answered = |answer: &Answer| answer.is_last || matches!(rejection, SyncRejection::NoKey);
    item.answer.as_deref().is_some_and(answered)
}

fn is_in_doubt(doubts: &[UnresolvedKey], item: &Item, at: usize) -> bool {
    doubts.iter().any(|doubt| doubt.account == item.account && at >= doubt.from)
}

fn keep(items: Vec<Item>, is_kept: impl Fn(&Item, usize) -> bool) -> Vec<Item> {
    let numbered = items.into_iter().enumerate().filter(|(at, item)| is_kept(item, *at));
    numbered.map(|(_, item)| item).collect()
}

fn is_out_of_step(outcome: &Outcome<'_>, fetches_new: bool) -> bool {
    match outcome {
        Outcome::Commit(_, Chain::Broken(_) | Chain::StillDesynchronized)
        | Outcome::Sync(_, SyncEffect::Desynchronized) => true,
        Outcome::Commit(_, Chain::FirstSeen) | Outcome::Sync(_, SyncEffect::FirstSeen) => {
            fetches_new
        }
        _ => false,
    }
}

fn verdict<'a>(outcome: &Outcome<'a>, item: &'a Item) -> Verdict<'a> {
    match outcome {
        Outcome::Rejected(SyncRejection::Frame(error)) => Verdict::Undecodable(*error),
        Outcome::Rejected(SyncRejection::NoKey) => {
            Verdict::UnknownKey(item.problem().unwrap_or(&KeyError::NotAmongKnown))
        }
        outcome => Verdict::Judged(*outcome),
    }
}

/// What is known of keys, and before that what was just found out.
struct KnownKeys<'i> {
    keys: &'i dyn KeyProvider,
    found: Vec<(&'i str, AccountKey)>,
}

impl<'i> KnownKeys<'i> {
    fn new(keys: &'i dyn KeyProvider, items: &'i [Item]) -> Self {
        let found = |item: &'i Item| {
            let key = *item.answer.as_ref()?.found.as_ref().ok()?;
            Some((item.arrival.did()?, key))
        };
        Self { keys, found: items.iter().filter_map(found).collect() }
    }
}

impl KeySource for KnownKeys<'_> {
    fn key(&self, did: &str) -> AccountKey {
        match self.found.iter().find(|(of, _)| *of == did) {
            Some((_, key)) => *key,
            None => self.keys.cached(did),
        }
    }
}

/// Sixteen bytes that nobody outside knows.
fn seed() -> [u8; 16] {
    let random = RandomState::new();
    let halves = [random.hash_one(0), random.hash_one(1)].map(u64::to_le_bytes);
    let mut seed = [0; 16];
    seed.copy_from_slice(halves.as_flattened());
    seed
}

fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
