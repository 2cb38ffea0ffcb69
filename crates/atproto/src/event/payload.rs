//! Reading payloads: the fields of a message in one pass over its map, and the CAR slice in it.

use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;
use codec::car::{self, Sections};
use codec::cbor::{self, KeyOrder, Reader, Value};
use codec::{Cid, CidRef};

use super::error::{FrameError, FrameFault, fail};
use super::{
    Account, Action, Block, BlockIndex, Commit, ErrorFrame, Event, Header, Identity, Info, Options,
    RepoOp, Sync, Unknown, Values, sort_by_cid,
};
use crate::{commit, node_shape};

/// Reads the payload that follows `header`, to the end of the frame.
pub(super) fn read<'a>(
    header: Header<'a>,
    mut reader: Reader<'a>,
    options: &Options,
    arena: &'a Bump,
) -> Result<Event<'a>, FrameError> {
    let payload = reader.rest();
    let context = Context { start: reader.offset(), options, arena };
    let event = match (header.op, header.kind) {
        (Header::MESSAGE, Some("#commit")) => Event::Commit(commit(&mut reader, context)?),
        (Header::MESSAGE, Some("#sync")) => Event::Sync(sync(&mut reader, context)?),
        (Header::MESSAGE, Some("#identity")) => Event::Identity(identity(&mut reader, context)?),
        (Header::MESSAGE, Some("#account")) => Event::Account(account(&mut reader, context)?),
        (Header::MESSAGE, Some("#info")) => Event::Info(info(&mut reader, context)?),
        (Header::ERROR, _) => Event::Error(stream_error(&mut reader, context)?),
        _ => {
            reader.skip()?;
            Event::Unknown(Unknown { header, payload })
        }
    };
    reader.finish()?;
    Ok(event)
}

/// The arguments of reading a payload.
#[derive(Clone, Copy)]
struct Context<'o, 'a> {
    /// Offset of the payload in the frame, for faults of the whole.
    start: usize,
    options: &'o Options,
    arena: &'a Bump,
}

impl Context<'_, '_> {
    #[inline]
    fn required<T>(self, field: Option<T>, name: &'static str) -> Result<T, FrameError> {
        match field {
            Some(value) => Ok(value),
            None => fail(self.start, FrameFault::Missing(name)),
        }
    }
}

fn commit<'a>(reader: &mut Reader<'a>, context: Context<'_, 'a>) -> Result<Commit<'a>, FrameError> {
    let mut seq = None;
    let mut repo = None;
    let mut commit = None;
    let mut rev = None;
    let mut since = None;
    let mut blocks = None;
    let mut ops = None;
    let mut prev_data = None;
    let mut time = None;
    let mut blobs = None;
    let mut rebase = None;
    let mut too_big = None;
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            "ops" => ops = Some(read_ops(reader, context)?),
            "rev" => rev = Some(reader.text()?),
            "seq" => seq = Some(reader.integer()?),
            "repo" => repo = Some(reader.text()?),
            "time" => time = Some(reader.text()?),
            "blobs" => blobs = read_blobs(reader, context)?,
            "since" => since = Some(nullable(reader, Reader::text)?),
            "blocks" => blocks = Some(read_car_slice(reader, context)?),
            "commit" => commit = Some(read_tree_link(reader, "commit")?),
            "rebase" => rebase = nullable(reader, Reader::boolean)?,
            "tooBig" => too_big = nullable(reader, Reader::boolean)?,
            "prevData" => {
                prev_data = nullable(reader, |reader| read_tree_link(reader, "prevData"))?
            }
            _ => reader.skip()?,
        }
    }
    let CarSlice { car, root, blocks } = context.required(blocks, "blocks")?;
    let ops = context.required(ops, "ops")?;
    assign_records(ops, blocks, context)?;
    Ok(Commit {
        seq: context.required(seq, "seq")?,
        repo: context.required(repo, "repo")?,
        commit: owned(context.required(commit, "commit")?),
        rev: context.required(rev, "rev")?,
        since: context.required(since, "since")?,
        car,
        root,
        blocks,
        ops,
        prev_data: prev_data.map(owned),
        time: context.required(time, "time")?,
        blobs,
        rebase,
        too_big,
    })
}

fn read_ops<'a>(
    reader: &mut Reader<'a>,
    context: Context<'_, 'a>,
) -> Result<&'a mut [RepoOp<'a>], FrameError> {
    let start = reader.offset();
    let count = reader.array()?;
    if count > context.options.max_ops {
        return fail(start, FrameFault::OpsLimit(context.options.max_ops));
    }
    context.arena.alloc_slice_try_fill_with(count, |_| read_op(reader))
}

fn read_op<'a>(reader: &mut Reader<'a>) -> Result<RepoOp<'a>, FrameError> {
    let start = reader.offset();
    let mut action = None;
    let mut path = None;
    let mut cid = None;
    let mut prev = None;
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            "cid" => cid = Some(nullable(reader, Reader::link)?),
            "path" => path = Some(reader.text()?),
            "prev" => prev = nullable(reader, Reader::link)?,
            "action" => action = Some(read_action(reader)?),
            _ => reader.skip()?,
        }
    }
    let missing = |name| FrameError { offset: start, fault: FrameFault::Missing(name) };
    let action = action.ok_or_else(|| missing("action"))?;
    // A delete has no record to name, so that relays which leave out nulls send it without the field.
    let cid = cid.or((action == Action::Delete).then_some(None));
    Ok(RepoOp {
        action,
        path: path.ok_or_else(|| missing("path"))?,
        cid: cid.ok_or_else(|| missing("cid"))?,
        prev,
        record: None,
    })
}

fn read_action(reader: &mut Reader<'_>) -> Result<Action, FrameError> {
    let start = reader.offset();
    let action = Action::parse(reader.text()?);
    action.map_or_else(|| fail(start, FrameFault::Field("action")), Ok)
}

/// Reads the deprecated list of blobs, whose contents the protocol tells readers to ignore: anything but a list of links counts as
/// absent.
fn read_blobs<'a>(
    reader: &mut Reader<'a>,
    context: Context<'_, 'a>,
) -> Result<Option<&'a [CidRef<'a>]>, FrameError> {
    let start = reader.clone();
    if let Ok(links) = read_links(reader, context) {
        return Ok(Some(links));
    }
    *reader = start;
    reader.skip()?;
    Ok(None)
}

fn read_links<'a>(
    reader: &mut Reader<'a>,
    context: Context<'_, 'a>,
) -> Result<&'a [CidRef<'a>], FrameError> {
    let count = reader.array()?;
    Ok(context.arena.alloc_slice_try_fill_with(count, |_| reader.link())?)
}

/// Reads a link, which must name DAG-CBOR under SHA-256.
fn read_tree_link<'a>(
    reader: &mut Reader<'a>,
    name: &'static str,
) -> Result<CidRef<'a>, FrameError> {
    let start = reader.offset();
    let cid = reader.link()?;
    if cid.is_dag_cbor() { Ok(cid) } else { fail(start, FrameFault::Field(name)) }
}

/// The owned form of a link that [`read_tree_link`] has read.
fn owned(cid: CidRef<'_>) -> Cid {
    cid.to_cid().expect("DAG-CBOR under SHA-256 is blessed")
}

/// Reads a field whose null says as much as its absence.
#[inline]
fn nullable<'a, T, E>(
    reader: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, E>,
) -> Result<Option<T>, E> {
    if reader.take_null() { Ok(None) } else { Ok(Some(read(reader)?)) }
}

/// Assigns the blocks of records to their operations.
fn assign_records<'a>(
    ops: &mut [RepoOp<'a>],
    blocks: &'a [Block<'a>],
    context: Context<'_, 'a>,
) -> Result<(), FrameError> {
    let limit = context.options.max_record_bytes;
    let index = block_index(blocks, ops.len(), context.arena);
    for op in ops {
        op.record = op.cid.and_then(|cid| index.get(cid));
        if op.record.is_some_and(|record| record.data.len() > limit) {
            return fail(context.start, FrameFault::RecordLimit(limit));
        }
    }
    Ok(())
}

fn sync<'a>(reader: &mut Reader<'a>, context: Context<'_, 'a>) -> Result<Sync<'a>, FrameError> {
    let mut seq = None;
    let mut did = None;
    let mut blocks = None;
    let mut rev = None;
    let mut time = None;
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            "did" => did = Some(reader.text()?),
            "rev" => rev = Some(reader.text()?),
            "seq" => seq = Some(reader.integer()?),
            "time" => time = Some(reader.text()?),
            "blocks" => blocks = Some(read_car_slice(reader, context)?),
            _ => reader.skip()?,
        }
    }
    let CarSlice { car, root, blocks } = context.required(blocks, "blocks")?;
    Ok(Sync {
        seq: context.required(seq, "seq")?,
        did: context.required(did, "did")?,
        car,
        root,
        blocks,
        rev: context.required(rev, "rev")?,
        time: context.required(time, "time")?,
    })
}

fn identity<'a>(
    reader: &mut Reader<'a>,
    context: Context<'_, 'a>,
) -> Result<Identity<'a>, FrameError> {
    let mut seq = None;
    let mut did = None;
    let mut time = None;
    let mut handle = None;
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            "did" => did = Some(reader.text()?),
            "seq" => seq = Some(reader.integer()?),
            "time" => time = Some(reader.text()?),
            "handle" => handle = nullable(reader, Reader::text)?,
            _ => reader.skip()?,
        }
    }
    Ok(Identity {
        seq: context.required(seq, "seq")?,
        did: context.required(did, "did")?,
        time: context.required(time, "time")?,
        handle,
    })
}

fn account<'a>(
    reader: &mut Reader<'a>,
    context: Context<'_, 'a>,
) -> Result<Account<'a>, FrameError> {
    let mut seq = None;
    let mut did = None;
    let mut time = None;
    let mut active = None;
    let mut status = None;
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            "did" => did = Some(reader.text()?),
            "seq" => seq = Some(reader.integer()?),
            "time" => time = Some(reader.text()?),
            "active" => active = Some(reader.boolean()?),
            "status" => status = nullable(reader, Reader::text)?,
            _ => reader.skip()?,
        }
    }
    Ok(Account {
        seq: context.required(seq, "seq")?,
        did: context.required(did, "did")?,
        time: context.required(time, "time")?,
        active: context.required(active, "active")?,
        status,
    })
}

fn info<'a>(reader: &mut Reader<'a>, context: Context<'_, 'a>) -> Result<Info<'a>, FrameError> {
    let (name, message) = name_and_message(reader, "name")?;
    Ok(Info { name: context.required(name, "name")?, message })
}

fn stream_error<'a>(
    reader: &mut Reader<'a>,
    context: Context<'_, 'a>,
) -> Result<ErrorFrame<'a>, FrameError> {
    let (error, message) = name_and_message(reader, "error")?;
    Ok(ErrorFrame { error: context.required(error, "error")?, message })
}

type NameAndMessage<'a> = (Option<&'a str>, Option<&'a str>);

fn name_and_message<'a>(
    reader: &mut Reader<'a>,
    name_key: &str,
) -> Result<NameAndMessage<'a>, FrameError> {
    let (mut name, mut message) = (None, None);
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            key if key == name_key => name = Some(reader.text()?),
            "message" => message = nullable(reader, Reader::text)?,
            _ => reader.skip()?,
        }
    }
    Ok((name, message))
}

/// A CAR slice, split and decoded but not hashed.
struct CarSlice<'a> {
    car: &'a [u8],
    root: Option<CidRef<'a>>,
    blocks: &'a [Block<'a>],
}

/// Reads the byte string at the reader as a CAR slice.
fn read_car_slice<'a>(
    reader: &mut Reader<'a>,
    Context { options, arena, .. }: Context<'_, 'a>,
) -> Result<CarSlice<'a>, FrameError> {
    let start = reader.offset();
    let car = reader.bytes()?;
    if car.len() > options.max_blocks_bytes {
        return fail(start, FrameFault::BlocksLimit(options.max_blocks_bytes));
    }
    let car_at = reader.offset() - car.len();
    let in_car = |error| FrameError::in_car(error, car_at);
    let sections = Sections::new(car, &options.car()).map_err(in_car)?;
    let root = sections.roots().first();
    let mut blocks = ArenaVec::with_capacity_in(TYPICAL_BLOCKS, arena);
    for section in sections {
        let section = section.map_err(in_car)?;
        let car::Block { cid, data, .. } = section;
        let proof = options.proof_of(cid);
        blocks.push(Block { cid, data, value: None, is_canonical: false, proof });
        if cid.is_dag_cbor() {
            let block = blocks.last_mut().expect("just pushed");
            block.is_canonical = decode_block(data, options.values, arena, &mut block.value);
        }
    }
    Ok(CarSlice { car, root, blocks: blocks.into_bump_slice() })
}

/// Decodes a block, and returns whether it is canonical: only then it has a value.
#[inline]
fn decode_block<'a>(
    data: &'a [u8],
    values: Values,
    arena: &'a Bump,
    value: &mut Option<Value<'a>>,
) -> bool {
    let decoded = match values {
        Values::Build => cbor::decode_into(data, arena, value.insert(Value::Null)),
        // Most blocks of an event are tree nodes, and these take a third of the time in this way; one is the commit.
        Values::ValidateOnly if node_shape::is_usual(data) || commit::is_usual(data) => Ok(()),
        Values::ValidateOnly => cbor::validate(data),
    };
    if decoded.is_err() {
        *value = None;
    }
    decoded.is_ok()
}

/// An index for this many lookups, in memory of the decoder.
fn block_index<'a>(
    blocks: &'a [Block<'a>],
    lookups: usize,
    arena: &'a Bump,
) -> BlockIndex<'a, &'a [&'a Block<'a>]> {
    if blocks.len() * lookups <= UNSORTED_PAIRS {
        return BlockIndex::Unsorted(blocks);
    }
    let sorted = arena.alloc_slice_fill_iter(blocks);
    sort_by_cid(sorted);
    BlockIndex::Sorted(sorted)
}

/// Up to this many comparisons, looking at every block costs less than sorting.
const UNSORTED_PAIRS: usize = 256;

/// Initial capacity for the blocks of an event: most commits have seven to twelve.
const TYPICAL_BLOCKS: usize = 16;
