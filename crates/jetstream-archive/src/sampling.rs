//! Samples of accounts: who is chosen, how many there are, and how much a sample says about all.
//!
//! The accounts with the least hashes are chosen, where the hash is of the seed and the DID: every account has the same chance, and
//! an account that has once been passed over can never be chosen later. So one pass over the archive keeps only the events of
//! the sample. All accounts are counted by their hashes too: exactly up to a number, and above it estimated from the hashes below
//! a threshold.

use std::collections::{BTreeSet, HashSet};

use atproto::syntax::DidBuf;
use kernels::sha256;
use serde::Serialize;

/// Chooses accounts, and counts all.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    seed: u64,
    /// The number of accounts to choose; `None` for all.
    size: Option<usize>,
    chosen: BTreeSet<u64>,
    census: Census,
    /// The last account, and whether it was admitted: events of an account often follow each other.
    last: (String, bool),
}

impl Sampler {
    pub(crate) fn new(seed: u64, size: Option<usize>) -> Self {
        let (chosen, census) = (BTreeSet::new(), Census::new(MAX_COUNTED));
        Self { seed, size, chosen, census, last: (String::new(), false) }
    }

    /// Counts these accounts, and chooses among them.
    pub(crate) fn choose(&mut self, dids: &[DidBuf]) -> Vec<DidBuf> {
        for did in dids {
            self.admit(did.as_str());
        }
        dids.iter().filter(|did| self.is_chosen(did.as_str())).cloned().collect()
    }

    /// Counts an account; whether it may be chosen.
    pub(crate) fn admit(&mut self, did: &str) -> bool {
        if self.last.0 != did {
            let is_admitted = self.admit_other(did);
            self.last.0.clear();
            self.last.0.push_str(did);
            self.last.1 = is_admitted;
        }
        self.last.1
    }

    fn admit_other(&mut self, did: &str) -> bool {
        let hash = self.hash(did);
        self.census.add(hash);
        let Some(size) = self.size else { return true };
        let is_below =
            self.chosen.len() < size || self.chosen.last().is_some_and(|last| hash < *last);
        if is_below && self.chosen.insert(hash) && self.chosen.len() > size {
            self.chosen.pop_last();
        }
        self.chosen.contains(&hash)
    }

    /// Whether an account is chosen, once all were counted.
    pub(crate) fn is_chosen(&self, did: &str) -> bool {
        self.size.is_none() || self.chosen.contains(&self.hash(did))
    }

    /// The number of accounts, and whether it is exact.
    pub(crate) fn population(&self) -> (u64, bool) {
        (self.census.count(), self.census.threshold == u64::MAX)
    }

    fn hash(&self, did: &str) -> u64 {
        let digest = sha256::digest_parts(&[&self.seed.to_le_bytes(), did.as_bytes()]);
        u64::from_le_bytes(std::array::from_fn(|at| digest[at]))
    }
}

/// Counts different hashes.
#[derive(Clone, Debug)]
struct Census {
    /// The hashes that are not above the threshold.
    hashes: HashSet<u64>,
    threshold: u64,
    max: usize,
}

impl Census {
    fn new(max: usize) -> Self {
        Self { hashes: HashSet::new(), threshold: u64::MAX, max }
    }

    fn add(&mut self, hash: u64) {
        if hash <= self.threshold {
            self.hashes.insert(hash);
        }
        while self.hashes.len() > self.max {
            self.threshold /= 2;
            self.hashes.retain(|hash| *hash <= self.threshold);
        }
    }

    fn count(&self) -> u64 {
        let share = self.threshold as f64 / u64::MAX as f64;
        (self.hashes.len() as f64 / share) as u64
    }
}

/// How much a sample says about all accounts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SampleReport {
    /// The number of accounts that were to be chosen.
    pub size: u64,
    /// The seed, with which the same accounts are chosen again.
    pub seed: u64,
    /// The accounts that were proved or refuted: the others say nothing.
    pub decided_count: u64,
    /// The refuted accounts.
    pub wrong_count: u64,
    /// The probability that the shares are right, in percent.
    pub confidence_percent: f64,
    /// The least share of refuted accounts among all, in percent.
    pub wrong_at_least_percent: f64,
    /// The greatest share of refuted accounts among all, in percent.
    pub wrong_at_most_percent: f64,
    /// The bound. Samples without repetition from few accounts say more than it does.
    pub method: &'static str,
}

impl SampleReport {
    /// The report on a sample of which `wrong` of `decided` accounts are refuted.
    pub fn new(size: u64, seed: u64, decided: u64, wrong: u64) -> Self {
        let miss = 1.0 - CONFIDENCE;
        // With an error on one side only, all of it is there.
        let (low, high) = match wrong {
            0 => (0.0, upper_bound(0, decided, miss)),
            _ if wrong == decided => (lower_bound(wrong, decided, miss), 1.0),
            _ => (lower_bound(wrong, decided, miss / 2.0), upper_bound(wrong, decided, miss / 2.0)),
        };
        Self {
            size,
            seed,
            decided_count: decided,
            wrong_count: wrong,
            confidence_percent: CONFIDENCE * 100.0,
            wrong_at_least_percent: low * 100.0,
            wrong_at_most_percent: high * 100.0,
            method: "Clopper-Pearson",
        }
    }
}

/// The greatest share under which at most `wrong` of `decided` have at least the probability `miss`.
fn upper_bound(wrong: u64, decided: u64, miss: f64) -> f64 {
    bisect(|share| at_most(wrong, decided, share) >= miss)
}

/// The least share under which at least `wrong` of `decided` have at least the probability `miss`.
fn lower_bound(wrong: u64, decided: u64, miss: f64) -> f64 {
    bisect(|share| 1.0 - at_most(wrong - 1, decided, share) < miss)
}

/// The share up to which a condition holds.
fn bisect(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if holds(middle) { low = middle } else { high = middle }
    }
    high
}

/// The probability of at most `count` of `of` where each has the probability `share`.
fn at_most(count: u64, of: u64, share: f64) -> f64 {
    if count >= of || share <= 0.0 {
        return 1.0;
    }
    // Terms in logarithms: for large numbers the terms themselves are too small.
    let (log_share, log_rest) = (share.ln(), (-share).ln_1p());
    let mut term = of as f64 * log_rest;
    let mut sum = term.exp();
    for k in 1..=count {
        term += ((of - k + 1) as f64 / k as f64).ln() + log_share - log_rest;
        sum += term.exp();
    }
    sum.min(1.0)
}

const CONFIDENCE: f64 = 0.95;

/// Halvings of an interval: more than the digits of a number.
const STEPS: u32 = 64;

/// Hashes that are counted exactly.
const MAX_COUNTED: usize = 1 << 22;

#[cfg(test)]
mod tests {
    use super::*;

    fn percents(decided: u64, wrong: u64) -> (f64, f64) {
        let report = SampleReport::new(decided, 0, decided, wrong);
        (report.wrong_at_least_percent, report.wrong_at_most_percent)
    }

    #[test]
    fn without_a_wrong_account_the_bound_is_the_rule_of_three() {
        for decided in [1u64, 10, 59, 300, 100_000] {
            let exact = 100.0 * (1.0 - 0.05f64.powf(1.0 / decided as f64));
            let (low, high) = percents(decided, 0);
            assert_eq!(low, 0.0);
            assert!((high - exact).abs() < 1e-6, "{decided}: {high} instead of {exact}");
        }
        assert_eq!(percents(0, 0).1, 100.0, "nothing is known without an account");
    }

    #[test]
    fn bounds_are_the_published_ones() {
        // Two-sided 95 % intervals of tables: 1 of 10, 5 of 20, 10 of 100.
        let tables = [(10, 1, 0.253, 44.502), (20, 5, 8.657, 49.105), (100, 10, 4.900, 17.622)];
        for (decided, wrong, low, high) in tables {
            let (least, most) = percents(decided, wrong);
            assert!((least - low).abs() < 2e-3, "{wrong} of {decided}: {least}");
            assert!((most - high).abs() < 2e-3, "{wrong} of {decided}: {most}");
        }
        let (least, most) = percents(10, 10);
        assert!((least - 100.0 * 0.05f64.powf(0.1)).abs() < 1e-6 && most == 100.0);
    }

    #[test]
    fn a_sample_is_the_same_in_any_order_and_repetition() {
        let dids: Vec<String> = (0..1000).map(|number| format!("did:web:{number}.test")).collect();
        let chosen = |order: &[String]| {
            let mut sampler = Sampler::new(7, Some(20));
            for did in order {
                sampler.admit(did);
            }
            let mut chosen: Vec<String> =
                dids.iter().filter(|did| sampler.is_chosen(did)).cloned().collect();
            chosen.sort();
            (chosen, sampler.population())
        };
        let forward = chosen(&dids);
        let mut reversed: Vec<String> = dids.iter().rev().cloned().collect();
        reversed.extend(dids.iter().take(500).cloned());
        assert_eq!(forward, chosen(&reversed));
        assert_eq!((forward.0.len(), forward.1), (20, (1000, true)));
    }

    #[test]
    fn the_events_of_a_chosen_account_are_admitted_from_the_first_on() {
        let mut sampler = Sampler::new(1, Some(5));
        let dids: Vec<String> = (0..300).map(|number| format!("did:web:{number}.test")).collect();
        let admitted: Vec<bool> = dids.iter().map(|did| sampler.admit(did)).collect();
        let chosen = dids.iter().zip(admitted).filter(|(did, _)| sampler.is_chosen(did));
        let admitted: Vec<bool> = chosen.map(|(_, is_admitted)| is_admitted).collect();
        assert_eq!(admitted, [true; 5]);
    }

    #[test]
    fn many_accounts_are_counted_within_a_few_percent() {
        let mut census = Census::new(1000);
        let hash = |number: u64| {
            let digest = sha256::digest(&number.to_le_bytes());
            u64::from_le_bytes(std::array::from_fn(|at| digest[at]))
        };
        (0..50_000).for_each(|number| census.add(hash(number % 25_000)));
        let count = census.count() as f64;
        assert!((22_000.0..28_000.0).contains(&count), "{count}");
    }
}
