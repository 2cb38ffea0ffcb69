//! The collections of a part, as the tables name them.

use std::fmt;
use std::str::FromStr;

use atproto::syntax::{CollectionPatternBuf, SyntaxError};

/// Selected collections: patterns in order, each once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Collections(Box<[CollectionPatternBuf]>);

impl Collections {
    /// The patterns.
    pub fn patterns(&self) -> &[CollectionPatternBuf] {
        &self.0
    }

    /// Whether a collection is selected.
    pub fn has(&self, collection: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(collection))
    }

    /// Whether all collections are selected that another selection has.
    pub fn include(&self, other: &Self) -> bool {
        other.0.iter().all(|inner| self.0.iter().any(|pattern| pattern.includes(inner)))
    }
}

impl FromIterator<CollectionPatternBuf> for Collections {
    fn from_iter<I: IntoIterator<Item = CollectionPatternBuf>>(patterns: I) -> Self {
        let mut patterns: Vec<_> = patterns.into_iter().collect();
        patterns.sort_unstable();
        patterns.dedup();
        Self(patterns.into())
    }
}

impl FromStr for Collections {
    type Err = SyntaxError;

    /// Reads the text that [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        text.split(',').map(str::parse).collect()
    }
}

impl fmt::Display for Collections {
    /// Writes the patterns with commas between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, pattern) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{pattern}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collections(text: &str) -> Collections {
        text.parse().unwrap()
    }

    #[test]
    fn the_text_has_every_pattern_once_and_in_order() {
        let text = collections("b.c.d,a.b.*,b.c.d").to_string();
        assert_eq!(text, "a.b.*,b.c.d");
        assert_eq!(collections(&text).to_string(), text);
        for text in ["", "a.b.*,", "a.b.c d"] {
            assert!(text.parse::<Collections>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_selection_includes_another_if_it_has_all_of_its_collections() {
        let selected = collections("a.b.*,b.c.d");
        for (other, is_included) in [
            ("a.b.c", true),
            ("a.b.c.*", true),
            ("a.b.*,b.c.d", true),
            ("a.b.c,b.c.e", false),
            ("a.*", false),
            ("b.c.*", false),
        ] {
            assert_eq!(selected.include(&collections(other)), is_included, "{other}");
        }
        assert!(selected.has("a.b.c") && !selected.has("b.c.e"));
    }
}
