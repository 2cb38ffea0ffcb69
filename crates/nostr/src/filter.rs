//! Filters of events by their fields, as in requests to relays (NIP-01).

use std::borrow::Cow;

use kernels::append::{Appender, Pieces, append};
use kernels::hex;

use crate::Event;
use crate::canonical::{self, ControlChars};

/// Which events to take. Several values of a field are alternatives; all fields, and all names of tags, must match.
///
/// ```
/// use wireproof::nostr::{Arena, Filter, Limits, example, formats::Format};
///
/// let arena = Arena::new();
/// let event = Format::Json.decode(example::JSON.as_bytes(), &arena, &Limits::default())?;
/// let mut filter = Filter { kinds: vec![1, 7], since: Some(1_600_000_000), ..Filter::default() };
/// filter.tags.push(("t".to_owned(), "gm".to_owned()));
/// assert!(filter.matches(&event));
/// assert_eq!(filter.to_json(), r##"{"kinds":[1,7],"#t":["gm"],"since":1600000000}"##);
/// # Ok::<(), wireproof::nostr::DecodeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Ids of events; empty for all.
    pub ids: Vec<[u8; 32]>,
    /// Kinds; empty for all.
    pub kinds: Vec<u16>,
    /// X-only public keys of authors; empty for all.
    pub authors: Vec<[u8; 32]>,
    /// Tags by name and first value; empty for all. Relays know names of one letter.
    pub tags: Vec<(String, String)>,
    /// Earliest creation time in seconds since 1970.
    pub since: Option<i64>,
    /// Latest creation time in seconds since 1970.
    pub until: Option<i64>,
    /// Maximum number of stored events that a relay sends. Every event matches it.
    pub limit: Option<u64>,
}

impl Filter {
    /// Whether the event matches.
    pub fn matches(&self, event: &Event<'_>) -> bool {
        (self.ids.is_empty() || self.ids.contains(&event.id))
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && (self.authors.is_empty() || self.authors.contains(&event.pubkey))
            && self.since.is_none_or(|since| event.created_at >= since)
            && self.until.is_none_or(|until| event.created_at <= until)
            && self.tags.iter().all(|(name, _)| self.has_tag(event, name))
    }

    /// The JSON object of NIP-01, without spaces.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        String::from_utf8(out).expect("JSON of text, digits and numbers")
    }

    /// Whether the event has one of the tags of this name.
    fn has_tag(&self, event: &Event<'_>, name: &str) -> bool {
        let mut values = event.tags.iter().filter_map(|tag| match tag {
            [of, value, ..] if of.to_text() == name => Some(value.to_text()),
            _ => None,
        });
        values.any(|value: Cow<'_, str>| self.values_of(name).any(|wanted| value == wanted))
    }

    /// The values of the tags of a name.
    fn values_of(&self, name: &str) -> impl Iterator<Item = &str> {
        let of_name = self.tags.iter().filter(move |(of, _)| of == name);
        of_name.map(|(_, value)| value.as_str())
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        write_list(out, "ids", self.ids.iter(), write_key);
        write_list(out, "kinds", self.kinds.iter(), |kind, out| {
            out.extend_from_slice(kind.to_string().as_bytes());
        });
        write_list(out, "authors", self.authors.iter(), write_key);
        for (at, (name, _)) in self.tags.iter().enumerate() {
            // The values of a name are one list, at its first tag.
            if self.tags[..at].iter().all(|(before, _)| before != name) {
                write_list(out, &format!("#{name}"), self.values_of(name), write_text);
            }
        }
        for (name, number) in [("since", self.since), ("until", self.until)] {
            write_number(out, name, number);
        }
        write_number(out, "limit", self.limit);
        out.push(b'}');
    }
}

/// Appends the member `name` with a list, unless the list is empty.
fn write_list<T>(
    out: &mut Vec<u8>,
    name: &str,
    items: impl Iterator<Item = T>,
    write: impl Fn(T, &mut Vec<u8>),
) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    write_name(out, name);
    for (at, item) in items.enumerate() {
        out.push(if at == 0 { b'[' } else { b',' });
        write(item, out);
    }
    out.push(b']');
}

fn write_number(out: &mut Vec<u8>, name: &str, number: Option<impl ToString>) {
    if let Some(number) = number {
        write_name(out, name);
        out.extend_from_slice(number.to_string().as_bytes());
    }
}

/// Appends the name of a member, after a comma unless it is the first.
fn write_name(out: &mut Vec<u8>, name: &str) {
    if !out.ends_with(b"{") {
        out.push(b',');
    }
    write_text(name, out);
    out.push(b':');
}

fn write_key(key: &[u8; 32], out: &mut Vec<u8>) {
    out.push(b'"');
    hex::encode_into(key, out);
    out.push(b'"');
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    append(Text(text), out);
}

/// Text in quotes, as JSON requires.
struct Text<'t>(&'t str);

impl Pieces for Text<'_> {
    #[inline(always)]
    fn append_to(self, out: &mut Appender) {
        canonical::write_text(self.0, ControlChars::Escaped, out);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::{Tag, Value};

    fn event<'a>(tags: &'a [Tag<'a>]) -> Event<'a> {
        let id = [1; 32];
        let pubkey = [2; 32];
        let sig = [3; 64];
        Event { id, pubkey, created_at: 100, kind: 1, tags, content: "", sig }
    }

    fn tags(tags: &[(&str, &str)]) -> Vec<(String, String)> {
        tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_field_must_match_and_its_values_are_alternatives() {
        let tag: Tag<'_> = &[Value::Text("e"), Value::Hex(&[0xab, 0xcd]), Value::Text("x")];
        let (empty, short): (Tag<'_>, Tag<'_>) = (&[], &[Value::Text("t")]);
        let tag_list = [empty, short, tag];
        let event = event(&tag_list);
        let default = Filter::default;
        for (filter, expected) in [
            (default(), true),
            (Filter { ids: vec![[0; 32], [1; 32]], ..default() }, true),
            (Filter { ids: vec![[0; 32]], ..default() }, false),
            (Filter { kinds: vec![7, 1], ..default() }, true),
            (Filter { kinds: vec![7], ..default() }, false),
            (Filter { authors: vec![[2; 32]], kinds: vec![7], ..default() }, false),
            (Filter { authors: vec![[1; 32]], ..default() }, false),
            (Filter { since: Some(100), until: Some(100), ..default() }, true),
            (Filter { since: Some(101), ..default() }, false),
            (Filter { until: Some(99), ..default() }, false),
            (Filter { tags: tags(&[("e", "zz"), ("e", "abcd")]), ..default() }, true),
            (Filter { tags: tags(&[("e", "abcd"), ("t", "")]), ..default() }, false),
            (Filter { tags: tags(&[("e", "x")]), ..default() }, false),
            (Filter { limit: Some(0), ..default() }, true),
        ] {
            assert_eq!(filter.matches(&event), expected, "{filter:?}");
        }
    }

    #[test]
    fn the_json_is_that_of_nip_01_whatever_the_text() {
        assert_eq!(Filter::default().to_json(), "{}");
        let filter = Filter {
            ids: vec![[0xab; 32]],
            kinds: vec![0, 65_535],
            authors: vec![[1; 32], [2; 32]],
            tags: tags(&[("t", "a\"\\\n\u{1}"), ("e", ""), ("t", "ü")]),
            since: Some(-1),
            until: Some(i64::MAX),
            limit: Some(u64::MAX),
        };
        let parsed: Json = serde_json::from_str(&filter.to_json()).unwrap();
        let key = |byte: &str| byte.repeat(32);
        let expected = json!({
            "ids": [key("ab")], "kinds": [0, 65_535], "authors": [key("01"), key("02")],
            "#t": ["a\"\\\n\u{1}", "ü"], "#e": [""], "since": -1, "until": i64::MAX, "limit": u64::MAX,
        });
        assert_eq!(parsed, expected);
    }
}
