//! PackedEvent of strfry: the summary of an event that a relay indexes. Hand-written.
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 32 | `id` |
//! | 32 | 32 | `pubkey` |
//! | 64 | 8 | `created_at`, without sign, little-endian as the two below |
//! | 72 | 8 | `kind` |
//! | 80 | 8 | expiration: 0 for never, 1 for ephemeral, otherwise a time |
//! | 88 | … | per tag: name in 1 byte, length of the value in 1 byte, the value |
//!
//! A summary cannot be decoded to the event: it has no content and no signature, and of the tags only those
//! with a name of one byte and a first value of at most 255 bytes. Values of `e` and `p` are stored as 32 bytes.
//! As strfry does, the encoder puts an empty `d` before the tags of a replaceable event and after the tags of an
//! addressable one, takes the first `expiration`, and rejects an `e` or `p` whose value is not an id.

use std::borrow::Cow;

use kernels::hex;

use super::codec::or_truncate;
use nostr::input::{self, Input};
use nostr::{DecodeError, EncodeError, Event, Field, Reason, Tag};

/// A well-formed summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedEvent<'a> {
    id: &'a [u8; 32],
    pubkey: &'a [u8; 32],
    created_at: i64,
    kind: u16,
    expiration: Expiration,
    // Well formed: checked by `new`.
    tags: &'a [u8],
}

/// Time at which a relay should delete an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiration {
    /// No expiration.
    Never,
    /// At once: the event is relayed but not stored.
    Ephemeral,
    /// At this time, in seconds since 1970.
    At(u64),
}

/// A tag that a relay can query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedTag<'a> {
    /// Name.
    pub name: u8,
    /// First value: 32 bytes in tags `e` and `p`; UTF-8 text in others, if the encoder was correct.
    pub value: &'a [u8],
}

impl<'a> PackedEvent<'a> {
    /// Parses `bytes`, which must be exactly one summary.
    ///
    /// # Errors
    /// If the bytes are truncated, a time, kind or id is malformed.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut input = Input::new(bytes);
        let (id, pubkey) = (input.array()?, input.array()?);
        let created_at = input;
        let out_of_range = |_| created_at.error(Reason::Range(Field::CreatedAt));
        let created_at = i64::try_from(integer(&mut input)?).map_err(out_of_range)?;
        let kind = input::kind(integer(&mut input)?, KIND)?;
        let expiration = Expiration::of(integer(&mut input)?);
        let tags = input.rest();
        while !input.rest().is_empty() {
            tag(&mut input)?;
        }
        Ok(Self { id, pubkey, created_at, kind, expiration, tags })
    }

    /// The id.
    pub fn id(&self) -> &'a [u8; 32] {
        self.id
    }

    /// The author's x-only public key.
    pub fn pubkey(&self) -> &'a [u8; 32] {
        self.pubkey
    }

    /// Creation time in seconds since 1970, by the author's clock.
    pub fn created_at(&self) -> i64 {
        self.created_at
    }

    /// The kind.
    pub fn kind(&self) -> u16 {
        self.kind
    }

    /// The expiration.
    pub fn expiration(&self) -> Expiration {
        self.expiration
    }

    /// Whether a relay keeps the newest event of this author and kind alone: NIP-01, and 41 of an older NIP-28.
    pub fn is_replaceable(&self) -> bool {
        is_replaceable(self.kind)
    }

    /// Whether a relay keeps the newest event of this author, kind and `d` alone.
    pub fn is_addressable(&self) -> bool {
        is_addressable(self.kind)
    }

    /// The tags, in order.
    pub fn tags(&self) -> impl Iterator<Item = IndexedTag<'a>> + use<'a> {
        let mut input = Input::new(self.tags);
        std::iter::from_fn(move || tag(&mut input).ok())
    }
}

impl Expiration {
    fn of(value: u64) -> Self {
        match value {
            0 => Self::Never,
            1 => Self::Ephemeral,
            at => Self::At(at),
        }
    }

    fn value(self) -> u64 {
        match self {
            Self::Never => 0,
            Self::Ephemeral => 1,
            Self::At(at) => at,
        }
    }
}

#[inline]
fn integer(input: &mut Input<'_>) -> Result<u64, DecodeError> {
    Ok(u64::from_le_bytes(*input.array()?))
}

#[inline]
fn tag<'a>(input: &mut Input<'a>) -> Result<IndexedTag<'a>, DecodeError> {
    let start = *input;
    let [name, len] = *input.array()?;
    let value = input.take(len.into())?;
    if is_id(name) && value.len() != 32 {
        return Err(start.error(Reason::Length(Field::Tags)));
    }
    Ok(IndexedTag { name, value })
}

/// Appends the summary of `event`.
///
/// # Errors
/// If the creation time is before 1970, the value of an `e` or `p` is not an id, or the expiration is not a time.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let past = EncodeError::Range { field: Field::CreatedAt, value: event.created_at };
    let created_at = u64::try_from(event.created_at).map_err(|_| past)?;
    let expiration = expiration(event)?;
    or_truncate(out, |out| {
        out.extend_from_slice(&event.id);
        out.extend_from_slice(&event.pubkey);
        out.extend_from_slice(&created_at.to_le_bytes());
        out.extend_from_slice(&u64::from(event.kind).to_le_bytes());
        out.extend_from_slice(&expiration.value().to_le_bytes());
        if is_replaceable(event.kind) {
            out.extend_from_slice(EMPTY_D);
        }
        event.tags.iter().try_for_each(|tag| write_tag(tag, out))?;
        if is_addressable(event.kind) {
            out.extend_from_slice(EMPTY_D);
        }
        Ok(())
    })
}

fn expiration(event: &Event<'_>) -> Result<Expiration, EncodeError> {
    if is_ephemeral(event.kind) {
        return Ok(Expiration::Ephemeral);
    }
    let is_expiration =
        |tag: &&Tag<'_>| tag.first().is_some_and(|name| name.to_text() == "expiration");
    let Some(tag) = event.tags.iter().find(is_expiration) else { return Ok(Expiration::Never) };
    let at = tag.get(1).and_then(|value| value.to_text().parse().ok());
    let at = at.filter(|at| *at >= MIN_EXPIRATION);
    at.map(Expiration::At).ok_or(EncodeError::Unsupported("an expiration that is not a time"))
}

#[inline]
fn write_tag(tag: Tag<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let Some(name) = tag.first().map(|name| name.to_text()) else { return Ok(()) };
    let [name] = *name.as_bytes() else { return Ok(()) };
    let value = tag.get(1).map_or(Cow::Borrowed(""), |value| value.to_text());
    if is_id(name) {
        let mut id = [0; 32];
        let digits = value.to_ascii_lowercase();
        if digits.len() != 64 || !hex::decode(digits.as_bytes(), &mut id) {
            return Err(EncodeError::Unsupported("a tag `e` or `p` whose value is not an id"));
        }
        out.extend_from_slice(&[name, 32]);
        out.extend_from_slice(&id);
    } else if let Ok(len) = u8::try_from(value.len()) {
        out.extend_from_slice(&[name, len]);
        out.extend_from_slice(value.as_bytes());
    }
    Ok(())
}

fn is_id(name: u8) -> bool {
    matches!(name, b'e' | b'p')
}

/// Kinds of which a relay keeps the newest event per author and kind: NIP-01, and 41 of an older NIP-28.
fn is_replaceable(kind: u16) -> bool {
    matches!(kind, 0 | 3 | 41 | 10_000..20_000)
}

/// Kinds of which a relay keeps the newest event per author, kind and `d`.
fn is_addressable(kind: u16) -> bool {
    matches!(kind, 30_000..40_000)
}

fn is_ephemeral(kind: u16) -> bool {
    matches!(kind, 20_000..30_000)
}

const KIND: usize = 72;

/// A tag `d` with an empty value.
const EMPTY_D: &[u8] = b"d\0";

/// Earliest expiration time; smaller integers are markers.
const MIN_EXPIRATION: u64 = 100;

#[cfg(test)]
mod tests {
    use bumpalo::Bump;

    use super::*;
    use crate::tests::golden;
    use nostr::OwnedEvent;

    fn packed(event: &OwnedEvent) -> Result<Vec<u8>, EncodeError> {
        let (arena, mut bytes) = (Bump::new(), b"before".to_vec());
        let result = encode(&event.borrow_in(&arena), &mut bytes);
        if result.is_err() {
            assert_eq!(bytes, b"before");
        }
        result.map(|()| bytes.split_off(6))
    }

    fn with(kind: u16, tags: &[&[&str]]) -> OwnedEvent {
        let tag = |tag: &&[&str]| tag.iter().map(|value| (*value).to_owned()).collect();
        OwnedEvent { kind, tags: tags.iter().map(tag).collect(), ..golden() }
    }

    fn tags(event: &OwnedEvent) -> Vec<(char, Vec<u8>)> {
        let bytes = packed(event).unwrap();
        let tags = PackedEvent::new(&bytes).unwrap().tags();
        tags.map(|tag| (char::from(tag.name), tag.value.to_vec())).collect()
    }

    fn expires(event: &OwnedEvent) -> Result<Expiration, EncodeError> {
        let bytes = packed(event)?;
        Ok(PackedEvent::new(&bytes).unwrap().expiration())
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let event = with(1, &[&["t", "gm"], &["p", &"ab".repeat(32), "wss://relay.example"]]);
        let mut expected = [event.id, event.pubkey].concat();
        expected.extend([1_700_000_123_u64, 1, 0].map(u64::to_le_bytes).as_flattened());
        expected.extend(b"t\x02gmp\x20");
        expected.extend([0xab; 32]);
        assert_eq!(packed(&event), Ok(expected));
    }

    #[test]
    fn the_summary_has_the_fields_of_the_event() {
        let (event, bytes) = (golden(), packed(&golden()).unwrap());
        let summary = PackedEvent::new(&bytes).unwrap();
        assert_eq!((summary.id(), summary.pubkey()), (&event.id, &event.pubkey));
        assert_eq!((summary.kind(), summary.created_at()), (event.kind, event.created_at));
        assert_eq!(summary.expiration(), Expiration::Never);
    }

    #[test]
    fn only_short_values_of_short_names_are_indexed() {
        let [longest, longer] = [255, 256].map(|len| "x".repeat(len));
        let event =
            with(1, &[&["t"], &[], &["alt", "x"], &["r", &longest], &["r", &longer], &["", "x"]]);
        assert_eq!(tags(&event), [('t', vec![]), ('r', longest.into_bytes())]);
    }

    #[test]
    fn replaceable_and_addressable_events_have_a_d() {
        let d = |kind| tags(&with(kind, &[&["d", "x"], &["t", "y"]]));
        let [x, y] = [('d', b"x".to_vec()), ('t', b"y".to_vec())];
        let none = ('d', vec![]);
        for kind in [0, 3, 41, 10_000, 19_999] {
            assert_eq!(d(kind), [none.clone(), x.clone(), y.clone()]);
        }
        for kind in [30_000, 39_999] {
            assert_eq!(d(kind), [x.clone(), y.clone(), none.clone()]);
        }
        for kind in [1, 2, 4, 9_999, 20_000, 29_999, 40_000] {
            assert_eq!(d(kind), [x.clone(), y.clone()]);
        }
    }

    #[test]
    fn the_first_expiration_is_used() {
        let at = |value| with(1, &[&["expiration", value], &["expiration", "200"]]);
        assert_eq!(expires(&at("100")), Ok(Expiration::At(100)));
        assert_eq!(expires(&with(20_000, &[])), Ok(Expiration::Ephemeral));
        for bad in ["99", "", "soon", "-1", "18446744073709551616"] {
            let not_a_time = EncodeError::Unsupported("an expiration that is not a time");
            assert_eq!(expires(&at(bad)), Err(not_a_time), "{bad}");
        }
    }

    #[test]
    fn what_the_summary_cannot_hold_is_rejected() {
        let digits = "ab".repeat(32);
        let not_an_id = EncodeError::Unsupported("a tag `e` or `p` whose value is not an id");
        for bad in [&digits[2..], "", "x", &format!("{digits}ab"), &format!("g{}", &digits[1..])] {
            assert_eq!(packed(&with(1, &[&["t", "x"], &["e", bad]])), Err(not_an_id), "{bad}");
        }
        assert_eq!(tags(&with(1, &[&["e", &digits.to_uppercase()]])), [('e', vec![0xab; 32])]);
        let past = EncodeError::Range { field: Field::CreatedAt, value: -1 };
        assert_eq!(packed(&OwnedEvent { created_at: -1, ..golden() }), Err(past));
    }

    #[test]
    fn malformed_summaries_are_rejected() {
        let bytes = packed(&with(1, &[&["t", "gm"], &["e", &"ab".repeat(32)]])).unwrap();
        for len in 0..bytes.len() {
            let result = PackedEvent::new(&bytes[..len]).map_err(|error| error.reason);
            match len {
                88 | 92 => assert!(result.is_ok()),
                _ => assert_eq!(result, Err(Reason::Truncated), "{len}"),
            }
        }
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            PackedEvent::new(&bytes).map(drop).map_err(|error| (error.offset, error.reason))
        };
        assert_eq!(with(71, 0x80), Err((64, Reason::Range(Field::CreatedAt))));
        assert_eq!(with(KIND + 2, 1), Err((KIND, Reason::Range(Field::Kind))));
        assert_eq!(with(88, b'e'), Err((88, Reason::Length(Field::Tags))));
    }
}
