//! Bytes that a decoder must refuse, by format: a valid event with one change, and the rule that the change breaks.

use bumpalo::Bump;
use kernels::hex;
use nostr::{Limits, OwnedEvent};
use nostr_formats::Format;
use serde::Serialize;

/// Bytes that are no event of a format, and why.
#[derive(Serialize)]
pub(crate) struct RefusedVector {
    name: &'static str,
    format: &'static str,
    /// The broken rule: the name of a [`Reason`](nostr::Reason).
    rule: &'static str,
    /// Where it is broken, in bytes from the start.
    offset: usize,
    /// The rule and the place in words.
    message: String,
    /// In hexadecimal.
    bytes: String,
}

/// The refusals of all formats: changes of the encodings of `note`.
///
/// # Panics
/// If a decoder accepts one of them, or refuses it for another rule.
pub(crate) fn of(note: &OwnedEvent) -> Vec<RefusedVector> {
    let arena = Bump::new();
    let event = note.borrow_in(&arena);
    let of_format = |format: Format| {
        let mut bytes = Vec::new();
        format.encode(&event, &mut bytes).expect("every format holds the note");
        changes(format.name(), &bytes, note).into_iter().map(move |change| refusal(format, change))
    };
    Format::ALL.iter().flat_map(|format| of_format(*format)).collect()
}

/// The changed part, the rule that this breaks, and the changed bytes.
type Change = (&'static str, &'static str, Vec<u8>);

fn refusal(format: Format, (name, rule, bytes): Change) -> RefusedVector {
    let (arena, place) = (Bump::new(), format!("{}: {name}", format.name()));
    let decoded = format.decode(&bytes, &arena, &Limits::default());
    let error = decoded.err().unwrap_or_else(|| panic!("{place}: accepted"));
    assert_eq!(error.reason.name(), rule, "{place}: {error}");
    RefusedVector {
        name,
        format: format.name(),
        rule,
        offset: error.offset,
        message: error.to_string(),
        bytes: hex::encode(&bytes),
    }
}

/// The changes of the note in a format.
fn changes(format: &str, note: &[u8], event: &OwnedEvent) -> Vec<Change> {
    let whole = Encoding(note);
    let mut changes = whole.ends(format);
    changes.extend(match format {
        "json" => json(&whole, event),
        "cbor-schemaless" => cbor_schemaless(&whole),
        "cbor-packed" => cbor_packed(&whole),
        "cbor-intkey" => cbor_intkey(&whole),
        "msgpack" => msgpack(&whole),
        "dannypack" => dannypack(&whole),
        "notepack" => notepack(&whole),
        "proto-string" => proto_string(&whole, event),
        "proto-binary" => proto_binary(&whole),
        "proto-binary-hex" => proto_binary_hex(&whole),
        "capnp" => capnp(&whole),
        "capnp-schema" => capnp_schema(&whole),
        "capnp-packed" | "capnp-schema-packed" => vec![(BOMB, "expected", [0, 0xff].repeat(300))],
        "flatbuffers" => flatbuffers(&whole, event),
        "ndb-note" => ndb_note(&whole),
        "wireproof" => wireproof(&whole),
        other => panic!("{other} has no refusals"),
    });
    changes
}

/// The encoding of the note, of which changed copies are made.
struct Encoding<'e>(&'e [u8]);

impl Encoding<'_> {
    /// With `new` instead of `old`, which occurs once.
    fn with(&self, old: &[u8], new: &[u8]) -> Vec<u8> {
        let places = (0..self.0.len()).filter(|at| self.0[*at..].starts_with(old));
        let places: Vec<usize> = places.collect();
        let [at] = places[..] else { panic!("{old:02x?} at {places:?}") };
        self.with_at(at, old.len(), new)
    }

    /// With `new` instead of `len` bytes at `at`.
    fn with_at(&self, at: usize, len: usize, new: &[u8]) -> Vec<u8> {
        [&self.0[..at], new, &self.0[at + len..]].concat()
    }

    fn with_text(&self, old: &str, new: &str) -> Vec<u8> {
        self.with(old.as_bytes(), new.as_bytes())
    }

    /// With content that is not UTF-8.
    fn with_broken_content(&self) -> Vec<u8> {
        self.with(b"\xf0\x9f\x8c\x8d", b"\xf0\x9f\x8cx")
    }

    /// Without the last byte, and with eight zero bytes more: whole words of every format.
    fn ends(&self, format: &str) -> Vec<Change> {
        let cut = match format {
            "flatbuffers" | "ndb-note" => "expected",
            _ => "truncated",
        };
        // Zero is a field number that no message has.
        let longer = if format.starts_with("proto-") { "expected" } else { "trailing-bytes" };
        vec![
            ("the last byte is missing", cut, self.0[..self.0.len() - 1].to_vec()),
            ("eight zero bytes follow", longer, [self.0, &[0; 8]].concat()),
        ]
    }
}

fn json(note: &Encoding<'_>, event: &OwnedEvent) -> Vec<Change> {
    let id = hex::encode(&event.id);
    vec![
        ("the id in upper case", "hexadecimal", note.with_text(&id, &id.to_uppercase())),
        ("an id of 63 digits", "length", note.with_text(&id, &id[1..])),
        ("a kind of 65,536", "range", note.with_text("\"kind\":1", "\"kind\":65536")),
        ("a kind with an exponent", "integer", note.with_text("\"kind\":1", "\"kind\":1e0")),
        ("a kind in a string", "expected", note.with_text("\"kind\":1", "\"kind\":\"1\"")),
        ("two kinds", "duplicate", note.with_text("\"kind\":1", "\"kind\":1,\"kind\":1")),
        ("no kind", "missing", note.with_text("\"kind\":1,", "")),
        ("a line feed in the content", "expected", note.with_text("good m", "good\nm")),
        ("a surrogate alone in the content", "expected", note.with_text("good m", "\\ud83c")),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn cbor_schemaless(note: &Encoding<'_>) -> Vec<Change> {
    let two_kinds = note.with(b"\x64kind\x01", b"\x64kind\x01\x64kind\x01");
    vec![
        ("a kind of 65,536", "range", note.with(b"kind\x01", b"kind\x1a\x00\x01\x00\x00")),
        (LONG_HEAD, "not-minimal", note.with(b"kind\x01", b"kind\x18\x01")),
        ("two kinds", "duplicate", Encoding(&two_kinds).with(b"\xa7\x62id", b"\xa8\x62id")),
        ("another key than kind", "missing", note.with(b"\x64kind", b"\x64Kind")),
        ("a map without its length", "expected", note.with(b"\xa7\x62id", b"\xbf\x62id")),
        ("a signature as text", "expected", note.with(b"\x63sig\x58", b"\x63sig\x78")),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn cbor_packed(note: &Encoding<'_>) -> Vec<Change> {
    vec![
        ("digits as text", "not-canonical", note.with(b"\x44\xde\xad\xbe\xef", b"\x68deadbeef")),
        ("few digits as bytes", "not-canonical", note.with(b"\x62gm", b"\x42\xca\xfe")),
        ("a kind of 65,536", "range", note.with(b"\x01\x82\x82", b"\x1a\x00\x01\x00\x00\x82\x82")),
        (LONG_HEAD, "not-minimal", note.with(b"\x01\x82\x82", b"\x18\x01\x82\x82")),
        ("tags without their number", "expected", note.with(b"\x01\x82\x82", b"\x01\x9f\x82")),
        ("six items", "expected", note.with(b"\x87\x58\x20", b"\x86\x58\x20")),
        ("a signature of 63 bytes", "length", note.with(b"\x58\x40", b"\x58\x3f")),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn cbor_intkey(note: &Encoding<'_>) -> Vec<Change> {
    let two_kinds = note.with(b"\x03\x01\x04\x82", b"\x03\x01\x03\x01\x04\x82");
    vec![
        (
            "a kind of 65,536",
            "range",
            note.with(b"\x03\x01\x04\x82", b"\x03\x1a\x00\x01\x00\x00\x04\x82"),
        ),
        (LONG_HEAD, "not-minimal", note.with(b"\x03\x01\x04\x82", b"\x03\x18\x01\x04\x82")),
        ("two kinds", "duplicate", Encoding(&two_kinds).with_at(0, 1, b"\xa8")),
        ("another key than 3", "missing", note.with(b"\x03\x01\x04\x82", b"\x07\x01\x04\x82")),
        ("a signature of 63 bytes", "length", note.with(b"\x06\x58\x40", b"\x06\x58\x3f")),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn msgpack(note: &Encoding<'_>) -> Vec<Change> {
    vec![
        (
            "digits as text",
            "not-canonical",
            note.with(b"\xc4\x04\xde\xad\xbe\xef", b"\xa8deadbeef"),
        ),
        ("few digits as bytes", "not-canonical", note.with(b"\xa2gm", b"\xc4\x02\xca\xfe")),
        ("a kind of 65,536", "range", note.with(b"\x01\x92\x92", b"\xce\x00\x01\x00\x00\x92\x92")),
        (LONG_HEAD, "not-minimal", note.with(b"\x01\x92\x92", b"\xcc\x01\x92\x92")),
        ("six items", "expected", note.with(b"\x97\xc4\x20", b"\x96\xc4\x20")),
        ("a signature of 63 bytes", "length", note.with(b"\xc4\x40", b"\xc4\x3f")),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn dannypack(note: &Encoding<'_>) -> Vec<Change> {
    let tags_len = note.0[138];
    vec![
        (LONG_HEAD, "not-minimal", note.with_at(138, 1, &[tags_len | 0x80, 0])),
        ("tags with a byte more", "trailing-bytes", note.with_at(138, 2, &[tags_len, 1])),
        ("tags longer than the rest", "truncated", note.with_at(138, 1, &[0xff, 0x7f])),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn notepack(note: &Encoding<'_>) -> Vec<Change> {
    vec![
        ("version 2", "version", note.with_at(0, 1, &[2])),
        ("a kind of 65,536", "range", note.with(b"\x01\x11good", b"\x80\x80\x04\x11good")),
        (LONG_HEAD, "not-minimal", note.with(b"\x01\x11good", b"\x81\x00\x11good")),
        ("content longer than the rest", "truncated", note.with(b"\x11good", b"\xff\x7fgood")),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn proto_string(note: &Encoding<'_>, event: &OwnedEvent) -> Vec<Change> {
    let id = hex::encode(&event.id);
    vec![
        ("the id in upper case", "hexadecimal", note.with_text(&id, &id.to_uppercase())),
        ("two kinds", "duplicate", [note.0, b"\x20\x01"].concat()),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn proto_binary(note: &Encoding<'_>) -> Vec<Change> {
    vec![
        ("a kind of 65,537", "range", note.with(b"\x20\x01\x2a", b"\x20\x81\x80\x04\x2a")),
        (LONG_HEAD, "not-minimal", note.with(b"\x20\x01\x2a", b"\x20\x81\x00\x2a")),
        ("a kind as bytes", "expected", note.with(b"\x20\x01\x2a", b"\x22\x00\x2a")),
        ("two kinds", "duplicate", [note.0, b"\x20\x01"].concat()),
        ("no id", "missing", note.0[34..].to_vec()),
        ("an id of one byte", "length", [&b"\x0a\x01\x00"[..], &note.0[34..]].concat()),
        ("a group", "expected", [note.0, b"\x43\x44"].concat()),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn proto_binary_hex(note: &Encoding<'_>) -> Vec<Change> {
    let text = b"\x12\x04\x0a\x02gm";
    vec![
        ("a tag with two lists", "not-canonical", note.with(text, b"\x0a\x04\x0a\x02gm")),
        (
            "a value without a field",
            "expected",
            note.with(
                b"\x2a\x0b\x12\x03\x0a\x01t\x12\x04\x0a\x02gm",
                b"\x2a\x07\x12\x03\x0a\x01t\x12\x00",
            ),
        ),
        ("two kinds", "duplicate", [note.0, b"\x20\x01"].concat()),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn capnp(note: &Encoding<'_>) -> Vec<Change> {
    vec![
        // The sizes in the pointers to data: three bits of a type, then the bytes.
        ("fixed data of 137 bytes", "expected", note.with(&[0x52, 4, 0, 0], &[0x4a, 4, 0, 0])),
        (
            "three tags where two follow",
            "truncated",
            note.with(b"\x02\0\x02\x01\0t", b"\x03\0\x02\x01\0t"),
        ),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn capnp_schema(note: &Encoding<'_>) -> Vec<Change> {
    vec![
        ("a signature of 63 bytes", "length", note.with(&[2, 2, 0, 0], &[0xfa, 1, 0, 0])),
        ("a pointer out of the message", "expected", note.with(&[2, 2, 0, 0], &[2, 0x22, 0, 0])),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn flatbuffers(note: &Encoding<'_>, event: &OwnedEvent) -> Vec<Change> {
    let id = [&[32, 0, 0, 0][..], &event.id[..4]].concat();
    let short = [&[31, 0, 0, 0][..], &event.id[..4]].concat();
    vec![
        ("an id of 31 bytes", "length", note.with(&id, &short)),
        ("a root out of the buffer", "truncated", note.with_at(0, 4, &[0xff; 4])),
        (
            "text without its zero byte",
            "expected",
            note.with(b"\xf0\x9f\x8c\x8d\0", b"\xf0\x9f\x8c\x8dx"),
        ),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn ndb_note(note: &Encoding<'_>) -> Vec<Change> {
    vec![
        ("version 2", "version", note.with_at(0, 1, &[2])),
        ("a reserved byte that is not zero", "not-canonical", note.with_at(1, 1, &[1])),
        ("a time after 2^63", "range", note.with_at(139, 1, &[0x80])),
        ("a kind of 65,537", "range", note.with_at(142, 1, &[1])),
        ("content of one byte", "expected", note.with_at(144, 1, &[1])),
        ("strings out of the note", "expected", note.with_at(155, 1, &[1])),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

fn wireproof(note: &Encoding<'_>) -> Vec<Change> {
    vec![
        ("version 2", "version", note.with_at(0, 1, &[2])),
        ("the version of a batch", "version", note.with_at(0, 1, &[0x81])),
        (
            "the flag of escaped control characters without any",
            "not-canonical",
            note.with_at(KIND_AT, 1, b"\x81\x80\x04"),
        ),
        ("digits as text", "not-canonical", note.with(b"\x63\xde\xad\xbe\xef", b"\x08deadbeef")),
        (
            "the number of an earlier key",
            "expected",
            note.with(b"\x63\xde\xad\xbe\xef", b"\xc0\x00"),
        ),
        (LONG_HEAD, "not-minimal", note.with_at(KIND_AT, 1, b"\x81\x00")),
        (NOT_UTF_8, "utf-8", note.with_broken_content()),
    ]
}

/// Offset of the kind in the layout `wireproof`: the time takes five bytes.
const KIND_AT: usize = 1 + 32 + 64 + 5;

const NOT_UTF_8: &str = "content that is not UTF-8";
const LONG_HEAD: &str = "a head or an integer with a byte too many";
const BOMB: &str = "600 bytes that unpack to 600 KiB";
