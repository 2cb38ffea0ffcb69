//! The population of a network: the numbers of records of the accounts, and the PDSs on which they begin. Both follow from the
//! seed and the account's number.

use super::spec::{Placement, RepositorySizes, Spec};
use crate::random::{Random, Seed};

impl Spec {
    /// The number of initial records of an account.
    pub(super) fn records_of(&self, account: usize) -> usize {
        let most = self.records.max(1);
        match self.sizes {
            RepositorySizes::Equal => most,
            RepositorySizes::Realistic => realistic_size(self.seed, account).min(most),
        }
    }

    /// The number of the PDS that an account begins on.
    pub(super) fn home_of(&self, account: usize) -> usize {
        match self.placement {
            Placement::InTurn => account % self.pds.max(1),
            Placement::Uneven => uneven_home(self.seed, account, self.pds),
        }
    }
}

/// A number of records: an octave by the weights of [`OCTAVES`], and any number in it.
fn realistic_size(seed: u64, account: usize) -> usize {
    let mut random = Seed::new(seed, "sizes of repositories").stream(account as u64);
    let octave = weighted(&mut random, &OCTAVES);
    random.between(1 << octave, (2 << octave) - 1) as usize
}

fn uneven_home(seed: u64, account: usize, pds: usize) -> usize {
    let weights: Vec<u64> = (1..=pds.max(1) as u64).map(|place| WEIGHT_OF_FIRST / place).collect();
    weighted(&mut Seed::new(seed, "homes of accounts").stream(account as u64), &weights)
}

/// An index, as likely as its weight.
fn weighted(random: &mut Random, weights: &[u64]) -> usize {
    let mut left = random.below(weights.iter().sum());
    let index = weights.iter().position(|weight| match left.checked_sub(*weight) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    index.expect("a number below the sum of all weights")
}

/// Of 10,000 accounts, the ones with 2ⁿ to 2ⁿ⁺¹ − 1 records, for every n from 0 on.
///
/// The distribution of the live network is not published. These are the octaves of a lognormal distribution with a median of 10
/// records and a σ of 2.6, values below one record counted as one: 278 records on average, which make some 120 kB of an
/// archive. Measured repositories agree with it: 5, 6, 8 and 23 records, 278 to 604, 2,836 to 11,585.
const OCTAVES: [u64; 17] =
    [2680, 940, 1040, 1060, 1010, 890, 750, 570, 410, 275, 172, 100, 54, 27, 13, 6, 3];

/// The weight of the first PDS.
const WEIGHT_OF_FIRST: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        Spec {
            records: 200_000,
            sizes: RepositorySizes::Realistic,
            pds: 20,
            placement: Placement::Uneven,
            ..Spec::default()
        }
    }

    #[test]
    fn half_of_the_repositories_are_small_and_one_in_a_hundred_is_large() {
        let mut sizes: Vec<usize> = (0..10_000).map(|account| spec().records_of(account)).collect();
        sizes.sort_unstable();
        assert!((8..16).contains(&sizes[5_000]), "{}", sizes[5_000]);
        assert!((3_000..6_000).contains(&sizes[9_900]), "{}", sizes[9_900]);
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!((200..360).contains(&mean), "{mean}");
        assert!(sizes[0] == 1 && sizes[9_999] < 1 << 17);
    }

    #[test]
    fn no_repository_has_more_records_than_the_most() {
        let spec = Spec { records: 100, ..spec() };
        let largest = (0..1_000).map(|account| spec.records_of(account)).max();
        assert_eq!(largest, Some(100));
        assert_eq!(Spec { records: 0, ..spec }.records_of(7), 1);
    }

    #[test]
    fn the_first_host_has_twice_the_accounts_of_the_second_and_each_has_some() {
        let mut counts = [0; 20];
        (0..20_000).for_each(|account| counts[spec().home_of(account)] += 1);
        assert!((180..=220).contains(&(counts[0] * 100 / counts[1])), "{counts:?}");
        assert!(counts[0] > 15 * counts[19] && counts[19] > 200, "{counts:?}");
    }

    #[test]
    fn equal_repositories_are_placed_in_turn() {
        let spec = Spec { pds: 3, ..Spec::default() };
        assert_eq!([0, 1, 2, 3].map(|account| spec.home_of(account)), [0, 1, 2, 0]);
        assert_eq!(spec.records_of(9), 60);
    }
}
