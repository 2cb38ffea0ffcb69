//! The filter of a client of a Jetstream.

use std::collections::HashSet;

use atproto::syntax::{CollectionPattern, Did, Nsid};
use net::jetstream::EventKind;

use crate::event::ServedEvent;

/// Which events a client gets. Empty parts do not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) kinds: Vec<EventKind>,
    names: HashSet<Box<str>>,
    /// With the dot at their end.
    prefixes: Vec<Box<str>>,
    dids: HashSet<Box<str>>,
    /// Maximum size of an uncompressed message in bytes; 0 for no limit.
    pub(crate) max_message_bytes: u32,
}

/// How a version of the protocol reads the pattern `prefix.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefixes {
    /// Any text before the dot.
    Any,
    /// The start of a collection's name.
    Names,
}

impl Filter {
    /// Adds a collection, or a prefix of collections.
    ///
    /// # Errors
    /// If it is neither, or one too many.
    pub(crate) fn add_collection(&mut self, name: &str, prefixes: Prefixes) -> Result<(), String> {
        match name.strip_suffix('*').filter(|prefix| prefix.ends_with('.')) {
            Some(prefix) => {
                let is_valid = prefixes == Prefixes::Any || CollectionPattern::parse(name).is_ok();
                if !is_valid {
                    return Err(format!("`{}` is no prefix of collections", shown(name)));
                }
                if !self.prefixes.iter().any(|known| **known == *prefix) {
                    self.prefixes.push(prefix.into());
                }
            }
            None if Nsid::parse(name).is_ok() => drop(self.names.insert(name.into())),
            None => return Err(format!("invalid collection: `{}`", shown(name))),
        }
        match self.names.len() + self.prefixes.len() {
            0..=MAX_COLLECTIONS => Ok(()),
            _ => Err(format!("more than {MAX_COLLECTIONS} collections")),
        }
    }

    /// Adds an account.
    ///
    /// # Errors
    /// If it is no DID, or one too many.
    pub(crate) fn add_did(&mut self, did: &str) -> Result<(), String> {
        if Did::parse(did).is_err() {
            return Err(format!("invalid DID: `{}`", shown(did)));
        }
        self.dids.insert(did.into());
        match self.dids.len() {
            0..=MAX_DIDS => Ok(()),
            _ => Err(format!("more than {MAX_DIDS} DIDs")),
        }
    }

    /// Whether a filter for collections can never apply.
    pub(crate) fn excludes_its_collections(&self) -> bool {
        let has_collections = !self.names.is_empty() || !self.prefixes.is_empty();
        has_collections && !self.kinds.is_empty() && !self.kinds.contains(&EventKind::Commit)
    }

    /// Whether the client gets the event, or operations of it.
    pub(crate) fn has_event(&self, event: &ServedEvent) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && (self.dids.is_empty() || self.dids.contains(&event.did))
    }

    /// Whether it gets all operations of the events that it gets.
    pub(crate) fn has_all_collections(&self) -> bool {
        self.names.is_empty() && self.prefixes.is_empty()
    }

    /// Whether it gets operations in a collection.
    pub(crate) fn has_collection(&self, name: &str) -> bool {
        self.has_all_collections()
            || self.names.contains(name)
            || self.prefixes.iter().any(|prefix| name.starts_with(&**prefix))
    }

    /// Whether a message of this size is sent.
    pub(crate) fn has_size(&self, bytes: usize) -> bool {
        self.max_message_bytes == 0 || bytes <= self.max_message_bytes as usize
    }
}

/// The start of a text of a stranger, for a message to that stranger.
fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN).filter(|character| !character.is_control()).collect()
}

/// Limits of the protocol.
const MAX_COLLECTIONS: usize = 100;
const MAX_DIDS: usize = 10_000;

const MAX_SHOWN: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(collections: &[&str], prefixes: Prefixes) -> Result<Filter, String> {
        let mut filter = Filter::default();
        collections.iter().try_for_each(|name| filter.add_collection(name, prefixes))?;
        Ok(filter)
    }

    #[test]
    fn a_prefix_ends_at_a_dot() {
        let filter =
            filter(&["app.bsky.feed.*", "app.bsky.graph.follow"], Prefixes::Names).unwrap();
        for name in ["app.bsky.feed.post", "app.bsky.feed.x.y", "app.bsky.graph.follow"] {
            assert!(filter.has_collection(name), "{name}");
        }
        for name in ["app.bsky.feedx.y", "app.bsky.feed", "app.bsky.graph.follows", ""] {
            assert!(!filter.has_collection(name), "{name}");
        }
    }

    #[test]
    fn version_1_takes_any_prefix_and_version_2_prefixes_of_names() {
        for prefix in ["app.*", "app.bsky.feed.*"] {
            assert!(filter(&[prefix], Prefixes::Names).is_ok(), "{prefix}");
        }
        for prefix in [".*", "a b.*", "app.bsky..*"] {
            assert!(filter(&[prefix], Prefixes::Names).is_err(), "{prefix}");
            assert!(filter(&[prefix], Prefixes::Any).is_ok(), "{prefix}");
        }
        for name in ["*", "", "app", "app.bsky.*.post", "app.bsky.feed*"] {
            assert!(filter(&[name], Prefixes::Any).is_err(), "{name}");
        }
    }

    #[test]
    fn filters_have_the_limits_of_the_protocol() {
        let names: Vec<String> = (0..101).map(|at| format!("app.example.n{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(filter(&names[..100], Prefixes::Any).is_ok());
        assert!(filter(&names, Prefixes::Any).is_err());
        assert!(filter(&[names[0]; 200], Prefixes::Any).is_ok(), "one collection");
        let mut filter = Filter::default();
        for at in 0..10_000 {
            filter.add_did(&format!("did:web:a{at}.test")).unwrap();
        }
        assert!(filter.add_did("did:web:a0.test").is_ok());
        assert!(filter.add_did("did:web:b.test").is_err());
        assert!(Filter::default().add_did("did:").is_err());
    }
}
