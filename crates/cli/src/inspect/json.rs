//! The JSON document of `wireproof inspect`. Values are in the JSON form of the AT Protocol's data model.

use std::io::Write;

use atproto::corpus;
use atproto::event::{Block, Decoder, Event, Options, RepoOp};
use bumpalo::Bump;
use codec::CidRef;
use codec::car::{self, HashProof};
use codec::cbor::{self, Value};
use codec::json::Json;
use codec::printable::escape_json;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::Format;
use super::nostr;
use super::refusal::{BrokenInput, InspectError};
use super::text::{FIRST_FRAME, LENGTH_BYTES};
use crate::json::{InvalidBytes, RecordPath};

/// Checks all of `bytes`, then writes up to `limit` frames or blocks. Writes nothing if a rule is broken.
pub(super) fn write(
    format: Format,
    bytes: &[u8],
    limit: usize,
    out: &mut dyn Write,
) -> Result<(), InspectError> {
    let mut json = match format {
        Format::Frames => frames_document(bytes, limit),
        Format::Frame => frame_document(bytes, limit),
        Format::Car => car_document(bytes, limit),
        Format::Cbor => cbor_document(bytes),
        Format::NostrContainer => to_json(&nostr::container_document(bytes, limit)?),
        Format::Nostr(format) => to_json(&nostr::event_document(format, bytes, limit)?),
    }?;
    json.push(b'\n');
    Ok(out.write_all(&json)?)
}

fn frames_document(bytes: &[u8], limit: usize) -> Result<Vec<u8>, BrokenInput> {
    let frames = corpus::frames(bytes)?;
    let mut decoder = Decoder::new(Options::default());
    let mut json = format!("{{\"format\":\"frames\",\"frame_count\":{},\"frames\":[", frames.len())
        .into_bytes();
    let mut offset = FIRST_FRAME;
    for (index, frame) in frames.enumerate() {
        let inside = |refusal: BrokenInput| refusal.inside(format!("frame {index}"), offset);
        let event = decoder.decode(frame).map_err(|error| inside(error.into()))?;
        if index < limit {
            let document = FrameDocument { event: &event, bytes: frame.len(), limit: usize::MAX };
            let separator = if index > 0 { "," } else { "" };
            json.extend(separator.as_bytes());
            json.extend(to_json(&document).map_err(inside)?);
        }
        offset += frame.len() + LENGTH_BYTES;
    }
    json.extend(b"]}");
    Ok(json)
}

fn frame_document(bytes: &[u8], limit: usize) -> Result<Vec<u8>, BrokenInput> {
    let mut decoder = Decoder::new(Options::default());
    let event = decoder.decode(bytes)?;
    to_json(&FrameDocument { event: &event, bytes: bytes.len(), limit })
}

fn car_document(bytes: &[u8], limit: usize) -> Result<Vec<u8>, BrokenInput> {
    #[derive(Serialize)]
    struct CarDocument {
        format: &'static str,
        version: u8,
        bytes: usize,
        roots: Vec<String>,
        block_count: usize,
        blocks: Vec<BlockDocument>,
    }
    let archive = car::read(bytes, &car::Options::default())?;
    let arena = Bump::new();
    let mut blocks = Vec::new();
    for block in &archive.blocks {
        let in_block = |error| BrokenInput::of_block(block.cid, error, block.data_offset());
        if blocks.len() < limit {
            let value = block.cid.is_dag_cbor().then(|| cbor::decode(block.data, &arena));
            let value = value.transpose().map_err(in_block)?;
            blocks.push(BlockDocument::new(block.cid, block.data, block.proof, value.as_ref()));
        } else if block.cid.is_dag_cbor() {
            cbor::validate(block.data).map_err(in_block)?;
        }
    }
    to_json(&CarDocument {
        format: "car",
        version: 1,
        bytes: bytes.len(),
        roots: archive.roots.iter().map(|root| root.to_string()).collect(),
        block_count: archive.blocks.len(),
        blocks,
    })
}

fn cbor_document(bytes: &[u8]) -> Result<Vec<u8>, BrokenInput> {
    let arena = Bump::new();
    let value = cbor::decode(bytes, &arena)?;
    to_json(&Json(&value))
}

fn to_json(document: &impl Serialize) -> Result<Vec<u8>, BrokenInput> {
    let mut json = serde_json::to_vec(document).map_err(|error| BrokenInput::no_json(&error))?;
    escape_json(&mut json, 0);
    Ok(json)
}

/// A frame with the fields of its event, by the keys that all commands share.
struct FrameDocument<'e, 'a> {
    event: &'e Event<'a>,
    bytes: usize,
    /// Maximum number of blocks to write.
    limit: usize,
}

impl Serialize for FrameDocument<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("format", "frame")?;
        map.serialize_entry("bytes", &self.bytes)?;
        map.serialize_entry("kind", self.event.kind_name())?;
        self.fields(&mut map)?;
        map.end()
    }
}

impl FrameDocument<'_, '_> {
    fn fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self.event {
            Event::Commit(commit) => {
                let ops: Vec<_> = commit.ops.iter().map(OpDocument::new).collect();
                map.serialize_entry("seq", &commit.seq)?;
                map.serialize_entry("did", commit.repo)?;
                map.serialize_entry("rev", commit.rev)?;
                map.serialize_entry("since", &commit.since)?;
                map.serialize_entry("commit", &commit.commit.to_string())?;
                map.serialize_entry("prev_data", &commit.prev_data.map(|cid| cid.to_string()))?;
                map.serialize_entry("time", commit.time)?;
                map.serialize_entry("ops", &ops)?;
                self.blocks(commit.root, commit.blocks, map)
            }
            Event::Sync(sync) => {
                map.serialize_entry("seq", &sync.seq)?;
                map.serialize_entry("did", sync.did)?;
                map.serialize_entry("rev", sync.rev)?;
                map.serialize_entry("time", sync.time)?;
                self.blocks(sync.root, sync.blocks, map)
            }
            Event::Identity(identity) => {
                map.serialize_entry("seq", &identity.seq)?;
                map.serialize_entry("did", identity.did)?;
                map.serialize_entry("handle", &identity.handle)?;
                map.serialize_entry("time", identity.time)
            }
            Event::Account(account) => {
                map.serialize_entry("seq", &account.seq)?;
                map.serialize_entry("did", account.did)?;
                map.serialize_entry("active", &account.active)?;
                map.serialize_entry("status", &account.status)?;
                map.serialize_entry("time", account.time)
            }
            Event::Info(info) => {
                map.serialize_entry("name", info.name)?;
                map.serialize_entry("message", &info.message)
            }
            Event::Error(error) => {
                map.serialize_entry("name", error.error)?;
                map.serialize_entry("message", &error.message)
            }
            Event::Unknown(unknown) => {
                let arena = Bump::new();
                let payload = cbor::decode(unknown.payload, &arena);
                let payload = payload.expect("the decoder checked it");
                map.serialize_entry("type", &unknown.header.kind)?;
                map.serialize_entry("op", &unknown.header.op)?;
                let content = JsonContent::of(Some(&payload), unknown.payload);
                map.serialize_entry("payload", &content.value)?;
                content.invalid.map_or(Ok(()), |invalid| map.serialize_entry("invalid", &invalid))
            }
        }
    }

    fn blocks<M: SerializeMap>(
        &self,
        root: Option<CidRef<'_>>,
        blocks: &[Block<'_>],
        map: &mut M,
    ) -> Result<(), M::Error> {
        let shown: Vec<_> = blocks.iter().take(self.limit).map(BlockDocument::of_event).collect();
        map.serialize_entry("root", &root.map(|root| root.to_string()))?;
        map.serialize_entry("block_count", &blocks.len())?;
        map.serialize_entry("blocks", &shown)
    }
}

#[derive(Serialize)]
struct OpDocument<'a> {
    action: &'static str,
    #[serde(flatten)]
    path: RecordPath<&'a str>,
    cid: Option<String>,
    prev: Option<String>,
    record: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid: Option<InvalidBytes>,
}

impl<'a> OpDocument<'a> {
    fn new(op: &RepoOp<'a>) -> Self {
        let content = op.record.map(|record| JsonContent::of(record.value.as_ref(), record.data));
        let JsonContent { value: record, invalid } = content.unwrap_or_default();
        Self {
            action: op.action.as_str(),
            path: RecordPath::split(op.path),
            cid: op.cid.map(|cid| cid.to_string()),
            prev: op.prev.map(|cid| cid.to_string()),
            record,
            invalid,
        }
    }
}

#[derive(Serialize)]
struct BlockDocument {
    cid: String,
    bytes: usize,
    /// Whether the data was checked against the hash in the CID.
    hash: &'static str,
    #[serde(flatten)]
    content: JsonContent,
}

impl BlockDocument {
    fn new(cid: CidRef<'_>, data: &[u8], proof: HashProof, value: Option<&Value<'_>>) -> Self {
        let hash = match proof {
            HashProof::Checked => "checked",
            HashProof::Trusted => "trusted",
            HashProof::UnknownHash => "unknown",
        };
        let content = JsonContent::of(value, data);
        Self { cid: cid.to_string(), bytes: data.len(), hash, content }
    }

    fn of_event(block: &Block<'_>) -> Self {
        Self::new(block.cid, block.data, block.proof, block.value.as_ref())
    }
}

/// A value in its JSON form, or the rule that it breaks and its bytes.
#[derive(Default, Serialize)]
struct JsonContent {
    value: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid: Option<InvalidBytes>,
}

impl JsonContent {
    fn of(value: Option<&Value<'_>>, bytes: &[u8]) -> Self {
        match value.map(|value| to_raw_value(&Json(value))) {
            None => Self::default(),
            Some(Ok(json)) => Self { value: Some(json), invalid: None },
            Some(Err(error)) => {
                Self { value: None, invalid: Some(InvalidBytes::without_json(&error, bytes)) }
            }
        }
    }
}
