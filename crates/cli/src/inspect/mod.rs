//! `wireproof inspect`: shows frames, CAR archives, CBOR blocks and Nostr events, or the rule that bytes break.
//!
//! Bytes that are exactly one Nostr event in one of its formats are taken for one; containers of events and strings `notepack_…`
//! are known by their first bytes. The other formats start differently, so that valid bytes have one of them:
//!
//! | format | first bytes | why no other format starts so |
//! |---|---|---|
//! | frames | `00`, and more bytes | as CBOR it is the integer 0 with trailing bytes; as a CAR a header of no bytes. (The first byte of the count; a file of 2²⁴ frames needs `--as`) |
//! | CBOR block | one canonical item without trailing bytes | a frame is two items; the length prefix of a CAR is an item with trailing bytes |
//! | frame | a canonical map with an integer `op`, then more | the prefix of a CAR is not a map with text keys |
//! | CAR | a varint, then a map with the first key `roots` or `version` | |
//!
//! Other bytes are read as CBOR, whose errors are the most precise.

mod json;
mod nostr;
mod refusal;
mod text;
mod tree;

use std::io;
use std::path::PathBuf;

use atproto::event;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use codec::cbor;
use kernels::varint;
use nostr_formats::Format as NostrFormat;
use nostr_formats::container;

use crate::failure::Failure;
use crate::files;
use crate::output::Output;
use refusal::InspectError;

/// Show the contents of a file of frames, a frame, a CAR, a CBOR block or a Nostr event, or why it is refused.
///
/// `inspect` checks the whole input, even the parts that it does not show: canonical DAG-CBOR, every hash against its
/// CID, every limit. For a Nostr event in any format, it shows every byte with its field and meaning, and whether the
/// id and the signature are right; for a container of events, it shows the blocks. If the input breaks a rule, the
/// command prints the rule, the offset and the bytes around it, and exits with 1.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    /// The file; `-` for standard input.
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Print one JSON document instead of a tree, with links as {"$link": …} and bytes as {"$bytes": …}.
    #[arg(long)]
    json: bool,
    /// Number of frames, blocks, or parts of an event to show; 0 shows all [default: 10; 500 for an event; all with
    /// --json].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// The format of the input [default: detected].
    #[arg(long = "as", value_name = "FORMAT", value_parser = format())]
    format: Option<Format>,
}

/// The formats of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Frames,
    Frame,
    Car,
    Cbor,
    NostrContainer,
    Nostr(NostrFormat),
}

fn format() -> impl TypedValueParser<Value = Format> {
    let named = [
        PossibleValue::new("frames").alias("corpus").help("A file of frames"),
        PossibleValue::new("frame").help("One frame of an event stream"),
        PossibleValue::new("car").help("A CAR v1 archive"),
        PossibleValue::new("cbor").help("One DAG-CBOR item"),
        PossibleValue::new("nostr-container").help("A container of Nostr events"),
    ];
    let events = NostrFormat::ALL.iter().map(|format| PossibleValue::new(nostr_name(*format)));
    PossibleValuesParser::new(named.into_iter().chain(events)).map(|name| match name.as_str() {
        "frames" | "corpus" => Format::Frames,
        "frame" => Format::Frame,
        "car" => Format::Car,
        "cbor" => Format::Cbor,
        "nostr-container" => Format::NostrContainer,
        name => {
            let mut formats = NostrFormat::ALL.iter();
            let named = formats.find(|format| nostr_name(**format) == name);
            Format::Nostr(*named.expect("one of the possible values"))
        }
    })
}

/// The name of the format of one Nostr event.
fn nostr_name(format: NostrFormat) -> String {
    format!("nostr-{}", format.name())
}

pub(crate) fn run(args: &InspectArgs, output: Output) -> Result<(), Failure> {
    output.or_failure_document(args.json, inspect(args, output))
}

fn inspect(args: &InspectArgs, output: Output) -> Result<(), Failure> {
    let (bytes, name) = (files::read(&args.file)?, files::name(&args.file));
    files::refuse_wrapping(&name, &bytes)?;
    let is_string = matches!(args.format, None | Some(Format::Nostr(NostrFormat::Notepack)))
        && bytes.starts_with(STRING_START);
    let bytes = if is_string {
        let of_string = nostr::bytes_of_string(&bytes);
        of_string.map_err(|refusal| Failure::refused(&args.file, refusal))?
    } else {
        bytes
    };
    let format = args.format.unwrap_or_else(|| detect(&bytes));
    let limit = match args.limit {
        None if !args.json && matches!(format, Format::Nostr(_)) => SHOWN_PARTS,
        None if !args.json => SHOWN,
        None | Some(0) => usize::MAX,
        Some(limit) => limit,
    };
    let shown = if args.json {
        json::write(format, &bytes, limit, &mut output.stdout())
    } else {
        text::write(format, &bytes, limit, &mut io::BufWriter::new(output.stdout()))
    };
    shown.map_err(|error| match error {
        InspectError::Output(error) => error.into(),
        InspectError::Refused(refusal) => {
            let mut message = format!("{name}: {refusal}\n{}", refusal.bytes_around(&bytes));
            if args.format.is_none() {
                let format = format.description();
                message += &format!("\nRead as {format}; --as FORMAT reads another format.");
            }
            Failure::Refused(message)
        }
    })
}

/// Detects the format: an event by all bytes, others by the first.
fn detect(bytes: &[u8]) -> Format {
    if container::is_container(bytes) {
        Format::NostrContainer
    } else if let Some(format) = nostr::detect(bytes) {
        Format::Nostr(format)
    } else if bytes.len() > 1 && bytes[0] == 0 {
        Format::Frames
    } else if cbor::validate(bytes).is_ok() {
        Format::Cbor
    } else if event::peek(bytes).is_ok() {
        Format::Frame
    } else if starts_like_a_car(bytes) {
        Format::Car
    } else {
        Format::Cbor
    }
}

fn starts_like_a_car(bytes: &[u8]) -> bool {
    let Ok((_, prefix)) = varint::read(bytes) else { return false };
    let Some((head, keys)) = bytes[prefix..].split_first() else { return false };
    let is_map = (0xa1..=0xb7).contains(head);
    is_map && (keys.starts_with(b"\x65roots") || keys.starts_with(b"\x67version"))
}

impl Format {
    fn description(self) -> &'static str {
        match self {
            Self::Frames => "a file of frames",
            Self::Frame => "a frame",
            Self::Car => "a CAR",
            Self::Cbor => "a CBOR block",
            Self::NostrContainer => "a container of Nostr events",
            Self::Nostr(_) => "a Nostr event",
        }
    }
}

/// Frames or blocks shown without `--limit`.
const SHOWN: usize = 10;
/// Parts of an event shown without `--limit`.
const SHOWN_PARTS: usize = 500;

/// The start of an event in its string form.
const STRING_START: &[u8] = b"notepack_";

const EXAMPLES: &str = "\
Examples:
  wireproof inspect repository.car
  wireproof inspect firehose-frames.bin --limit 3
  wireproof inspect frame.bin --json | jq .ops
  wireproof nostr get events.nostr 7 --to msgpack | wireproof inspect -
  curl -s \"$PDS/xrpc/com.atproto.sync.getRepo?did=$DID\" | wireproof inspect -";

#[cfg(test)]
mod tests {
    use atproto::corpus;
    use atproto::event::{Event, Info};
    use codec::car;
    use codec::cid::{Cid, Codec};

    use super::*;

    #[test]
    fn each_format_is_distinguished_from_the_others_whatever_its_content() {
        let frame = Event::Info(Info { name: "OutdatedCursor", message: None }).to_frame();
        assert_eq!(detect(&frame), Format::Frame);
        assert_eq!(detect(&corpus::write([frame.as_slice()])), Format::Frames);
        assert_eq!(detect(&corpus::write([])), Format::Frames);
        for item in
            [&b"\xa1\x62op\x01"[..], b"\x00", b"\x3a\x01\x02\x03\x04", b"\xa1\x60\xa1\x65roots\x80"]
        {
            assert_eq!(detect(item), Format::Cbor, "{item:02x?}");
        }
    }

    #[test]
    fn an_event_is_recognized_in_every_format() {
        use ::nostr::{Limits, example};
        use bumpalo::Bump;
        let arena = Bump::new();
        let json = example::JSON.as_bytes();
        let event = NostrFormat::Json.decode(json, &arena, &Limits::default()).unwrap();
        for format in NostrFormat::ALL {
            let mut bytes = Vec::new();
            format.encode(&event, &mut bytes).unwrap();
            let Format::Nostr(found) = detect(&bytes) else { panic!("{}", format.name()) };
            // Without values of digits, two schemas of Protocol Buffers are the same.
            let [found, name] = [found.name(), format.name()];
            assert!(found == name || name.strip_suffix("-hex") == Some(found), "{name}: {found}");
            bytes.pop();
            assert!(!matches!(detect(&bytes), Format::Nostr(_)), "{name}");
        }
    }

    #[test]
    fn an_archive_is_recognized_with_any_number_of_roots() {
        let root = Cid::of(Codec::DagCbor, b"\xa0");
        for count in 0..600 {
            let mut archive = car::Writer::new(Vec::new(), &vec![root; count]).unwrap();
            archive.block(&root, b"\xa0").unwrap();
            assert_eq!(detect(&archive.into_inner()), Format::Car, "{count} roots");
        }
    }

    #[test]
    fn bytes_of_no_format_are_read_as_cbor() {
        for bytes in [&b""[..], b"\xff", b"<html>", b"\xa2\x61a"] {
            assert_eq!(detect(bytes), Format::Cbor, "{bytes:02x?}");
        }
    }
}
