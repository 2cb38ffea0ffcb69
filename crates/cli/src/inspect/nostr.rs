//! Nostr events byte by byte, and the blocks of a container.

use std::io::Write;

use anstyle::Style;
use bumpalo::Bump;
use indicatif::HumanCount;
use kernels::hex;
use nostr::{Event, Limits};
use nostr_formats::container::{Block, Damage, Item, MAX_EVENT_BYTES, StreamReader};
use nostr_formats::{Format, Meaning, Span, notepack};
use serde::Serialize;

use super::refusal::{BrokenInput, InspectError};
use super::text::{counted, write_more};
use super::tree::{FAINT, KEY, quoted};

/// The format in which bytes are an event: one in which its id and signature are right, if there is one, as a schema skips the
/// fields of another.
pub(super) fn detect(bytes: &[u8]) -> Option<Format> {
    if bytes.len() > MAX_EVENT_BYTES {
        return None;
    }
    let (arena, limits) = (Bump::new(), Limits::default());
    let event = |format: &Format| Some((*format, format.decode(bytes, &arena, &limits).ok()?));
    let events: Vec<_> = Format::ALL.iter().filter_map(event).collect();
    let valid = events.iter().find(|(_, event)| event.verify().is_ok());
    valid.or(events.first()).map(|(format, _)| *format)
}

/// The bytes of an event in its string form.
pub(super) fn bytes_of_string(text: &[u8]) -> Result<Vec<u8>, BrokenInput> {
    let arena = Bump::new();
    let text = str::from_utf8(text.trim_ascii()).unwrap_or_default();
    Ok(notepack::bytes_of_string(text, &arena)?.to_vec())
}

/// Shows up to `limit` parts of an event, and whether its id and signature are right.
pub(super) fn write_event(
    format: Format,
    bytes: &[u8],
    limit: usize,
    out: &mut dyn Write,
) -> Result<(), InspectError> {
    let (arena, limits) = (Bump::new(), Limits::default());
    let event = format.decode(bytes, &arena, &limits).map_err(BrokenInput::from)?;
    let (name, len) = (format.name(), HumanCount(bytes.len() as u64));
    let unpacked = if is_packed(format) { "; offsets refer to the unpacked message" } else { "" };
    writeln!(out, "Nostr event in {name}, {len} bytes{unpacked}")?;
    let (mut count, mut written) = (0, Ok(()));
    let explained = format.explain(bytes, &limits, &mut |span: Span<'_>| {
        count += 1;
        if count <= limit && written.is_ok() {
            written = write_span(&span, out);
        }
    });
    explained.map_err(BrokenInput::from)?;
    written?;
    write_more(count, limit, "parts", out)?;
    writeln!(out, "{}", fault(&event).as_deref().unwrap_or("id and signature are valid"))?;
    Ok(())
}

fn write_span(span: &Span<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let Span { offset, bytes, field, meaning } = span;
    let cut = if bytes.len() > SHOWN_BYTES { "…" } else { "" };
    let digits = hex::encode(&bytes[..bytes.len().min(SHOWN_BYTES)]) + cut;
    let (style, text) = match meaning {
        Meaning::Layout(words) => (FAINT, plain(words)),
        Meaning::Integer(value) => (Style::new(), value.to_string()),
        Meaning::Text => (Style::new(), quoted(&String::from_utf8_lossy(bytes))),
        Meaning::Hex => (Style::new(), format!("{} bytes", bytes.len())),
    };
    let field = plain(field);
    writeln!(out, "{offset:>8}  {digits:<33}  {KEY}{field:<12}{KEY:#}  {style}{text}{style:#}")
}

/// Words that may quote strangers, cut and without control characters.
fn plain(words: &str) -> String {
    words
        .chars()
        .take(SHOWN_CHARS)
        .flat_map(char::escape_debug)
        .collect::<String>()
        .replace("\\\"", "\"")
}

fn is_packed(format: Format) -> bool {
    matches!(format, Format::CapnpPacked | Format::CapnpSchemaPacked)
}

/// The fault of the id or the signature.
fn fault(event: &Event<'_>) -> Option<String> {
    event.verify().err().map(|fault| fault.to_string())
}

/// The JSON document of an event, with up to `limit` of its parts.
pub(super) fn event_document(
    format: Format,
    bytes: &[u8],
    limit: usize,
) -> Result<impl Serialize + use<>, BrokenInput> {
    #[derive(Serialize)]
    struct EventDocument {
        format: String,
        bytes: usize,
        /// The fault of the id or the signature.
        fault: Option<String>,
        event: serde_json::Value,
        part_count: usize,
        parts: Vec<PartDocument>,
    }
    let (arena, limits) = (Bump::new(), Limits::default());
    let event = format.decode(bytes, &arena, &limits)?;
    let (mut part_count, mut parts) = (0, Vec::new());
    format.explain(bytes, &limits, &mut |span: Span<'_>| {
        part_count += 1;
        if parts.len() < limit {
            parts.push(PartDocument::new(&span));
        }
    })?;
    let mut json = Vec::new();
    Format::Json.encode(&event, &mut json).map_err(|error| BrokenInput::no_json(&error))?;
    let fault = fault(&event);
    let event = serde_json::from_slice(&json).map_err(|error| BrokenInput::no_json(&error))?;
    let format = format!("nostr-{}", format.name());
    Ok(EventDocument { format, bytes: bytes.len(), fault, event, part_count, parts })
}

#[derive(Serialize)]
struct PartDocument {
    offset: usize,
    bytes: usize,
    field: String,
    /// The kind of bytes: `layout`, `integer`, `text` or `hex`.
    kind: &'static str,
    value: String,
}

impl PartDocument {
    fn new(span: &Span<'_>) -> Self {
        let Span { offset, bytes, field, meaning } = span;
        let (kind, value) = match meaning {
            Meaning::Layout(words) => ("layout", (*words).to_owned()),
            Meaning::Integer(value) => ("integer", value.to_string()),
            Meaning::Text => ("text", String::from_utf8_lossy(bytes).into_owned()),
            Meaning::Hex => ("hex", hex::encode(bytes)),
        };
        Self { offset: *offset, bytes: bytes.len(), field: (*field).to_owned(), kind, value }
    }
}

/// Shows up to `limit` blocks of a container. Damage is refused after all of it is shown.
pub(super) fn write_container(
    bytes: &[u8],
    limit: usize,
    out: &mut dyn Write,
) -> Result<(), InspectError> {
    writeln!(out, "Nostr container, {} bytes", HumanCount(bytes.len() as u64))?;
    let mut blocks = 0;
    let mut events = 0;
    let mut first = None;
    for item in items(bytes) {
        match item {
            Item::Block(block) => {
                blocks += 1;
                events += block.len() as u64;
                if blocks <= limit {
                    let at = block.offset();
                    let number = block.first();
                    let count = block.len();
                    let (format, len) = (block.format().name(), HumanCount(len_of(&block) as u64));
                    writeln!(
                        out,
                        "  block at byte {at}: {count} events from {number} on, {len} bytes of {format}"
                    )?;
                }
            }
            Item::Damage(damage) => {
                writeln!(out, "  damage {damage}")?;
                first.get_or_insert(damage);
            }
        }
    }
    write_more(blocks, limit, "blocks", out)?;
    writeln!(out, "{}, {} events", counted(blocks, "block"), HumanCount(events))?;
    first.map_or(Ok(()), |damage| Err(refusal(&damage).into()))
}

/// The JSON document of a container, with up to `limit` of its blocks.
pub(super) fn container_document(
    bytes: &[u8],
    limit: usize,
) -> Result<impl Serialize + use<>, BrokenInput> {
    #[derive(Serialize)]
    struct ContainerDocument {
        format: &'static str,
        bytes: usize,
        event_count: u64,
        block_count: usize,
        blocks: Vec<BlockDocument>,
    }
    #[derive(Serialize)]
    struct BlockDocument {
        offset: u64,
        /// Bytes of all events.
        bytes: usize,
        /// Number of the first event.
        first: u64,
        event_count: usize,
        event_format: &'static str,
    }
    let mut event_count = 0;
    let mut block_count = 0;
    let mut blocks = Vec::new();
    for item in items(bytes) {
        let block = match item {
            Item::Block(block) => block,
            Item::Damage(damage) => return Err(refusal(&damage)),
        };
        block_count += 1;
        event_count += block.len() as u64;
        if blocks.len() < limit {
            blocks.push(BlockDocument {
                offset: block.offset(),
                bytes: len_of(&block),
                first: block.first(),
                event_count: block.len(),
                event_format: block.format().name(),
            });
        }
    }
    let (format, bytes) = ("nostr-container", bytes.len());
    Ok(ContainerDocument { format, bytes, event_count, block_count, blocks })
}

/// The parts of a container that is in memory.
fn items(bytes: &[u8]) -> impl Iterator<Item = Item> {
    let mut reader = StreamReader::new(bytes);
    // Reading a slice does not fail.
    std::iter::from_fn(move || reader.next_item().ok().flatten())
}

fn len_of(block: &Block) -> usize {
    block.events().map(<[u8]>::len).sum()
}

fn refusal(damage: &Damage) -> BrokenInput {
    BrokenInput::new(usize::try_from(damage.offset).unwrap_or(usize::MAX), damage.fault)
}

/// Bytes and characters shown of a part.
const SHOWN_BYTES: usize = 16;
const SHOWN_CHARS: usize = 200;
