//! Filters of events by their fields, as in requests to relays (NIP-01).

use clap::Args;
use wireproof::kernels::hex;
use wireproof::nostr::Event;

/// Which events to take. Several values of an option are alternatives; all options, and all names of tags, must match.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Take events of these kinds.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    kind: Vec<u16>,
    /// Take events of these authors, public keys of 64 digits.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = author)]
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
    pub(super) fn matches(&self, event: &Event<'_>) -> bool {
        (self.kind.is_empty() || self.kind.contains(&event.kind))
            && (self.author.is_empty() || self.author.contains(&event.pubkey))
            && self.since.is_none_or(|since| event.created_at >= since)
            && self.until.is_none_or(|until| event.created_at <= until)
            && self.tag.iter().all(|(name, _)| self.has_tag(event, name))
    }

    /// Whether the event has one of the tags of this name.
    fn has_tag(&self, event: &Event<'_>, name: &str) -> bool {
        let wanted = || self.tag.iter().filter(|(of, _)| of == name).map(|(_, value)| value);
        let mut values = event.tags.iter().filter_map(|tag| match tag {
            [of, value, ..] if of.to_text() == name => Some(value.to_text()),
            _ => None,
        });
        values.any(|value| wanted().any(|wanted| value == wanted.as_str()))
    }
}

fn author(digits: &str) -> Result<[u8; 32], &'static str> {
    let mut key = [0; 32];
    let is_key = digits.len() == 64 && hex::decode(digits.as_bytes(), &mut key);
    is_key.then_some(key).ok_or("a public key is 64 lower-case hexadecimal digits")
}

fn tag(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("a tag is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
