//! The text form of `wireproof inspect`: frames, archives and blocks as trees.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write};

use atproto::corpus;
use atproto::event::{Block, Commit, Decoder, Event, Options, RepoOp};
use bumpalo::Bump;
use codec::car::{self, HashProof};
use codec::{CidRef, cbor};
use indicatif::HumanCount;

use super::Format;
use super::nostr;
use super::refusal::{BrokenInput, InspectError};
use super::tree::{self, FAINT, KEY, STEP};

/// Checks all of `bytes`, and shows up to `limit` frames or blocks. Output before a broken rule stays.
pub(super) fn write(
    format: Format,
    bytes: &[u8],
    limit: usize,
    out: &mut dyn Write,
) -> Result<(), InspectError> {
    let shown = match format {
        Format::Frames => write_frames(bytes, limit, out),
        Format::Frame => write_frame(bytes, limit, out),
        Format::Car => write_car(bytes, limit, out),
        Format::Cbor => write_cbor(bytes, out),
        Format::NostrContainer => nostr::write_container(bytes, limit, out),
        Format::Nostr(format) => nostr::write_event(format, bytes, limit, out),
    };
    out.flush()?;
    shown
}

fn write_frames(bytes: &[u8], limit: usize, out: &mut dyn Write) -> Result<(), InspectError> {
    let frames = corpus::frames(bytes).map_err(BrokenInput::from)?;
    let count = frames.len();
    let mut decoder = Decoder::new(Options::default());
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut unchecked = 0;
    let mut offset = FIRST_FRAME;
    for (index, frame) in frames.enumerate() {
        let event = decoder
            .decode(frame)
            .map_err(|error| BrokenInput::from(error).inside(format!("frame {index}"), offset))?;
        count_kind(&mut kinds, kind_of(&event));
        unchecked += event.blocks().iter().filter(|block| !is_checked(block.proof)).count();
        if index < limit {
            let len = HumanCount(frame.len() as u64);
            writeln!(out, "frame {index} at byte {offset}, {len} bytes: {}", kind_of(&event))?;
            write_event(&event, 0, out)?;
        }
        offset += frame.len() + LENGTH_BYTES;
    }
    write_more(count, limit, "frames", out)?;
    let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let (count, len) = (counted(count, "frame"), HumanCount(bytes.len() as u64));
    writeln!(out, "{count}, {len} bytes, {}: {}", hashes(unchecked), kinds.join(", "))?;
    Ok(())
}

fn write_frame(bytes: &[u8], limit: usize, out: &mut dyn Write) -> Result<(), InspectError> {
    let mut decoder = Decoder::new(Options::default());
    let event = decoder.decode(bytes).map_err(BrokenInput::from)?;
    writeln!(out, "frame, {} bytes: {}", HumanCount(bytes.len() as u64), kind_of(&event))?;
    write_event(&event, limit, out)?;
    Ok(())
}

/// Counts a type of message. Strangers name them: types after the first [`MAX_KINDS`] are counted together.
fn count_kind(kinds: &mut BTreeMap<String, u64>, kind: String) {
    let is_listed = kinds.len() < MAX_KINDS || kinds.contains_key(&kind);
    *kinds.entry(if is_listed { kind } else { "of other types".to_owned() }).or_default() += 1;
}

/// The type of the message, escaped for a terminal.
fn kind_of(event: &Event<'_>) -> String {
    match event.kind() {
        Some(kind) if matches!(event, Event::Unknown(_)) => tree::quoted(kind),
        Some(kind) => kind.to_owned(),
        None if matches!(event, Event::Error(_)) => "error".to_owned(),
        None => "of an unknown operation".to_owned(),
    }
}

/// The fields of an event, and `limit` of its blocks.
fn write_event(event: &Event<'_>, limit: usize, out: &mut dyn Write) -> io::Result<()> {
    match event {
        Event::Commit(commit) => write_commit(commit, limit, out),
        Event::Sync(sync) => {
            field(out, "seq", sync.seq)?;
            field(out, "did", tree::quoted(sync.did))?;
            field(out, "rev", tree::quoted(sync.rev))?;
            field(out, "time", tree::quoted(sync.time))?;
            write_blocks(sync.root, sync.blocks, sync.car, limit, out)
        }
        Event::Identity(identity) => {
            field(out, "seq", identity.seq)?;
            field(out, "did", tree::quoted(identity.did))?;
            optional(out, "handle", identity.handle.map(tree::quoted))?;
            field(out, "time", tree::quoted(identity.time))
        }
        Event::Account(account) => {
            field(out, "seq", account.seq)?;
            field(out, "did", tree::quoted(account.did))?;
            field(out, "active", account.active)?;
            optional(out, "status", account.status.map(tree::quoted))?;
            field(out, "time", tree::quoted(account.time))
        }
        Event::Info(info) => {
            field(out, "name", tree::quoted(info.name))?;
            optional(out, "message", info.message.map(tree::quoted))
        }
        Event::Error(error) => {
            field(out, "error", tree::quoted(error.error))?;
            optional(out, "message", error.message.map(tree::quoted))
        }
        Event::Unknown(unknown) => {
            field(out, "op", unknown.header.op)?;
            let arena = Bump::new();
            let payload = cbor::decode(unknown.payload, &arena);
            tree::write(&payload.expect("the decoder checked it"), STEP, out)
        }
    }
}

fn write_commit(commit: &Commit<'_>, limit: usize, out: &mut dyn Write) -> io::Result<()> {
    field(out, "seq", commit.seq)?;
    field(out, "repo", tree::quoted(commit.repo))?;
    field(out, "rev", tree::quoted(commit.rev))?;
    field(out, "since", commit.since.map_or("null".to_owned(), tree::quoted))?;
    field(out, "commit", tree::cid(commit.commit.as_cid_ref()))?;
    optional(out, "prevData", commit.prev_data.map(|prev| tree::cid(prev.as_cid_ref())))?;
    field(out, "time", tree::quoted(commit.time))?;
    optional(out, "tooBig", commit.too_big.filter(|too_big| *too_big))?;
    optional(out, "rebase", commit.rebase.filter(|rebase| *rebase))?;
    for blob in commit.blobs.unwrap_or_default() {
        field(out, "blob", tree::cid(*blob))?;
    }
    field(out, "ops", commit.ops.len())?;
    commit.ops.iter().try_for_each(|op| write_op(op, out))?;
    write_blocks(commit.root, commit.blocks, commit.car, limit, out)
}

fn write_op(op: &RepoOp<'_>, out: &mut dyn Write) -> io::Result<()> {
    let indent = 2 * STEP;
    write!(out, "{:indent$}{} {}", "", op.action.as_str(), tree::quoted(op.path))?;
    for (label, cid) in [("", op.cid), ("prev ", op.prev)] {
        if let Some(cid) = cid {
            write!(out, " {label}{}", tree::cid(cid))?;
        }
    }
    writeln!(out)?;
    let remark = match op.record {
        Some(Block { value: Some(value), .. }) => return tree::write(value, indent + STEP, out),
        Some(_) => "the record is not canonical DAG-CBOR",
        None if op.cid.is_some() => "the record is not in the blocks",
        None => return Ok(()),
    };
    let indent = indent + STEP;
    writeln!(out, "{:indent$}{FAINT}{remark}{FAINT:#}", "")
}

fn write_blocks(
    root: Option<CidRef<'_>>,
    blocks: &[Block<'_>],
    car: &[u8],
    limit: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let root = root.map_or("no root".to_owned(), |root| format!("root {}", tree::cid(root)));
    let len = HumanCount(car.len() as u64);
    field(out, "blocks", format_args!("{} in a CAR of {len} bytes, {root}", blocks.len()))?;
    for block in blocks.iter().take(limit) {
        write_block_line(2 * STEP, block.cid, block.data, block.proof, out)?;
        if let Some(value) = block.value {
            tree::write(&value, 3 * STEP, out)?;
        }
    }
    if limit > 0 { write_more(blocks.len(), limit, "blocks", out) } else { Ok(()) }
}

fn write_block_line(
    indent: usize,
    cid: CidRef<'_>,
    data: &[u8],
    proof: HashProof,
    out: &mut dyn Write,
) -> io::Result<()> {
    let remark = match proof {
        HashProof::Checked => "",
        HashProof::Trusted => ", hash not checked",
        HashProof::UnknownHash => ", hash function not supported",
    };
    let len = HumanCount(data.len() as u64);
    writeln!(out, "{:indent$}{} {FAINT}{len} bytes{remark}{FAINT:#}", "", tree::cid(cid))
}

fn write_car(bytes: &[u8], limit: usize, out: &mut dyn Write) -> Result<(), InspectError> {
    let blocks = car::Blocks::new(bytes, &car::Options::default()).map_err(BrokenInput::from)?;
    let roots: Vec<_> = blocks.roots().iter().map(tree::cid).collect();
    writeln!(out, "CAR version 1, {} bytes", HumanCount(bytes.len() as u64))?;
    field(out, "roots", if roots.is_empty() { "none".to_owned() } else { roots.join(", ") })?;
    let mut arena = Bump::new();
    let (mut count, mut unchecked) = (0, 0);
    for block in blocks {
        let block = block.map_err(BrokenInput::from)?;
        arena.reset();
        count += 1;
        unchecked += usize::from(!is_checked(block.proof));
        let is_shown = count <= limit;
        if is_shown {
            write_block_line(STEP, block.cid, block.data, block.proof, out)?;
        }
        if block.cid.is_dag_cbor() {
            let value = cbor::decode(block.data, &arena)
                .map_err(|error| BrokenInput::of_block(block.cid, error, block.data_offset()))?;
            if is_shown {
                tree::write(&value, 2 * STEP, out)?;
            }
        }
    }
    write_more(count, limit, "blocks", out)?;
    writeln!(out, "{}, {}", counted(count, "block"), hashes(unchecked))?;
    Ok(())
}

fn write_cbor(bytes: &[u8], out: &mut dyn Write) -> Result<(), InspectError> {
    let arena = Bump::new();
    let value = cbor::decode(bytes, &arena).map_err(BrokenInput::from)?;
    writeln!(out, "CBOR block, {} bytes", HumanCount(bytes.len() as u64))?;
    tree::write(&value, STEP, out)?;
    Ok(())
}

pub(super) fn write_more(
    count: usize,
    limit: usize,
    what: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    if count <= limit {
        return Ok(());
    }
    let left = HumanCount((count - limit) as u64);
    writeln!(out, "  {FAINT}… {left} more {what} (--limit 0 shows all){FAINT:#}")
}

fn is_checked(proof: HashProof) -> bool {
    proof == HashProof::Checked
}

/// Whether all hashes were checked.
fn hashes(unchecked: usize) -> String {
    match unchecked {
        0 => "every hash checked".to_owned(),
        _ => format!("{} with an unsupported hash function", counted(unchecked, "block")),
    }
}

pub(super) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", HumanCount(count as u64))
}

fn field(out: &mut dyn Write, name: &str, value: impl Display) -> io::Result<()> {
    writeln!(out, "{:STEP$}{KEY}{name:<8}{KEY:#} {value}", "")
}

fn optional(out: &mut dyn Write, name: &str, value: Option<impl Display>) -> io::Result<()> {
    value.map_or(Ok(()), |value| field(out, name, value))
}

/// Maximum number of types of messages that are counted one by one.
const MAX_KINDS: usize = 100;
/// Offset of the first frame of a file: after the count and its own length.
pub(super) const FIRST_FRAME: usize = 4 + LENGTH_BYTES;
/// Bytes of the length before a frame.
pub(super) const LENGTH_BYTES: usize = 4;
