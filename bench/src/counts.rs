//! Did two decoders do the same work? They did if what they found adds up to the same numbers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What came out of the work, by the names of the runner protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// The count called `name`, if it was given.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Holds these counts against those of the corpus.
    pub fn compare(&self, reference: &Counts) -> Comparison {
        let mut comparison = Comparison::default();
        for (name, &expected) in &reference.0 {
            match self.get(name) {
                None => comparison.not_given.push(name.clone()),
                Some(found) if found == expected => comparison.equal += 1,
                Some(found) => {
                    comparison.differences.push(Difference { name: name.clone(), expected, found })
                }
            }
        }
        comparison
    }
}

impl<N: Into<String>> FromIterator<(N, u64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (N, u64)>>(counts: I) -> Self {
        Self(counts.into_iter().map(|(name, count)| (name.into(), count)).collect())
    }
}

/// What a comparison of counts found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// How many counts both have, with the same number.
    pub equal: usize,
    /// Counts that both have, with different numbers.
    pub differences: Vec<Difference>,
    /// Counts that the reference has and the peer could not give.
    pub not_given: Vec<String>,
}

impl Comparison {
    /// Whether the same work was done, as far as the counts that both have can tell.
    pub fn is_parity(&self) -> bool {
        self.differences.is_empty() && self.equal > 0
    }
}

/// A count that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The count's name.
    pub name: String,
    /// What the corpus holds.
    pub expected: u64,
    /// What the peer found.
    pub found: u64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} instead of {}", self.name, self.found, self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts<const N: usize>(counts: [(&str, u64); N]) -> Counts {
        counts.into_iter().collect()
    }

    #[test]
    fn only_counts_that_both_have_are_compared() {
        let reference = counts([("frames", 3), ("links", 7), ("nulls", 1)]);
        let found = counts([("frames", 3), ("nulls", 2), ("unheard-of", 9)]);
        let comparison = found.compare(&reference);
        assert_eq!(comparison.equal, 1);
        assert_eq!(comparison.not_given, ["links"]);
        assert_eq!(comparison.differences[0].to_string(), "nulls 2 instead of 1");
        assert!(!comparison.is_parity());
    }

    #[test]
    fn giving_no_count_at_all_is_no_parity() {
        assert!(!Counts::default().compare(&counts([("frames", 3)])).is_parity());
    }
}
