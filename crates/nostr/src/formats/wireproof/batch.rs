//! How do many events share what they have in common?

use std::collections::BTreeMap;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use kernels::hex;

use super::head::{KEY_BYTES, NUMBERS};
use super::reader::{Reader, Source};
use super::writer::{self, Sink, Told, Writer};
use super::{BATCH_VERSION, scratch, version};
use crate::formats::or_undo;
use crate::input::{Input, write_varint};
use crate::{DecodeError, EncodeError, Event, Limit, Limits, Reason, Value};

/// Appends `events` as one batch.
///
/// # Errors
/// If the id of one is not that of the event.
pub fn encode_batch(events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    or_undo(out, |out| {
        events.iter().try_for_each(|event| writer::check_id(event, out))?;
        let mut writer = Writer::new(Columns::default());
        let mut time = 0;
        for event in events {
            writer.key(&event.pubkey);
            writer.event(event, time);
            writer.sink.note_id(event.id);
            time = event.created_at;
        }
        writer.sink.finish(events, out);
        Ok(())
    })
}

/// The events of a batch, with the ids that they must have.
///
/// # Errors
/// If `bytes` are not exactly one batch within `limits`, or tell an event in another way than
/// [`encode_batch`].
pub fn decode_batch<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Event<'a>], DecodeError> {
    let mut input = Input::new(bytes);
    version(&mut input, BATCH_VERSION)?;
    let count = input.count(SIG_BYTES, Limit::Events, limits.events)?;
    let [key_count, head_bytes] = [length(&mut input)?, length(&mut input)?];
    let mut sigs = input.part(count * SIG_BYTES)?;
    let keys = input.part(key_count.saturating_mul(KEY_BYTES))?;
    let heads = input.part(head_bytes)?;
    let numbers = BumpVec::with_capacity_in(NUMBERS.min(key_count + count), arena);
    let source =
        Known { heads, bytes: input, keys, numbers, values: BumpVec::new_in(arena), arena };
    scratch::with(|scratch| {
        let mut reader = Reader::new(source, arena, limits, scratch);
        let mut events: BumpVec<'a, Event<'a>> = BumpVec::with_capacity_in(count, arena);
        for _ in 0..count {
            let time = events.last().map_or(0, |event| event.created_at);
            let pubkey = *reader.key()?;
            let event = reader.event(pubkey, *sigs.array()?, time)?;
            reader.source.note_id(event.id);
            events.push(event);
        }
        reader.source.end()?;
        Ok(events.into_bump_slice())
    })
}

/// How many there are of something, which is held against what is left by who takes it.
fn length(input: &mut Input<'_>) -> Result<usize, DecodeError> {
    let start = *input;
    usize::try_from(input.varint()?).map_err(|_| start.fault(Reason::Truncated))
}

/// What is written of a batch, with the numbers of what was there.
#[derive(Default)]
struct Columns {
    keys: Vec<u8>,
    heads: Vec<u8>,
    bytes: Vec<u8>,
    // Trees, since strangers choose the keys: there is nothing to collide.
    key_numbers: BTreeMap<[u8; KEY_BYTES], usize>,
    next_key: usize,
    value_numbers: BTreeMap<Vec<u8>, usize>,
    next_value: usize,
    // The name in `value_numbers` of the value that is looked for.
    wanted: Vec<u8>,
}

impl Columns {
    fn note_id(&mut self, id: [u8; 32]) {
        if self.next_key < NUMBERS {
            self.key_numbers.entry(id).or_insert(self.next_key);
            self.next_key += 1;
        }
    }

    fn finish(&self, events: &[Event<'_>], out: &mut Vec<u8>) {
        out.push(BATCH_VERSION);
        for count in [events.len(), self.keys.len() / KEY_BYTES, self.heads.len()] {
            write_varint(count as u64, out);
        }
        events.iter().for_each(|event| out.extend_from_slice(&event.sig));
        for column in [&self.keys, &self.heads, &self.bytes] {
            out.extend_from_slice(column);
        }
    }
}

impl Sink for Columns {
    fn heads(&mut self) -> &mut Vec<u8> {
        &mut self.heads
    }

    fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    fn new_keys(&mut self) -> &mut Vec<u8> {
        &mut self.keys
    }

    fn find_key(&mut self, key: &[u8; 32]) -> Option<usize> {
        let known = self.key_numbers.get(key).copied();
        if known.is_none() {
            self.note_id(*key);
        }
        known
    }

    fn find_value(&mut self, told: Told<'_>) -> Option<usize> {
        if !is_short(told.text_len()) {
            return None;
        }
        self.wanted.clear();
        told.write_name(&mut self.wanted);
        let known = self.value_numbers.get(&self.wanted).copied();
        if known.is_none() && self.next_value < NUMBERS {
            self.value_numbers.insert(self.wanted.clone(), self.next_value);
            self.next_value += 1;
        }
        known
    }
}

impl Told<'_> {
    fn text_len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Digits(text) => text.len(),
            Self::Bytes(bytes) => 2 * bytes.len(),
        }
    }

    /// Appends bytes that are the same for the same text, and for no other.
    fn write_name(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) | Self::Digits(text) => out.extend_from_slice(text.as_bytes()),
            Self::Bytes(bytes) => hex::encode_into(bytes, out),
        }
    }
}

/// What is read of a batch, with what was there by its numbers.
struct Known<'a> {
    heads: Input<'a>,
    bytes: Input<'a>,
    keys: Input<'a>,
    numbers: BumpVec<'a, &'a [u8; KEY_BYTES]>,
    values: BumpVec<'a, Value<'a>>,
    arena: &'a Bump,
}

impl<'a> Known<'a> {
    fn note_key(&mut self, key: &'a [u8; KEY_BYTES]) {
        if self.numbers.len() < NUMBERS {
            self.numbers.push(key);
        }
    }

    fn note_id(&mut self, id: [u8; 32]) {
        let id = self.arena.alloc(id);
        self.note_key(id);
    }

    /// That nothing is left of any column.
    fn end(&self) -> Result<(), DecodeError> {
        [&self.keys, &self.heads, &self.bytes].into_iter().try_for_each(Input::end)
    }
}

impl<'a> Source<'a> for Known<'a> {
    #[inline]
    fn heads(&mut self) -> &mut Input<'a> {
        &mut self.heads
    }

    #[inline]
    fn bytes(&mut self) -> &mut Input<'a> {
        &mut self.bytes
    }

    fn new_key(&mut self) -> Result<&'a [u8; KEY_BYTES], DecodeError> {
        let key = self.keys.array()?;
        self.note_key(key);
        Ok(key)
    }

    fn known_key(&self, number: usize) -> Option<&'a [u8; KEY_BYTES]> {
        self.numbers.get(number).copied()
    }

    fn known_value(&self, number: usize) -> Option<Value<'a>> {
        self.values.get(number).copied()
    }

    fn note(&mut self, value: Value<'a>) {
        if is_short(value.text_len()) && self.values.len() < NUMBERS {
            self.values.push(value);
        }
    }
}

/// Whether a value of so many bytes of text has a number: short ones have none to gain, and long ones
/// would let a few bytes stand for a great many, which all have to be hashed.
fn is_short(text_len: usize) -> bool {
    (4..=64).contains(&text_len)
}

/// Bytes of a signature.
const SIG_BYTES: usize = 64;
