//! Filters of events by their fields, as in requests to relays (NIP-01).

use clap::Args;
use nostr::Filter;

use super::names;
use crate::failure::Failure;

/// Which events to take. Several values of an option are alternatives; all options, and all names of tags, must match.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Take events of these kinds.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    kind: Vec<u16>,
    /// Take events of these authors: public keys of 64 digits, npub1… or nprofile1….
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = names::public_key)]
    author: Vec<[u8; 32]>,
    /// Take events from this time on, in seconds since 1970.
    #[arg(long, value_name = "SECONDS")]
    since: Option<i64>,
    /// Take events up to this time, in seconds since 1970.
    #[arg(long, value_name = "SECONDS")]
    until: Option<i64>,
    /// Take events with this tag, by its name and first value, such as t=bitcoin; repeatable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = tag)]
    tag: Vec<(String, String)>,
}

impl FilterArgs {
    pub(super) fn to_filter(&self) -> Filter {
        Filter {
            kinds: self.kind.clone(),
            authors: self.author.clone(),
            tags: self.tag.clone(),
            since: self.since,
            until: self.until,
            ..Filter::default()
        }
    }

    /// The filter of a request to relays, which know names of tags of one letter.
    pub(super) fn to_request(&self) -> Result<Filter, Failure> {
        let is_letter =
            |name: &str| matches!(name.as_bytes(), [byte] if byte.is_ascii_alphabetic());
        match self.tag.iter().find(|(name, _)| !is_letter(name)) {
            Some((name, _)) => Err(Failure::Usage(format!(
                "--tag {name}: relays filter by tags with a name of one letter: filter the output instead"
            ))),
            None => Ok(self.to_filter()),
        }
    }
}

fn tag(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("a tag is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
