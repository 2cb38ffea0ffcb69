//! Batches: columns of signatures, keys, heads and bytes, with earlier keys and values by number.

use std::collections::BTreeMap;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use kernels::hex;

use super::head::{BATCH_VERSION, KEY_BYTES, MAX_NUMBERS, read_version};
use super::reader::{self, EARLIER_NUMBER, Reader, Source};
use super::writer::{self, FullValue, Sink, Writer};
use crate::codec::or_truncate;
use nostr::input::{Input, write_varint};
use nostr::limits::{Budget, LIST_RATIO};
use nostr::{DecodeError, EncodeError, Event, Limit, Limits, Reason, Value};

pub(super) fn encode(events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    or_truncate(out, |out| {
        let mut writer = Writer::new(Columns::default());
        let mut previous_time = 0;
        for event in events {
            let id_form = writer::id_form(event, out)?;
            writer.key(&event.pubkey);
            writer.event(event, id_form, previous_time);
            writer.sink.end_event(event.id);
            previous_time = event.created_at;
        }
        writer.sink.finish(events, out)
    })
}

pub(super) fn decode<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Event<'a>], DecodeError> {
    let mut input = Input::new(bytes);
    read_version(&mut input, BATCH_VERSION)?;
    let count = input.count(SIG_BYTES, Limit::Events, limits.events)?;
    let [key_count, head_bytes] = [length(&mut input)?, length(&mut input)?];
    let mut sigs = input.part(count * SIG_BYTES)?;
    let keys = input.part(key_count.saturating_mul(KEY_BYTES))?;
    let heads = input.part(head_bytes)?;
    let numbers = BumpVec::with_capacity_in(MAX_NUMBERS.min(key_count + count), arena);
    let max_referenced = bytes.len().saturating_add(MAX_REFERENCED_BYTES);
    let values = Values(BumpVec::new_in(arena));
    let source = EarlierItems {
        heads,
        bytes: input,
        keys,
        numbers,
        values,
        referenced: 0,
        max_referenced,
        arena,
    };
    let limits = Budget::new(bytes.len(), limits);
    reader::with_scratch(|scratch| {
        let mut reader = Reader::new(source, arena, limits, scratch);
        let mut events: BumpVec<'a, Event<'a>> = BumpVec::with_capacity_in(count, arena);
        for _ in 0..count {
            let previous_time = events.last().map_or(0, |event| event.created_at);
            let pubkey = *reader.key()?;
            let event = reader.event(pubkey, *sigs.array()?, previous_time)?;
            reader.source.end_event(event.id);
            events.push(event);
        }
        reader.source.end()?;
        Ok(events.into_bump_slice())
    })
}

/// Reads a count or length; reading the items checks it against the remaining input.
fn length(input: &mut Input<'_>) -> Result<usize, DecodeError> {
    let start = *input;
    usize::try_from(input.varint()?).map_err(|_| start.error(Reason::Truncated))
}

/// The columns of a batch that is being encoded, and the numbers of earlier keys and values.
#[derive(Default)]
struct Columns {
    keys: Vec<u8>,
    heads: Vec<u8>,
    bytes: Vec<u8>,
    // Trees, not hash tables: untrusted senders choose the keys.
    key_numbers: BTreeMap<[u8; KEY_BYTES], usize>,
    next_key: usize,
    value_numbers: BTreeMap<Vec<u8>, usize>,
    next_value: usize,
    // The text of the value that is looked up.
    lookup: Vec<u8>,
    events: usize,
    /// Memory in bytes that the decoder will take for lists, numbered values and assembled text.
    memory: usize,
    /// Text of this event in bytes that is stored as numbers of earlier values.
    referenced: usize,
}

impl Columns {
    fn number_key(&mut self, key: [u8; 32]) {
        if self.next_key < MAX_NUMBERS {
            self.key_numbers.entry(key).or_insert(self.next_key);
            self.next_key += 1;
        }
    }

    fn end_event(&mut self, id: [u8; 32]) {
        self.number_key(id);
        self.events += 1;
        self.referenced = 0;
    }

    fn written(&self) -> usize {
        self.events * SIG_BYTES + self.keys.len() + self.heads.len() + self.bytes.len()
    }

    /// Whether a number may stand for an earlier item, so that the decoder's memory stays in proportion.
    fn has_memory(&self) -> bool {
        self.memory <= MAX_NUMBERED_MEMORY + LIST_RATIO * self.written()
    }

    fn finish(&self, events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let max = Limits::default().list_bytes + LIST_RATIO * self.written();
        EncodeError::at_most("bytes of lists of tags and values", self.memory, max)?;
        out.push(BATCH_VERSION);
        for count in [events.len(), self.keys.len() / KEY_BYTES, self.heads.len()] {
            write_varint(count as u64, out);
        }
        events.iter().for_each(|event| out.extend_from_slice(&event.sig));
        for column in [&self.keys, &self.heads, &self.bytes] {
            out.extend_from_slice(column);
        }
        Ok(())
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
        let known = self.key_numbers.get(key).copied().filter(|_| self.has_memory());
        if known.is_none() {
            self.number_key(*key);
        }
        known
    }

    fn find_value(&mut self, value: FullValue<'_>) -> Option<usize> {
        if !has_number(value.text_len()) {
            return None;
        }
        self.lookup.clear();
        value.write_text(&mut self.lookup);
        let known = self.value_numbers.get(&self.lookup).copied();
        let referenced = self.referenced + self.lookup.len();
        if known.is_some() && self.has_memory() && referenced <= MAX_REFERENCED_BYTES {
            self.referenced = referenced;
            return known;
        }
        if self.next_value < MAX_NUMBERS {
            if known.is_none() {
                self.value_numbers.insert(self.lookup.clone(), self.next_value);
            }
            self.next_value += 1;
            self.memory += size_of::<Value<'_>>();
        }
        None
    }

    fn count_memory(&mut self, bytes: usize) {
        self.memory += bytes;
    }
}

impl FullValue<'_> {
    fn text_len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Digits(text) => text.len(),
            Self::Bytes(bytes) => 2 * bytes.len(),
        }
    }

    /// Appends the text.
    fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) | Self::Digits(text) => out.extend_from_slice(text.as_bytes()),
            Self::Bytes(bytes) => hex::encode_into(bytes, out),
        }
    }
}

/// The columns of a batch that is being decoded, and earlier keys and values by number.
struct EarlierItems<'a> {
    heads: Input<'a>,
    bytes: Input<'a>,
    keys: Input<'a>,
    numbers: BumpVec<'a, &'a [u8; KEY_BYTES]>,
    values: Values<'a>,
    /// Text of this event in bytes that was stored as numbers of earlier values.
    referenced: usize,
    max_referenced: usize,
    arena: &'a Bump,
}

/// Values by number, in chunks of equal capacity: a list in an arena leaves its old memory behind when it grows.
struct Values<'a>(BumpVec<'a, BumpVec<'a, Value<'a>>>);

impl<'a> Values<'a> {
    fn len(&self) -> usize {
        let full = self.0.len().saturating_sub(1) * CHUNK_VALUES;
        self.0.last().map_or(0, |last| full + last.len())
    }

    fn get(&self, number: usize) -> Option<Value<'a>> {
        self.0.get(number / CHUNK_VALUES)?.get(number % CHUNK_VALUES).copied()
    }

    fn push(&mut self, value: Value<'a>, arena: &'a Bump) {
        match self.0.last_mut() {
            Some(last) if last.len() < CHUNK_VALUES => last.push(value),
            _ => {
                let mut chunk = BumpVec::with_capacity_in(CHUNK_VALUES, arena);
                chunk.push(value);
                self.0.push(chunk);
            }
        }
    }
}

impl<'a> EarlierItems<'a> {
    fn number_key(&mut self, key: &'a [u8; KEY_BYTES]) {
        if self.numbers.len() < MAX_NUMBERS {
            self.numbers.push(key);
        }
    }

    fn end_event(&mut self, id: [u8; 32]) {
        let id = self.arena.alloc(id);
        self.number_key(id);
        self.referenced = 0;
    }

    /// Checks that every column is at its end.
    fn end(&self) -> Result<(), DecodeError> {
        [&self.keys, &self.heads, &self.bytes].into_iter().try_for_each(Input::end)
    }
}

impl<'a> Source<'a> for EarlierItems<'a> {
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
        self.number_key(key);
        Ok(key)
    }

    fn known_key(&self, number: usize) -> Option<&'a [u8; KEY_BYTES]> {
        self.numbers.get(number).copied()
    }

    fn known_value(&mut self, number: usize) -> Result<Value<'a>, Reason> {
        let value = self.values.get(number).ok_or(Reason::Expected(EARLIER_NUMBER))?;
        self.referenced += value.text_len();
        if self.referenced > self.max_referenced {
            return Err(Reason::Limit(Limit::ReferencedBytes));
        }
        Ok(value)
    }

    fn number_value(&mut self, value: Value<'a>) -> usize {
        if !has_number(value.text_len()) || self.values.len() >= MAX_NUMBERS {
            return 0;
        }
        self.values.push(value, self.arena);
        size_of::<Value<'_>>()
    }
}

/// Whether values of that length have numbers. Shorter ones would gain nothing; longer ones would let a few bytes
/// stand for very many, all of which have to be hashed.
fn has_number(text_len: usize) -> bool {
    (4..=64).contains(&text_len)
}

/// Number of values in a chunk of numbered values.
const CHUNK_VALUES: usize = 256;

/// Maximum text of an event that may be stored as numbers of earlier values, in bytes; decoding allows as much more as
/// the batch is long. All of it has to be hashed at once.
const MAX_REFERENCED_BYTES: usize = 1 << 20;

/// Memory that numbers may always expand to, in bytes: half of the default limits.
const MAX_NUMBERED_MEMORY: usize = 512 << 10;

/// Length of a signature in bytes.
const SIG_BYTES: usize = 64;
