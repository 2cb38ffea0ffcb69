//! Decoding of a message.

use bumpalo::Bump;
use kernels::hex;

use super::tags::DecodedTags;
use super::wire::{self, Key};
use super::{CONTENT, CREATED_AT, ID, KIND, PUBKEY, SIG, Schema, TAGS};
use nostr::draft::{self, set_once};
use nostr::input::{self, Input};
use nostr::limits::Budget;
use nostr::{DecodeError, Event, Field, Reason};

type Draft<'a> = draft::Draft<'a, [u8; 32], [u8; 64]>;

/// Decodes `input`, which must be exactly one event.
pub(super) fn event<'a>(
    schema: Schema,
    mut input: Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Event<'a>, DecodeError> {
    let start = input;
    let mut draft = Draft::default();
    let mut tags = DecodedTags::default();
    loop {
        let at = input;
        let Some(key) = wire::key(&mut input)? else { break };
        if key.number() == TAGS {
            input = at;
            tags.read(schema, &mut input, arena, limits)?;
        } else {
            read_field(schema, key, &mut draft, &mut input, limits)?;
        }
    }
    draft.created_at.get_or_insert_default();
    draft.kind.get_or_insert_default();
    draft.content.get_or_insert_default();
    draft.tags = Some(tags.finish());
    draft.into_event(start.offset())
}

#[inline]
fn read_field<'a>(
    schema: Schema,
    key: Key,
    draft: &mut Draft<'a>,
    input: &mut Input<'a>,
    limits: &Budget<'_>,
) -> Result<(), DecodeError> {
    let start = input.offset();
    match key.number() {
        ID => set_once(&mut draft.id, fixed(schema, key, input, Field::Id)?, Field::Id, start),
        PUBKEY => {
            let pubkey = fixed(schema, key, input, Field::Pubkey)?;
            set_once(&mut draft.pubkey, pubkey, Field::Pubkey, start)
        }
        CREATED_AT => {
            let seconds = wire::varint(key, input)? as i64;
            set_once(&mut draft.created_at, seconds, Field::CreatedAt, start)
        }
        KIND => {
            let kind = input::kind(wire::varint(key, input)?, start)?;
            set_once(&mut draft.kind, kind, Field::Kind, start)
        }
        CONTENT => {
            set_once(&mut draft.content, content(key, input, limits)?, Field::Content, start)
        }
        SIG => set_once(&mut draft.sig, fixed(schema, key, input, Field::Sig)?, Field::Sig, start),
        _ => wire::skip(key, input),
    }
}

/// Reads a field of `N` bytes, stored as bytes or digits.
#[inline]
pub(super) fn fixed<const N: usize>(
    schema: Schema,
    key: Key,
    input: &mut Input<'_>,
    field: Field,
) -> Result<[u8; N], DecodeError> {
    let start = *input;
    let value = wire::bytes(key, input)?;
    let wrong_len = || start.error(Reason::Length(field));
    if schema != Schema::String {
        return value.try_into().map_err(|_| wrong_len());
    }
    let mut bytes = [0; N];
    if value.len() != 2 * N {
        return Err(wrong_len());
    }
    if !hex::decode(value, &mut bytes) {
        return Err(start.error(Reason::Hex(field)));
    }
    Ok(bytes)
}

fn content<'a>(
    key: Key,
    input: &mut Input<'a>,
    limits: &Budget<'_>,
) -> Result<&'a str, DecodeError> {
    let start = *input;
    let content = wire::text(key, input)?;
    limits.check_content(content.len(), start.offset())?;
    Ok(content)
}
