//! Named counts of the results of the work. Two runners did the same work if their counts are equal.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::one_line;

/// The result of some work, by the names of the runner protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<String, Count>);

/// A number, or a text that represents a whole result, such as the CID of a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Count {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

impl Counts {
    /// Counts with the names and values of the fields of a struct.
    ///
    /// # Panics
    /// If a field is neither a whole number nor a text.
    pub fn from_fields(fields: &impl Serialize) -> Self {
        let json = serde_json::to_value(fields).and_then(serde_json::from_value);
        json.expect("the fields are numbers and texts")
    }

    /// The number called `name`, if one was given.
    pub fn get(&self, name: &str) -> Option<u64> {
        match self.0.get(name)? {
            Count::Number(number) => Some(*number),
            Count::Text(_) => None,
        }
    }

    /// The text called `name`, if one was given.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Count::Number(_) => None,
            Count::Text(text) => Some(text),
        }
    }

    /// Whether there is no count.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the counts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The counts with these names.
    pub fn only(&self, names: &[&str]) -> Self {
        let named = self.0.iter().filter(|(name, _)| names.contains(&name.as_str()));
        Self(named.map(|(name, count)| (name.clone(), count.clone())).collect())
    }

    /// These counts and one more.
    pub fn with(mut self, name: &str, count: impl Into<Count>) -> Self {
        self.0.insert(name.to_owned(), count.into());
        self
    }

    /// These counts and others, which replace counts of the same name.
    pub fn with_all(mut self, others: Counts) -> Self {
        self.0.extend(others.0);
        self
    }

    /// These counts without one of them.
    pub fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// Compares these counts with the corpus's.
    pub fn compare(&self, reference: &Counts) -> CountComparison {
        let mut comparison = CountComparison::default();
        for (name, expected) in &reference.0 {
            match self.0.get(name) {
                None => comparison.not_given.push(name.clone()),
                Some(found) if found == expected => comparison.equal += 1,
                Some(found) => comparison.differences.push(Difference {
                    name: name.clone(),
                    expected: expected.clone(),
                    found: found.clone(),
                }),
            }
        }
        comparison
    }
}

impl<N: Into<String>, C: Into<Count>> FromIterator<(N, C)> for Counts {
    fn from_iter<I: IntoIterator<Item = (N, C)>>(counts: I) -> Self {
        Self(counts.into_iter().map(|(name, count)| (name.into(), count.into())).collect())
    }
}

impl From<u64> for Count {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for Count {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Count {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(&one_line(text)),
        }
    }
}

/// The result of comparing counts with a reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountComparison {
    /// Number of counts that are in both and equal.
    pub equal: usize,
    /// Counts that are in both and differ.
    pub differences: Vec<Difference>,
    /// Names of reference counts that the peer did not report.
    pub not_given: Vec<String>,
}

impl CountComparison {
    /// Whether the same work was done, as far as the counts in both can tell.
    pub fn is_parity(&self) -> bool {
        self.differences.is_empty() && self.equal > 0
    }
}

/// A count that differs from the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The count's name.
    pub name: String,
    /// The corpus's count.
    pub expected: Count,
    /// The peer's count.
    pub found: Count,
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

    #[test]
    fn texts_are_compared_like_numbers_and_a_number_is_no_text() {
        let reference = counts([("records", 3)]).with("root", "bafyre");
        assert!(reference.compare(&reference).is_parity());
        for (found, difference) in [
            (counts([("records", 3)]).with("root", "bafyri"), "root bafyri instead of bafyre"),
            (counts([("root", 7)]), "root 7 instead of bafyre"),
            (Counts::default().with("root", "a\u{1b}[2Jb"), "root a [2Jb instead of bafyre"),
        ] {
            assert_eq!(found.compare(&reference).differences[0].to_string(), difference);
        }
    }

    #[test]
    fn counts_are_numbers_and_texts_in_json() {
        let counts = counts([("records", 3)]).with("root", "bafyre");
        let json = r#"{"records":3,"root":"bafyre"}"#;
        assert_eq!(serde_json::to_string(&counts).unwrap(), json);
        assert_eq!(serde_json::from_str::<Counts>(json).unwrap(), counts);
        assert_eq!((counts.get("root"), counts.text("root")), (None, Some("bafyre")));
    }
}
