//! Which event is this message?

use kernels::{hex, utf8};

use super::tags::Tags;
use super::*;
use crate::input::kind;
use crate::{Field, Reason, Tag};

/// The fields as they come in.
#[derive(Default)]
struct Draft<'a> {
    id: Option<[u8; 32]>,
    pubkey: Option<[u8; 32]>,
    created_at: Option<i64>,
    kind: Option<u16>,
    content: Option<&'a str>,
    sig: Option<[u8; 64]>,
}

/// The event that all of `input` is.
pub(super) fn event<'a>(
    schema: Schema,
    mut input: Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let start = input;
    let mut draft = Draft::default();
    let mut tags = Tags::default();
    loop {
        let at = input;
        let Some(key) = wire::key(&mut input)? else { break };
        if key.number() == TAGS {
            input = at;
            tags.read(schema, &mut input, arena, limits)?;
        } else {
            draft.field(schema, key, &mut input, limits)?;
        }
    }
    draft.into_event(start, tags.finish())
}

impl<'a> Draft<'a> {
    #[inline]
    fn field(
        &mut self,
        schema: Schema,
        key: Key,
        input: &mut Input<'a>,
        limits: &Limits,
    ) -> Result<(), DecodeError> {
        let start = *input;
        match key.number() {
            ID => once(&mut self.id, fixed(schema, key, input, Field::Id)?, start, Field::Id),
            PUBKEY => {
                let pubkey = fixed(schema, key, input, Field::Pubkey)?;
                once(&mut self.pubkey, pubkey, start, Field::Pubkey)
            }
            CREATED_AT => {
                let seconds = wire::varint(key, input)? as i64;
                once(&mut self.created_at, seconds, start, Field::CreatedAt)
            }
            KIND => {
                let kind = kind(wire::varint(key, input)?, start.offset())?;
                once(&mut self.kind, kind, start, Field::Kind)
            }
            CONTENT => once(&mut self.content, content(key, input, limits)?, start, Field::Content),
            SIG => once(&mut self.sig, fixed(schema, key, input, Field::Sig)?, start, Field::Sig),
            _ => wire::skip(key, input),
        }
    }

    fn into_event(self, at: Input<'_>, tags: &'a [Tag<'a>]) -> Result<Event<'a>, DecodeError> {
        let missing = |field| move || at.fault(Reason::Missing(field));
        Ok(Event {
            id: self.id.ok_or_else(missing(Field::Id))?,
            pubkey: self.pubkey.ok_or_else(missing(Field::Pubkey))?,
            created_at: self.created_at.unwrap_or_default(),
            kind: self.kind.unwrap_or_default(),
            tags,
            content: self.content.unwrap_or_default(),
            sig: self.sig.ok_or_else(missing(Field::Sig))?,
        })
    }
}

#[inline]
pub(super) fn once<T>(
    place: &mut Option<T>,
    value: T,
    at: Input<'_>,
    field: Field,
) -> Result<(), DecodeError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(at.fault(Reason::Duplicate(field))),
    }
}

/// A field of `N` bytes, in digits or not.
#[inline]
pub(super) fn fixed<const N: usize>(
    schema: Schema,
    key: Key,
    input: &mut Input<'_>,
    field: Field,
) -> Result<[u8; N], DecodeError> {
    let start = *input;
    let taken = wire::bytes(key, input)?;
    let wrong_len = || start.fault(Reason::Length(field));
    if schema != Schema::String {
        return taken.try_into().map_err(|_| wrong_len());
    }
    let mut bytes = [0; N];
    if taken.len() != 2 * N {
        return Err(wrong_len());
    }
    if !hex::decode(taken, &mut bytes) {
        return Err(start.fault(Reason::Hex(field)));
    }
    Ok(bytes)
}

fn content<'a>(key: Key, input: &mut Input<'a>, limits: &Limits) -> Result<&'a str, DecodeError> {
    let start = *input;
    let content = text(key, input)?;
    limits.hold_content(content.len(), start.offset())?;
    Ok(content)
}

#[inline(always)]
pub(super) fn text<'a>(key: Key, input: &mut Input<'a>) -> Result<&'a str, DecodeError> {
    let start = *input;
    utf8::from_utf8(wire::bytes(key, input)?).ok_or_else(|| start.fault(Reason::Utf8))
}
