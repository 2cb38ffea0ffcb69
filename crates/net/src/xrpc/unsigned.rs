//! Parts of documents that nothing signs: an optional field whose value is unusable counts as absent, and an unusable entry of
//! a list is left out and named.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::remote_text::sanitize;

/// The value of an optional field; `None` if it is not of its type.
pub(super) fn usable<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let value = <Box<RawValue>>::deserialize(deserializer)?;
    Ok(serde_json::from_str(value.get()).ok())
}

/// The entries of a page.
pub(super) struct Entries<T> {
    pub(super) items: Vec<T>,
    pub(super) odd: OddEntries,
}

/// Entries of a list that name no account or host.
///
/// All are counted, and the first are named: the text of the entry and the broken rule, cut to a length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OddEntries {
    count: u64,
    named: Vec<Box<str>>,
}

impl OddEntries {
    /// Number of entries.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first entries, at most 8: text and broken rule.
    pub fn named(&self) -> &[Box<str>] {
        &self.named
    }

    /// Adds an entry that breaks a rule.
    pub fn push(&mut self, entry: &str, rule: impl fmt::Display) {
        self.count += 1;
        if self.named.len() < MAX_NAMED {
            let rule = sanitize(&rule.to_string(), MAX_RULE_CHARS);
            self.named.push(format!("{}: {rule}", sanitize(entry, MAX_ENTRY_CHARS)).into());
        }
    }

    /// Adds the odd entries of the next page, and returns the named entries of that page.
    pub fn append(&mut self, page: Self) -> &[Box<str>] {
        let before = self.named.len();
        self.count = self.count.saturating_add(page.count);
        self.named.extend(page.named.into_iter().take(MAX_NAMED - before));
        &self.named[before..]
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for EntriesVisitor<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entries<T>, A::Error> {
        let mut entries = Entries { items: Vec::new(), odd: OddEntries::default() };
        while let Some(entry) = list.next_element::<&RawValue>()? {
            match serde_json::from_str(entry.get()) {
                Ok(item) => entries.items.push(item),
                Err(error) => entries.odd.push(entry.get(), error),
            }
        }
        Ok(entries)
    }
}

/// Maximum length of the cursor of a page in bytes: it is a part of the next request, and stored.
pub const MAX_CURSOR_BYTES: usize = 512;

/// Maximum number of entries that are named.
const MAX_NAMED: usize = 8;

/// Maximum length of the text of a named entry, and of the broken rule, in characters.
const MAX_ENTRY_CHARS: usize = 160;
const MAX_RULE_CHARS: usize = 120;
