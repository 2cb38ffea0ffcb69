//! The conditions of the PDSs of a network: their effects on readers, by the seed.

use std::time::Duration;

use super::fault::{Fault, FaultSchedule, Faults};
use super::spec::{HostConditions, RequestLimit, Server, Spec};
use crate::hostile::{self, Case, CaseSet, Expect, InputKind};
use crate::random::Seed;

macro_rules! conditions {
    ($($(#[doc = $doc:literal])+ $condition:ident $name:literal $weight:literal,)+) => {
        /// The condition of a PDS.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum HostCondition {
            $($(#[doc = $doc])+ $condition,)+
        }

        impl HostCondition {
            /// All conditions.
            pub const ALL: &[Self] = &[$(Self::$condition),+];

            /// The name in reports.
            pub fn name(self) -> &'static str {
                match self { $(Self::$condition => $name,)+ }
            }

            /// The share of the PDSs after the first, in twentieths.
            fn weight(self) -> u64 {
                match self { $(Self::$condition => $weight,)+ }
            }
        }
    };
}

conditions! {
    /// It answers at once, without a limit.
    Steady "steady" 8,
    /// It answers at once, hosts repositories of the hostile set too, and its lists have odd entries. The first of varied hosts is of
    /// this kind.
    Hostile "hostile" 0,
    /// It answers 40 requests in two seconds, and 429 with `Retry-After` and `RateLimit-*` beyond.
    Limited "limited" 4,
    /// It answers 60 requests in three seconds, and 429 with a page of HTML and no such header beyond.
    LimitedSilently "limited-silently" 2,
    /// It answers every request after 50 to 400 milliseconds.
    Slow "slow" 2,
    /// It breaks off every fiftieth repository.
    Breaking "breaking" 2,
    /// It accepts connections and answers nothing.
    Silent "silent" 1,
    /// It refuses connections.
    Refusing "refusing" 1,
}

impl HostCondition {
    /// The conditions of all PDSs of a network.
    pub(super) fn all_of(spec: &Spec) -> Vec<Self> {
        let HostConditions::Varied = spec.conditions else { return vec![Self::Steady; spec.pds] };
        let weights: Vec<u64> = Self::ALL.iter().map(|condition| condition.weight()).collect();
        let mut random = Seed::new(spec.seed, "conditions of hosts").stream(0);
        let others = random.apportioned(&weights, spec.pds.saturating_sub(1));
        let others = others.into_iter().map(|index| Self::ALL[index]);
        [Self::Hostile].into_iter().chain(others).take(spec.pds).collect()
    }

    /// Whether it answers at all.
    pub fn is_alive(self) -> bool {
        !matches!(self, Self::Silent | Self::Refusing)
    }

    /// Its limit on requests.
    pub(super) fn request_limit(self) -> Option<RequestLimit> {
        match self {
            Self::Limited => Some(RequestLimit { requests: 40, window: 2 * SECOND }),
            Self::LimitedSilently => Some(RequestLimit { requests: 60, window: 3 * SECOND }),
            _ => None,
        }
    }

    /// Enables its faults.
    pub(super) fn enable_faults(self, server: Server, faults: &Faults) {
        let fault = match self {
            Self::Hostile => (Fault::OddEntries, FaultSchedule::ALWAYS),
            Self::Slow => (Fault::LateAnswer, FaultSchedule::ALWAYS),
            Self::Breaking => (Fault::CutRepo, FaultSchedule::ALWAYS.every(50)),
            Self::Silent => (Fault::Silence, FaultSchedule::ALWAYS),
            _ => return,
        };
        faults.enable(server, fault.0, fault.1);
    }
}

/// Repositories of the hostile set that break different rules, all of different accounts.
pub(super) fn hostile_repositories(seed: u64) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for round in 0..HOSTILE_REPOSITORIES {
        let set = CaseSet::generate(&hostile::Spec { seed: seed.wrapping_add(round) });
        let is_new = |case: &&Case| {
            let is_repository = case.kind == InputKind::Repo && case.expect == Expect::Refuse;
            let is_judged_now = is_repository && case.now.is_none();
            let has_rule = case.code.is_some_and(|code| code.contains('/'));
            is_judged_now && has_rule && cases.iter().all(|other| other.code != case.code)
        };
        let case = set.cases().iter().find(is_new).cloned();
        cases.extend(case);
    }
    cases
}

const SECOND: Duration = Duration::from_secs(1);

/// They come from different sets, as the cases of a set share their accounts.
const HOSTILE_REPOSITORIES: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(seed: u64, pds: usize) -> Vec<HostCondition> {
        HostCondition::all_of(&Spec {
            seed,
            pds,
            conditions: HostConditions::Varied,
            ..Spec::default()
        })
    }

    #[test]
    fn twenty_hosts_have_all_conditions_in_an_order_of_the_seed() {
        let of_twenty = conditions(1, 20);
        for condition in HostCondition::ALL {
            assert!(of_twenty.contains(condition), "{condition:?}");
        }
        assert_eq!((of_twenty.len(), of_twenty[0]), (20, HostCondition::Hostile));
        assert_eq!(conditions(1, 20), of_twenty);
        assert_ne!(conditions(2, 20), of_twenty);
        assert_eq!(conditions(1, 1), [HostCondition::Hostile]);
    }

    #[test]
    fn one_host_in_ten_is_dead() {
        let dead = conditions(1, 200).iter().filter(|condition| !condition.is_alive()).count();
        assert!((19..=21).contains(&dead), "{dead}");
    }

    #[test]
    fn hostile_repositories_break_different_rules_and_have_different_accounts() {
        let cases = hostile_repositories(7);
        assert_eq!(cases.len() as u64, HOSTILE_REPOSITORIES);
        for (at, case) in cases.iter().enumerate() {
            let is_same = |other: &Case| other.did == case.did || other.code == case.code;
            assert!(!cases[..at].iter().any(is_same), "{}", case.did);
        }
    }
}
