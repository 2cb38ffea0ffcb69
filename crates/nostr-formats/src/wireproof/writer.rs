//! Encoding of events as heads and bytes.

use kernels::hex;

use super::head::{Head, KEY_BYTES, to_zigzag, write_kind};
use super::{runs, words};
use nostr::canonical::{self, ControlChars};
use nostr::input::write_varint;
use nostr::{EncodeError, Event, Tag, Value};

/// The form whose hash is the id; rejects an event with a wrong id. `out` is scratch memory and unchanged after the
/// call.
pub(super) fn id_form(event: &Event<'_>, out: &mut Vec<u8>) -> Result<ControlChars, EncodeError> {
    let start = out.len();
    let form = canonical::id_form_from(start, event, out);
    out.truncate(start);
    form.ok_or(EncodeError::Id)
}

/// The output: where heads and bytes go, and the numbers of earlier keys and values.
pub(super) trait Sink {
    fn heads(&mut self) -> &mut Vec<u8>;
    fn bytes(&mut self) -> &mut Vec<u8>;
    /// The output for the bytes of keys.
    fn new_keys(&mut self) -> &mut Vec<u8>;
    /// The number of an earlier key; a new key is numbered.
    fn find_key(&mut self, key: &[u8; 32]) -> Option<usize>;
    /// The number of an earlier value; a new value is numbered.
    fn find_value(&mut self, value: FullValue<'_>) -> Option<usize>;
    /// Counts memory that the decoder will take for lists and assembled text.
    fn count_memory(&mut self, bytes: usize);
}

/// A value that is neither a string of the table nor a key, and is stored in full.
#[derive(Clone, Copy)]
pub(super) enum FullValue<'t> {
    Text(&'t str),
    /// Text of an even number of digits.
    Digits(&'t str),
    /// The bytes that digits encode.
    Bytes(&'t [u8]),
}

/// A single event: bytes follow their heads, and there are no earlier keys or values.
pub(super) struct Single<'o>(pub(super) &'o mut Vec<u8>);

impl Sink for Single<'_> {
    #[inline]
    fn heads(&mut self) -> &mut Vec<u8> {
        self.0
    }

    #[inline]
    fn bytes(&mut self) -> &mut Vec<u8> {
        self.0
    }

    #[inline]
    fn new_keys(&mut self) -> &mut Vec<u8> {
        self.0
    }

    #[inline]
    fn find_key(&mut self, _: &[u8; 32]) -> Option<usize> {
        None
    }

    #[inline]
    fn find_value(&mut self, _: FullValue<'_>) -> Option<usize> {
        None
    }

    #[inline]
    fn count_memory(&mut self, _: usize) {}
}

/// An encoder of one event after the other.
pub(super) struct Writer<S> {
    pub(super) sink: S,
}

impl<S: Sink> Writer<S> {
    pub(super) fn new(sink: S) -> Self {
        Self { sink }
    }

    /// Appends the event from `created_at` on.
    pub(super) fn event(&mut self, event: &Event<'_>, id_form: ControlChars, previous_time: i64) {
        let heads = self.sink.heads();
        write_varint(to_zigzag(event.created_at.wrapping_sub(previous_time)), heads);
        write_kind(event.kind, id_form, heads);
        write_varint(event.tags.len() as u64, heads);
        for tag in event.tags {
            self.sink.count_memory(size_of::<Tag<'_>>() + size_of_val(*tag));
            self.tag(tag);
        }
        self.value(&Value::Text(event.content));
    }

    #[inline]
    fn tag(&mut self, tag: &[Value<'_>]) {
        let name = match tag.first() {
            Some(Value::Text(text)) => words::name(text),
            _ => None,
        };
        let (number, values) = match name {
            Some(number) => (number, &tag[1..]),
            None => (NO_NUMBER, tag),
        };
        let heads = self.sink.heads();
        match tag.len() {
            count @ 2..=4 => heads.push(number | ((count - 2) as u8) << 6),
            count => {
                heads.push(number | 3 << 6);
                write_varint(count as u64, heads);
            }
        }
        values.iter().for_each(|value| self.value(value));
    }

    #[inline]
    fn value(&mut self, value: &Value<'_>) {
        match value {
            Value::Text(text) => match value.hex_len(1) {
                Some(KEY_BYTES) => self.key_of_digits(text.as_bytes()),
                Some(_) => self.full_value(FullValue::Digits(text)),
                None => self.text(text),
            },
            Value::Hex([]) => Head::Text(0).write(self.sink.heads()),
            Value::Hex(bytes) => match (*bytes).try_into() {
                Ok(key) => self.key(key),
                Err(_) => self.full_value(FullValue::Bytes(bytes)),
            },
        }
    }

    #[inline]
    fn text(&mut self, text: &str) {
        match words::string(text) {
            Some(number) => Head::Word(number).write(self.sink.heads()),
            None => self.full_value(FullValue::Text(text)),
        }
    }

    /// Appends a key: in full, or by its number.
    #[inline]
    pub(super) fn key(&mut self, key: &[u8; 32]) {
        match self.sink.find_key(key) {
            Some(number) => Head::KnownKey(number).write(self.sink.heads()),
            None => {
                Head::Key.write(self.sink.heads());
                self.sink.new_keys().extend_from_slice(key);
            }
        }
    }

    fn key_of_digits(&mut self, digits: &[u8]) {
        let mut key = [0; KEY_BYTES];
        assert!(hex::decode(digits, &mut key), "the caller checked for 64 digits");
        self.key(&key);
    }

    #[inline]
    fn full_value(&mut self, value: FullValue<'_>) {
        if let Some(number) = self.sink.find_value(value) {
            return Head::KnownValue(number).write(self.sink.heads());
        }
        match value {
            FullValue::Text(text) => self.new_text(text),
            FullValue::Digits(digits) => self.digits(digits.as_bytes()),
            FullValue::Bytes(bytes) => {
                Head::Hex(bytes.len()).write(self.sink.heads());
                self.sink.bytes().extend_from_slice(bytes);
            }
        }
    }

    fn digits(&mut self, digits: &[u8]) {
        Head::Hex(digits.len() / 2).write(self.sink.heads());
        assert!(hex::decode_into(digits, self.sink.bytes()), "the caller checked for digits");
    }

    #[inline]
    fn new_text(&mut self, text: &str) {
        match runs::next(text.as_bytes(), 0) {
            None => {
                Head::Text(text.len()).write(self.sink.heads());
                self.sink.bytes().extend_from_slice(text.as_bytes());
            }
            Some(first) => self.text_with_runs(text.as_bytes(), first),
        }
    }

    fn text_with_runs(&mut self, text: &[u8], first: std::ops::Range<usize>) {
        let runs = || std::iter::successors(Some(first.clone()), |run| runs::next(text, run.end));
        self.sink.count_memory(text.len());
        Head::WithRuns.write(self.sink.heads());
        write_varint(runs().count() as u64, self.sink.heads());
        let mut at = 0;
        for run in runs() {
            self.piece(&text[at..run.start]);
            at = run.end;
            match &text[run] {
                digits if digits.len() == 2 * KEY_BYTES => self.key_of_digits(digits),
                digits => self.digits(digits),
            }
        }
        self.piece(&text[at..]);
    }

    /// Appends the text before or after a run.
    fn piece(&mut self, text: &[u8]) {
        write_varint(text.len() as u64, self.sink.heads());
        self.sink.bytes().extend_from_slice(text);
    }
}

/// The number of a name that is stored as a value.
const NO_NUMBER: u8 = 63;
