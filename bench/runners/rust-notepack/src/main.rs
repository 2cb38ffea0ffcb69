//! The published notepack crate. Its parser panics on bytes that end too early; the shell catches that and counts
//! it as a refusal.

use std::hint::black_box;

use notepack::{Note, NoteBuf, NoteParser, ParsedField, StringType, pack_note};
use runner_shell::nostr::{self, Codec, EventCounts, Fields, framed};
use runner_shell::{BoxError, Runner};

fn main() -> std::io::Result<()> {
    let mut tasks = nostr::tasks::<Notepack>();
    tasks.push(nostr::fields::<Notepack>());
    runner_shell::run(&Runner { engine: "notepack 0.3.0", version: "0.3.0", tasks: &tasks })
}

struct Notepack;

impl Codec for Notepack {
    const FORMAT: &'static str = "notepack";
    const CHECKS: &'static [&'static str] = &["utf8"];

    type Event = NoteBuf;
    type Decoded<'a> = Note<'a>;

    fn parse(line: &str) -> Result<NoteBuf, BoxError> {
        Ok(serde_json::from_str(line)?)
    }

    /// There is no call that writes into existing memory.
    fn encode(event: &NoteBuf, out: &mut Vec<u8>) -> Result<(), BoxError> {
        *out = pack_note(event)?;
        Ok(())
    }

    /// A note's tags are read lazily, so they are read once here: otherwise malformed tags would go unnoticed.
    fn decode(bytes: &[u8]) -> Result<Note<'_>, BoxError> {
        let note = NoteParser::new(bytes).into_note()?;
        each_value(&note, |value| {
            black_box(value);
        })?;
        Ok(note)
    }

    fn count(note: &Note<'_>, counts: &mut EventCounts) {
        counts.event(note.kind as i64, note.created_at as i64, note.content);
        (0..note.tags.len()).for_each(|_| counts.tag());
        let read = each_value(note, |value| match value {
            StringType::Str(text) => counts.text(text),
            StringType::Bytes(bytes) => counts.hex(bytes),
        });
        read.expect("decoding has read them");
    }

    fn encode_batch(events: &[NoteBuf], out: &mut Vec<u8>) -> Result<(), BoxError> {
        framed::encode(events, out, |event, out| {
            out.extend(pack_note(event)?);
            Ok(())
        })
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Note<'_>>, BoxError> {
        framed::decode(bytes, Notepack::decode)
    }
}

/// Reads with the parser that returns one field after the other.
impl Fields for Notepack {
    fn kind(bytes: &[u8]) -> Result<u16, BoxError> {
        for field in NoteParser::new(bytes) {
            if let ParsedField::Kind(kind) = field? {
                return Ok(kind.try_into()?);
            }
        }
        Err("a note without a kind".into())
    }

    fn pubkey(bytes: &[u8]) -> Result<[u8; 32], BoxError> {
        for field in NoteParser::new(bytes) {
            if let ParsedField::Pubkey(pubkey) = field? {
                return Ok(pubkey.try_into()?);
            }
        }
        Err("a note without a pubkey".into())
    }

    fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), BoxError> {
        let mut pubkey = None;
        for field in NoteParser::new(bytes) {
            match field? {
                ParsedField::Pubkey(bytes) => pubkey = Some(bytes.try_into()?),
                ParsedField::Kind(kind) => {
                    return Ok((kind.try_into()?, pubkey.ok_or("a note without a pubkey")?));
                }
                _ => {}
            }
        }
        Err("a note without a kind".into())
    }
}

fn each_value<'a>(
    note: &Note<'a>,
    mut use_it: impl FnMut(StringType<'a>),
) -> Result<(), notepack::Error> {
    let mut tags = note.tags.clone();
    while let Some(mut values) = tags.next_tag()? {
        for value in &mut values {
            use_it(value?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::claims;

    use super::*;

    #[test]
    fn the_claims_hold() {
        claims::assert_claims::<Notepack>();
        claims::assert_fields::<Notepack>();
    }
}
