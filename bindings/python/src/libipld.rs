//! The functions of the package `libipld`, with its types and its messages, and with hashes checked.

use codec::car::{self, Block, CarError, CarFault, HashProof, Sections};
use codec::cbor::{DecodeError, KeyOrder, Reader, Reason};
use codec::cid::CidRef;
use kernels::varint;
use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyString};
use smallvec::SmallVec;

use crate::encode;
use crate::errors::Class;
use crate::key_cache::KeyCache;
use crate::objects::{self, Fault};
use crate::pause::CollectionPause;

/// Decode one DAG-CBOR item: maps as `dict`, links as the `bytes` of their CIDs.
///
/// Raises:
///     DecodeError: the bytes are not exactly one canonical item.
///     RecursionError: it has more containers inside each other than Python allows.
#[pyfunction]
pub(crate) fn decode_dag_cbor<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let data = content(data)?;
    let _pause = CollectionPause::for_input(py, data.len());
    match KeyCache::using(|keys| objects::decode_prefix(py, data, keys)) {
        Ok((value, len)) if len == data.len() => Ok(value),
        decoded => rarer_dag_cbor(py, data, decoded),
    }
}

/// The end of [`decode_dag_cbor`] where there is more or less than one item, or one with many containers inside each other.
#[cold]
fn rarer_dag_cbor<'py>(
    py: Python<'py>,
    data: &[u8],
    decoded: Result<(Bound<'py, PyAny>, usize), Fault>,
) -> PyResult<Bound<'py, PyAny>> {
    let decoded = decoded.or_else(|fault| deeper(py, data, 0, fault));
    let fault = match decoded {
        Ok((value, len)) if len == data.len() => return Ok(value),
        Ok((_, len)) => Fault::at(len, Reason::TrailingBytes),
        Err(fault) => fault,
    };
    Err(fault.raise(py, data, DECODE_FAILED))
}

/// Decode DAG-CBOR items that follow each other, such as the header and the payload of a frame.
///
/// Raises:
///     DecodeError: an item is not canonical.
#[pyfunction]
pub(crate) fn decode_dag_cbor_multi<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    let data = content(data)?;
    let _pause = CollectionPause::for_input(py, data.len());
    let (values, mut at) = (PyList::empty(py), 0);
    while at < data.len() {
        let (value, len) =
            prefix(py, data, at).map_err(|fault| fault.raise(py, data, DECODE_FAILED))?;
        values.append(value)?;
        at += len;
    }
    Ok(values)
}

/// Encode an object as canonical DAG-CBOR. `bytes` that are a CID become a link.
///
/// Raises:
///     ValueError: the object, or something in it, has no form in DAG-CBOR.
///     RecursionError: it has more containers inside each other than Python allows.
#[pyfunction]
pub(crate) fn encode_dag_cbor<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    encode::encode(data, || recursion_limit(py))
}

/// Decode a CAR archive of DAG-CBOR blocks: its header, and each block by the bytes of its CID.
///
/// Args:
///     data: the archive as `bytes`.
///     verify: compare the SHA-256 of each block with its CID, and each length with what it frames. `False` is what libipld does.
///
/// Raises:
///     CarError: the archive is malformed, or a block has another hash.
#[pyfunction]
#[pyo3(signature = (data, *, verify = true))]
pub(crate) fn decode_car<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    verify: bool,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    let data = content(data)?;
    let _pause = CollectionPause::for_input(py, data.len());
    match KeyCache::using(|keys| strict_car(py, data, verify, keys)) {
        Ok(decoded) => Ok(decoded),
        Err(refusal) => refused_car(py, data, verify, refusal),
    }
}

/// Why [`strict_car`] does not decode an archive.
enum Refusal {
    /// It breaks a rule.
    Car(CarError),
    /// A block is not one item of DAG-CBOR, at this place.
    Block(usize, Fault),
    /// It has no roots, or a block under another codec.
    NotLibipld,
    Raised(PyErr),
}

impl From<CarError> for Refusal {
    fn from(error: CarError) -> Self {
        Self::Car(error)
    }
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

/// Decodes an archive whose every length and, with `verify`, every hash is right. Blocks are hashed some at a time and
/// decoded then; nothing is kept of a block but its object.
fn strict_car<'py>(
    py: Python<'py>,
    data: &[u8],
    verify: bool,
    keys: &KeyCache,
) -> Result<(Bound<'py, PyAny>, Bound<'py, PyDict>), Refusal> {
    let sections = Sections::new(data, &car::Options::default())?;
    if sections.roots().is_empty() {
        return Err(Refusal::NotLibipld);
    }
    let mut sections = sections.filter(|section| !is_cut(data, section));
    let (_, header_at) = varint::read(data).map_err(|_| Refusal::NotLibipld)?;
    let header = objects::decode_prefix(py, &data[header_at..], keys);
    let (header, _) = header.map_err(|fault| Refusal::Block(header_at, fault))?;
    let blocks = PyDict::new(py);
    if !verify {
        for block in sections {
            add_block(py, &blocks, &block?, keys)?;
        }
        return Ok((header, blocks));
    }
    let mut batch = SmallVec::<[Block<'_>; BATCH]>::new();
    loop {
        batch.clear();
        for block in sections.by_ref().take(BATCH) {
            batch.push(block?);
        }
        if data.len() < DETACHED_BYTES {
            car::check_hashes(&mut batch)?
        } else {
            py.detach(|| car::check_hashes(&mut batch))?
        }
        for block in &batch {
            if block.proof == HashProof::UnknownHash {
                let message =
                    "Failed to read CAR block. Its CID names another hash function than SHA-256";
                let at = Some(block.offset);
                return Err(Class::Car.error(py, message.to_owned(), "car/hash", at).into());
            }
            add_block(py, &blocks, block, keys)?;
        }
        if batch.len() < BATCH {
            return Ok((header, blocks));
        }
    }
}

/// Whether this is the fault of an archive that ends inside a length. As for libipld, it ends before it: it was cut between
/// two blocks.
#[inline]
fn is_cut(data: &[u8], section: &Result<Block<'_>, CarError>) -> bool {
    let Err(CarError { offset, fault: CarFault::Truncated }) = section else { return false };
    let rest = data.get(*offset as usize..).unwrap_or_default();
    !rest.is_empty() && rest.iter().all(|byte| byte & 0x80 != 0)
}

/// Adds the object of a block.
#[inline]
fn add_block(
    py: Python<'_>,
    blocks: &Bound<'_, PyDict>,
    block: &Block<'_>,
    keys: &KeyCache,
) -> Result<(), Refusal> {
    if block.cid.as_bytes().get(1) != Some(&DAG_CBOR) {
        return Err(Refusal::NotLibipld);
    }
    let decoded = match objects::decode_prefix(py, block.data, keys) {
        Err(fault) => deeper(py, block.data, 0, fault),
        decoded => decoded,
    };
    let at = block.data_offset();
    let fault = match decoded {
        Ok((value, len)) if len == block.data.len() => {
            blocks.set_item(PyBytes::new(py, block.cid.as_bytes()), value)?;
            return Ok(());
        }
        Ok((_, len)) => Fault::at(len, Reason::TrailingBytes),
        Err(fault) => fault,
    };
    Err(Refusal::Block(at, fault))
}

/// The end of [`decode_car`] for an archive that is refused: libipld ignores lengths and decodes some of them, and names the
/// faults of others, in its words. Unverified blocks are not returned where verification was asked for.
#[cold]
fn refused_car<'py>(
    py: Python<'py>,
    data: &[u8],
    verify: bool,
    refusal: Refusal,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    if let Refusal::Raised(error) = refusal {
        return Err(error);
    }
    let decoded = tolerant_car(py, data)?;
    if !verify {
        return Ok(decoded);
    }
    Err(match refusal {
        Refusal::Car(fault) => car_error(py, fault),
        Refusal::Block(at, fault) => fault.after(at).raise(py, data, BLOCK_FAILED),
        Refusal::NotLibipld => header_error(py, "Invalid header"),
        Refusal::Raised(error) => error,
    })
}

/// Decodes as libipld does: lengths are ignored, and bytes that cannot be a length end the archive.
fn tolerant_car<'py>(
    py: Python<'py>,
    data: &[u8],
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    let (_, mut at) = varint::read(data).map_err(|_| header_error(py, "Invalid uvarint"))?;
    let header = prefix(py, data, at).map_err(|_| header_error(py, "Invalid DAG-CBOR"))?;
    at += header.1;
    check_header(py, &header.0)?;
    let blocks = PyDict::new(py);
    while let Ok((_, len)) = varint::read(&data[at..]) {
        at += len;
        let Some((cid, _)) = CidRef::from_prefix(&data[at..]) else {
            return Err(error(py, at, "Failed to read CID of block. Invalid CID", "car/cid"));
        };
        if cid.as_bytes().get(1) != Some(&DAG_CBOR) {
            let message = "Failed to read CAR block. Unsupported codec. For now we support only DAG-CBOR (0x71)";
            return Err(error(py, at, message, "car/codec"));
        }
        at += cid.as_bytes().len();
        let decoded = prefix(py, data, at);
        let (value, len) = decoded.map_err(|fault| fault.raise(py, data, BLOCK_FAILED))?;
        blocks.set_item(PyBytes::new(py, cid.as_bytes()), value)?;
        at += len;
    }
    Ok((header.0, blocks))
}

fn check_header(py: Python<'_>, header: &Bound<'_, PyAny>) -> PyResult<()> {
    let Ok(header) = header.cast::<PyDict>() else {
        return Err(header_error(py, "Header must be a map"));
    };
    let Some(version) = header.get_item("version")? else {
        return Err(header_error(py, "Version is None"));
    };
    if version.extract::<u64>().ok() != Some(1) {
        return Err(header_error(py, "Unsupported version. Version must be 1"));
    }
    let Some(roots) = header.get_item("roots")? else {
        return Err(header_error(py, "Roots is None"));
    };
    match roots.cast::<PyList>() {
        Err(_) => Err(header_error(py, "Roots must be a list")),
        Ok(roots) if roots.is_empty() => {
            Err(header_error(py, "Roots is empty. Must be at least one"))
        }
        Ok(_) => Ok(()),
    }
}

fn header_error(py: Python<'_>, what: &str) -> PyErr {
    error(py, 0, &format!("Failed to read CAR header. {what}"), "car/header")
}

fn error(py: Python<'_>, at: usize, message: &str, code: &str) -> PyErr {
    Class::Car.error(py, message.to_owned(), code, Some(at as u64))
}

fn car_error(py: Python<'_>, error: CarError) -> PyErr {
    let message = format!("Failed to read CAR. {error}");
    Class::Car.error(py, message, error.fault.code(), Some(error.offset))
}

/// Decode a CID from its text or its bytes: `version`, `codec`, and `hash` with `code`, `size` and `digest`.
///
/// Raises:
///     ValueError: it is not a CID.
#[pyfunction]
pub(crate) fn decode_cid<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let bytes = cid_bytes(data)?;
    let parts = CidParts::of(&bytes).ok_or_else(|| cid_error("Invalid CID"))?;
    let (cid, hash) = (PyDict::new(py), PyDict::new(py));
    hash.set_item("code", parts.hash_function)?;
    hash.set_item("size", parts.digest.len())?;
    hash.set_item("digest", PyBytes::new(py, parts.digest))?;
    cid.set_item("version", parts.version)?;
    cid.set_item("codec", parts.codec)?;
    cid.set_item("hash", hash)?;
    Ok(cid)
}

/// Encode a CID as text: base32 for version 1, base58 for version 0.
///
/// Raises:
///     ValueError: it is not a CID.
#[pyfunction]
pub(crate) fn encode_cid(data: &Bound<'_, PyAny>) -> PyResult<String> {
    let bytes = cid_bytes(data)?;
    let cid = CidRef::from_bytes(&bytes).ok_or_else(|| cid_error("Invalid CID"))?;
    Ok(cid.to_string())
}

/// The bytes of a CID that is given as text or as bytes.
fn cid_bytes(data: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    match data.cast::<PyString>() {
        Ok(text) => {
            let text = text.to_str()?;
            let decoded = if text.len() == 46 && text.starts_with("Qm") {
                bs58::decode(text).into_vec().ok()
            } else {
                multibase::decode(text).ok().map(|(_, bytes)| bytes)
            };
            decoded.ok_or_else(|| cid_error("Invalid base string"))
        }
        Err(_) => bytes_of(data).map_err(|_| cid_error("Unsupported data type")),
    }
}

fn cid_error(what: &str) -> PyErr {
    PyValueError::new_err(format!("Failed to decode CID. {what}"))
}

/// The parts of a binary CID.
struct CidParts<'a> {
    version: u64,
    codec: u64,
    hash_function: u64,
    digest: &'a [u8],
}

impl<'a> CidParts<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        CidRef::from_bytes(bytes)?;
        if let Some(digest) = bytes.strip_prefix(&[SHA2_256, 32]) {
            let (codec, hash_function) = (u64::from(DAG_PB), u64::from(SHA2_256));
            return Some(Self { version: 0, codec, hash_function, digest });
        }
        let mut rest = bytes;
        let mut next = || {
            let (number, len) = varint::read(rest).ok()?;
            rest = &rest[len..];
            Some(number)
        };
        let version = next()?;
        let codec = next()?;
        let hash_function = next()?;
        let _ = next()?;
        Some(Self { version, codec, hash_function, digest: rest })
    }
}

/// Decode multibase text: the code of its base, and the bytes.
///
/// Raises:
///     ValueError: the base is unknown, or the text is not of it.
#[pyfunction]
pub(crate) fn decode_multibase<'py>(
    py: Python<'py>,
    data: &str,
) -> PyResult<(char, Bound<'py, PyBytes>)> {
    let failed = |error| PyValueError::new_err(format!("Failed to decode multibase. {error}"));
    let (base, bytes) = multibase::decode(data).map_err(failed)?;
    Ok((base.code(), PyBytes::new(py, &bytes)))
}

/// Encode bytes, or the UTF-8 of text, as multibase. `code` is the letter of the base.
///
/// Raises:
///     ValueError: the base is unknown, or `data` is of another type.
#[pyfunction]
pub(crate) fn encode_multibase(code: char, data: &Bound<'_, PyAny>) -> PyResult<String> {
    let failed =
        |error: String| PyValueError::new_err(format!("Failed to encode multibase. {error}"));
    let bytes = match data.cast::<PyString>() {
        Ok(text) => text.to_str()?.as_bytes().to_vec(),
        Err(_) => bytes_of(data).map_err(|_| failed("Unsupported data type".to_owned()))?,
    };
    let base = multibase::Base::from_code(code).map_err(|error| failed(error.to_string()))?;
    Ok(multibase::encode(base, bytes))
}

/// The content of the argument `data`, in every Python with its name in the error.
fn content<'a>(data: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    match data.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes()),
        Err(_) => {
            let kind = data.get_type().name()?;
            let message = format!("argument 'data': '{kind}' object is not an instance of 'bytes'");
            Err(PyTypeError::new_err(message))
        }
    }
}

/// The content of `bytes` or of a `bytearray`.
fn bytes_of(data: &Bound<'_, PyAny>) -> Result<Vec<u8>, ()> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    data.cast::<PyByteArray>().map(|bytes| bytes.to_vec()).map_err(drop)
}

/// Decodes the item at an offset, and returns its length.
fn prefix<'py>(
    py: Python<'py>,
    data: &[u8],
    at: usize,
) -> Result<(Bound<'py, PyAny>, usize), Fault> {
    let rest = data.get(at..).unwrap_or_default();
    match KeyCache::using(|keys| objects::decode_prefix(py, rest, keys)) {
        Ok(decoded) => Ok(decoded),
        Err(fault) => deeper(py, data, at, fault),
    }
}

/// Decodes the item at an offset if its depth is all that is wrong with it.
#[cold]
fn deeper<'py>(
    py: Python<'py>,
    data: &[u8],
    at: usize,
    fault: Fault,
) -> Result<(Bound<'py, PyAny>, usize), Fault> {
    match fault {
        Fault::Decode(DecodeError { reason: Reason::Depth, .. }) => {
            let max_depth = recursion_limit(py).map_err(Fault::Raised)?;
            let mut reader = Reader::starting_at(data, at);
            let object = deep_object(py, data, &mut reader, 0, max_depth)?;
            Ok((object, reader.offset() - at))
        }
        fault => Err(fault.after(at)),
    }
}

/// Decodes an item with more containers inside each other than records may have.
fn deep_object<'py>(
    py: Python<'py>,
    data: &[u8],
    reader: &mut Reader<'_>,
    depth: usize,
    max_depth: usize,
) -> Result<Bound<'py, PyAny>, Fault> {
    if depth > max_depth {
        let message = "maximum recursion depth exceeded in DAG-CBOR decoding";
        return Err(Fault::Raised(PyRecursionError::new_err(message)));
    }
    match reader.rest().first().map(|head| head >> 5) {
        Some(ARRAY) => {
            let items = PyList::empty(py);
            for _ in 0..reader.array()? {
                let item = deep_object(py, data, reader, depth + 1, max_depth)?;
                items.append(item).map_err(Fault::Raised)?;
            }
            Ok(items.into_any())
        }
        Some(MAP) => {
            let (map, mut keys) = (PyDict::new(py), KeyOrder::new());
            for _ in 0..reader.map()? {
                let key = reader.key(&mut keys)?;
                let value = deep_object(py, data, reader, depth + 1, max_depth)?;
                map.set_item(key, value).map_err(Fault::Raised)?;
            }
            Ok(map.into_any())
        }
        _ => {
            let (object, _) = prefix(py, data, reader.offset())?;
            reader.skip()?;
            Ok(object)
        }
    }
}

impl Fault {
    /// The same fault in an input that starts `at` bytes earlier.
    fn after(self, at: usize) -> Self {
        match self {
            Self::Decode(error) => Self::at(at + error.offset, error.reason),
            raised => raised,
        }
    }

    fn at(offset: usize, reason: Reason) -> Self {
        Self::Decode(DecodeError { offset, reason })
    }

    /// The exception, with a message that begins with `context`.
    fn raise(self, py: Python<'_>, data: &[u8], context: &str) -> PyErr {
        let error = match self {
            Self::Raised(error) => return error,
            Self::Decode(error) => error,
        };
        let message = format!("{context}. {}", message(py, data, error));
        let class = if context == BLOCK_FAILED { Class::Car } else { Class::Decode };
        class.error(py, message, "dag-cbor", Some(error.offset as u64))
    }
}

/// The words of libipld for a broken rule, where it has some, and the place.
fn message(py: Python<'_>, data: &[u8], error: DecodeError) -> String {
    let item = data.get(error.offset..).unwrap_or_default();
    let what = match error.reason {
        Reason::KeyOrder | Reason::DuplicateKey => "Map keys must be sorted and unique",
        Reason::KeyNotText => "Map keys must be strings",
        Reason::TrailingBytes => "Invalid DAG-CBOR: contains multiple objects (CBOR sequence)",
        Reason::Tag => "Non-42 tags are not supported",
        Reason::Link => "Invalid CID",
        Reason::LengthBeyondInput | Reason::NotMinimal if is_too_long(item) => {
            match item.first().map(|head| head >> 5) {
                Some(ARRAY) => "Array length exceeds remaining data",
                Some(MAP) => "Map length exceeds remaining data",
                _ => return error.to_string(),
            }
        }
        Reason::NotUtf8 => return unicode_error(py, item),
        Reason::FloatWidth | Reason::FloatValue => float_rule(item),
        _ => return error.to_string(),
    };
    format!("{what} ({error})")
}

/// The error of Python's own decoder, which has the place in the text.
fn unicode_error(py: Python<'_>, item: &[u8]) -> String {
    let text = PyBytes::new(py, text_of(item).unwrap_or_default());
    match PyString::from_encoded_object(&text, Some(c"utf-8"), None) {
        Err(error) => error.to_string(),
        Ok(_) => Reason::NotUtf8.to_string(),
    }
}

/// The number in the head of an item, in its shortest form or not, and the bytes after it.
fn head(item: &[u8]) -> Option<(u64, &[u8])> {
    let (head, rest) = item.split_first()?;
    let number_len = match head & 0x1f {
        number @ 0..24 => return Some((u64::from(number), rest)),
        width => 1 << width.checked_sub(24).filter(|width| *width < 4)?,
    };
    let (number, rest) = rest.split_at_checked(number_len)?;
    Some((number.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)), rest))
}

/// The bytes of a text.
fn text_of(item: &[u8]) -> Option<&[u8]> {
    let (len, rest) = head(item)?;
    rest.get(..usize::try_from(len).ok()?)
}

/// Whether a container states more items than there are bytes for.
fn is_too_long(item: &[u8]) -> bool {
    head(item).is_some_and(|(count, rest)| count > rest.len() as u64)
}

fn float_rule(item: &[u8]) -> &'static str {
    let single = item.get(1..5).and_then(|bytes| bytes.first_chunk()).copied();
    let double = item.get(1..9).and_then(|bytes| bytes.first_chunk()).copied();
    match (item.first(), single.map(f32::from_be_bytes), double.map(f64::from_be_bytes)) {
        (Some(0xfa), Some(float), _) if !float.is_finite() => {
            "Number out of range for f32 (NaNs are forbidden)"
        }
        (Some(0xfa), Some(0.0), _) if single == Some((-0.0f32).to_be_bytes()) => {
            "Negative zero is forbidden for f32"
        }
        (Some(0xfb), _, Some(float)) if !float.is_finite() => {
            "Number out of range for f64 (NaNs are forbidden)"
        }
        (Some(0xfb), _, Some(_)) => "Negative zero is forbidden for f64",
        _ => "Floats must have 64 bits",
    }
}

/// The depth that Python allows, within the stack of any thread.
fn recursion_limit(py: Python<'_>) -> PyResult<usize> {
    let limit = py.import("sys")?.call_method0("getrecursionlimit")?.extract::<usize>()?;
    Ok(limit.min(MAX_DEPTH))
}

const DECODE_FAILED: &str = "Failed to decode DAG-CBOR";
const BLOCK_FAILED: &str = "Failed to read CAR block";

/// Maximum number of containers inside each other, whatever Python's limit is: a level takes some 500 bytes of stack.
const MAX_DEPTH: usize = 2_000;

/// Blocks that are hashed together.
const BATCH: usize = 256;

/// Blocks of archives from this length on are hashed without the interpreter's lock.
const DETACHED_BYTES: usize = 64 << 10;

/// Major types of CBOR.
const ARRAY: u8 = 4;
const MAP: u8 = 5;

/// Codes of multicodec.
const DAG_CBOR: u8 = 0x71;
const DAG_PB: u8 = 0x70;
const SHA2_256: u8 = 0x12;
