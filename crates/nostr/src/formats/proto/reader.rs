//! Which event is this message?

use kernels::{hex, utf8};

use super::*;
use crate::gather::Gather;
use crate::input::kind;
use crate::{Field, Reason, Tag, Value};

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
    let mut tags = Tags { together: &[], apart: None };
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

/// The tags as they come in.
struct Tags<'a> {
    /// Those that followed one another, if no others came.
    together: &'a [Tag<'a>],
    /// All, if other fields came between them.
    apart: Option<BumpVec<'a, Tag<'a>>>,
}

impl<'a> Tags<'a> {
    /// Reads the tags that follow one another from here; there is one at least.
    #[inline]
    fn read(
        &mut self,
        schema: Schema,
        input: &mut Input<'a>,
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<(), DecodeError> {
        let (start, (count, _)) = (input.offset(), wire::run(input.rest()));
        let mut next = || {
            let key = wire::key(input)?.ok_or_else(|| input.fault(Reason::Truncated))?;
            tag(schema, wire::message(key, input)?, arena, limits)
        };
        if count > 0 && self.together.is_empty() && self.apart.is_none() {
            limits.hold_tags(count, start)?;
            self.together = arena.alloc_slice_try_fill_with(count, |_| next())?;
            return Ok(());
        }
        let all = || BumpVec::from_iter_in(self.together.iter().copied(), arena);
        let tags = self.apart.get_or_insert_with(all);
        tags.push(next()?);
        limits.hold_tags(tags.len(), start)
    }

    fn finish(self) -> &'a [Tag<'a>] {
        self.apart.map_or(self.together, BumpVec::into_bump_slice)
    }
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
fn once<T>(
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
fn text<'a>(key: Key, input: &mut Input<'a>) -> Result<&'a str, DecodeError> {
    let start = *input;
    utf8::text(wire::bytes(key, input)?).ok_or_else(|| start.fault(Reason::Utf8))
}

/// The values of a tag: most are all in one list, one behind the other, and can be counted first.
#[inline(always)]
fn tag<'a>(
    schema: Schema,
    mut input: Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Tag<'a>, DecodeError> {
    let (count, len) = wire::run(input.rest());
    if len < input.rest().len() || !starts_with_value(schema, input) {
        return mixed_tag(schema, input, arena, limits);
    }
    limits.hold_tag_values(count, input.offset())?;
    let mut list = None;
    let value = |_| {
        let value = held_value(schema, &mut input, &mut list, limits)?;
        value.ok_or_else(|| input.fault(Reason::Expected("a value")))
    };
    Ok(arena.alloc_slice_try_fill_with(count, value)?)
}

/// Whether the first field, if there is one, is a value.
#[inline]
fn starts_with_value(schema: Schema, input: Input<'_>) -> bool {
    const FIRST: u8 = Key::new(VALUES, Type::Delimited).bits() as u8;
    const SECOND: u8 = Key::new(VALUES_V2, Type::Delimited).bits() as u8;
    match input.rest().first() {
        None | Some(&FIRST) => true,
        Some(&SECOND) => schema == Schema::BinaryHex,
        Some(_) => false,
    }
}

/// The values of a tag with fields between them that are not ours.
#[cold]
fn mixed_tag<'a>(
    schema: Schema,
    mut input: Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Tag<'a>, DecodeError> {
    let mut values = Gather::<Value<'a>, 8>::new(arena, Value::Text(""));
    let mut list = None;
    while let Some(value) = held_value(schema, &mut input, &mut list, limits)? {
        values.push(value);
        limits.hold_tag_values(values.len(), input.offset())?;
    }
    Ok(values.finish())
}

/// The next value; which list they must be in, the first of them says.
#[inline(always)]
fn held_value<'a>(
    schema: Schema,
    input: &mut Input<'a>,
    list: &mut Option<u32>,
    limits: &Limits,
) -> Result<Option<Value<'a>>, DecodeError> {
    let start = input.offset();
    let Some((number, value)) = next_value(schema, input)? else { return Ok(None) };
    if *list.get_or_insert(number) != number {
        return Err(DecodeError::new(start, MIXED));
    }
    limits.hold_value(value.text_len(), start)?;
    Ok(Some(value))
}

/// The next value of a tag, and the number of the list that it is in.
#[inline(always)]
pub(super) fn next_value<'a>(
    schema: Schema,
    input: &mut Input<'a>,
) -> Result<Option<(u32, Value<'a>)>, DecodeError> {
    while let Some(key) = wire::key(input)? {
        match key.number() {
            VALUES => return Ok(Some((VALUES, Value::Text(text(key, input)?)))),
            VALUES_V2 if schema == Schema::BinaryHex => {
                let value = value_v2(wire::message(key, input)?)?;
                return Ok(Some((VALUES_V2, value)));
            }
            _ => wire::skip(key, input)?,
        }
    }
    Ok(None)
}

/// The value that all of `input` is: most have one field, in short.
#[inline(always)]
fn value_v2(input: Input<'_>) -> Result<Value<'_>, DecodeError> {
    const IS_TEXT: u8 = Key::new(TEXT, Type::Delimited).bits() as u8;
    const IS_HEX: u8 = Key::new(HEX, Type::Delimited).bits() as u8;
    match input.rest() {
        [IS_HEX, len @ 0..0x80, bytes @ ..] if bytes.len() == usize::from(*len) => {
            Ok(Value::Hex(bytes))
        }
        [IS_TEXT, len @ 0..0x80, bytes @ ..] if bytes.len() == usize::from(*len) => {
            let text = utf8::text(bytes).ok_or_else(|| input.fault(Reason::Utf8))?;
            Ok(Value::Text(text))
        }
        _ => long_value_v2(input),
    }
}

/// The value that all of `input` is, with a long length or other fields beside it.
fn long_value_v2(mut input: Input<'_>) -> Result<Value<'_>, DecodeError> {
    let start = input;
    let mut value = None;
    while let Some(key) = wire::key(&mut input)? {
        let at = input;
        let said = match key.number() {
            TEXT => Value::Text(text(key, &mut input)?),
            HEX => Value::Hex(wire::bytes(key, &mut input)?),
            _ => {
                wire::skip(key, &mut input)?;
                continue;
            }
        };
        once(&mut value, said, at, Field::Tags)?;
    }
    value.ok_or_else(|| start.fault(Reason::Expected("a value's text or bytes")))
}

const MIXED: Reason = Reason::NotCanonical("values of a tag in two lists");
