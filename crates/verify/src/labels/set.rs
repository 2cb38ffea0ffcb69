//! The labels in force: of those about the same, the one that was created last.

use std::collections::HashMap;

use super::judge::JudgedLabel;

/// The last label of every source, subject and value, negations and expired ones included: an older label that comes later
/// has no effect.
#[derive(Debug, Default)]
pub struct LabelSet {
    labels: HashMap<Place, Kept>,
    max_labels: usize,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Place {
    src: Box<str>,
    uri: Box<str>,
    val: Box<str>,
}

#[derive(Debug)]
struct Kept {
    created_micros: i64,
    number: u64,
    is_negation: bool,
    expires_micros: Option<i64>,
}

/// Source, subject and value of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelPlace<'a> {
    /// The DID of the labeler.
    pub src: &'a str,
    /// The subject.
    pub uri: &'a str,
    /// The value.
    pub val: &'a str,
}

/// The effect of a label on a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelChange {
    /// The first one about its subject.
    New,
    /// It replaces the one before.
    Replaced,
    /// A later one is known.
    Outdated,
}

/// The set has its maximum number of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {0} labels: the limit of this set")]
pub struct SetFull(pub usize);

impl LabelSet {
    /// An empty set of at most `max_labels` places.
    pub fn new(max_labels: usize) -> Self {
        Self { labels: HashMap::new(), max_labels }
    }

    /// Applies a label. Of two with the same time of creation the greater `number` counts, the sequence number where there is
    /// one.
    ///
    /// # Errors
    /// If the set is full.
    pub fn apply(&mut self, judged: &JudgedLabel<'_>, number: u64) -> Result<LabelChange, SetFull> {
        let fields = &judged.label.fields;
        let kept = Kept {
            created_micros: judged.created_micros,
            number,
            is_negation: fields.is_negation(),
            expires_micros: judged.expires_micros,
        };
        let place =
            Place { src: fields.src.into(), uri: fields.uri.into(), val: fields.val.into() };
        if let Some(known) = self.labels.get_mut(&place) {
            if (kept.created_micros, number) < (known.created_micros, known.number) {
                return Ok(LabelChange::Outdated);
            }
            *known = kept;
            return Ok(LabelChange::Replaced);
        }
        if self.labels.len() == self.max_labels {
            return Err(SetFull(self.max_labels));
        }
        self.labels.insert(place, kept);
        Ok(LabelChange::New)
    }

    /// The labels in force at `now_micros`, sorted.
    pub fn in_force(&self, now_micros: i64) -> Vec<LabelPlace<'_>> {
        let in_force = self.labels.iter().filter(|(_, kept)| {
            !kept.is_negation && kept.expires_micros.is_none_or(|expires| expires > now_micros)
        });
        let mut places: Vec<_> =
            in_force.map(|(Place { src, uri, val }, _)| LabelPlace { src, uri, val }).collect();
        places.sort_unstable();
        places
    }

    /// Number of places, those of negations and expired labels included.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether no label was applied.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}
