//! The functions as WebAssembly calls them. An error is thrown as the JSON of a [`Fault`].

#![expect(unreachable_pub, reason = "only public functions are exported")]

use wasm_bindgen::prelude::*;

use crate::fault::Fault;
use crate::format::{self, FrameReader};
use crate::judge::{self, FrameJudge};
use crate::key::KeyArgument;
use crate::repository::{self, OpenRepository, OptionFields};
use crate::stream::{CarStream, RepositoryStream};
use crate::{nostr_event, plc, signature, slice};

type Result<T> = std::result::Result<T, JsValue>;

impl From<Fault> for JsValue {
    #[cold]
    fn from(fault: Fault) -> Self {
        Self::from_str(&fault.to_json())
    }
}

/// The argument of a key; none if the caller wants no proof of the author.
fn key_argument<'a>(kind: &'a str, text: &'a str) -> Option<KeyArgument<'a>> {
    (kind != "none").then_some(KeyArgument { kind, text })
}

fn required<'a>(kind: &'a str, text: &'a str) -> std::result::Result<KeyArgument<'a>, Fault> {
    key_argument(kind, text).ok_or_else(|| Fault::argument("key", "it is missing"))
}

fn seed_of(seed: &[u8]) -> std::result::Result<[u8; 16], Fault> {
    seed.try_into().map_err(|_| Fault::argument("seed", "expected 16 bytes"))
}

/// The parts of a buffer that `ends` divides.
fn parts<'a>(bytes: &'a [u8], ends: &[u32]) -> Vec<&'a [u8]> {
    let mut start = 0;
    let part = |end: &u32| {
        let end = (*end as usize).min(bytes.len()).max(start);
        let part = &bytes[start..end];
        start = end;
        part
    };
    ends.iter().map(part).collect()
}

#[wasm_bindgen]
pub fn verify_repository(
    car: &[u8],
    kind: &str,
    key: &str,
    did: Option<String>,
    options: &str,
) -> Result<String> {
    let options = OptionFields::parse(options)?;
    Ok(repository::verify(car, key_argument(kind, key), did.as_deref(), &options)?)
}

#[wasm_bindgen]
pub fn verify_record(
    car: &[u8],
    path: &str,
    kind: &str,
    key: &str,
    did: Option<String>,
    options: &str,
) -> Result<String> {
    let options = OptionFields::parse(options)?;
    Ok(slice::verify_record(car, path, required(kind, key)?, did.as_deref(), &options)?)
}

#[wasm_bindgen]
pub fn verify_range(
    car: &[u8],
    patterns: Vec<String>,
    kind: &str,
    key: &str,
    did: Option<String>,
    options: &str,
) -> Result<String> {
    let options = OptionFields::parse(options)?;
    Ok(slice::verify_range(car, &patterns, required(kind, key)?, did.as_deref(), &options)?)
}

#[wasm_bindgen]
pub fn verify_plc_log(json: &str, did: Option<String>) -> Result<String> {
    Ok(plc::verify(json, did.as_deref())?)
}

#[wasm_bindgen]
pub fn verify_signature(message: &[u8], sig: &[u8], key: &str) -> Result<String> {
    Ok(signature::verify(message, sig, key)?)
}

/// The memory of the module.
#[wasm_bindgen]
pub fn module_memory() -> JsValue {
    wasm_bindgen::memory()
}

#[wasm_bindgen]
pub fn check_cbor(bytes: &[u8]) -> Result<()> {
    Ok(format::check_cbor(bytes)?)
}

#[wasm_bindgen]
pub fn car_places(bytes: &[u8]) -> Result<Vec<u32>> {
    Ok(format::car_places(bytes)?)
}

#[wasm_bindgen]
pub fn verify_events(bytes: &[u8], ends: &[u32], ids: &str) -> Result<String> {
    Ok(nostr_event::verify_many(&parts(bytes, ends), ids)?)
}

#[wasm_bindgen]
pub fn account_of(frame: &[u8]) -> Option<String> {
    judge::account_of(frame).map(str::to_owned)
}

#[wasm_bindgen]
#[derive(Default)]
pub struct Frames(FrameReader);

#[wasm_bindgen]
impl Frames {
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// The place in [`module_memory`] where the caller writes a frame.
    pub fn room(&mut self, len: u32) -> *mut u8 {
        self.0.room(len as usize).as_mut_ptr()
    }

    /// The place in [`module_memory`] of the numbers of [`FrameReader::places`].
    pub fn places(&mut self, len: u32) -> Result<*const u32> {
        Ok(self.0.places(len as usize)?.as_ptr())
    }
}

#[wasm_bindgen]
pub struct Repository(OpenRepository);

#[wasm_bindgen]
impl Repository {
    #[wasm_bindgen(constructor)]
    pub fn new(
        car: Vec<u8>,
        kind: &str,
        key: &str,
        did: Option<String>,
        options: &str,
    ) -> Result<Self> {
        let options = OptionFields::parse(options)?;
        Ok(Self(OpenRepository::new(car, key_argument(kind, key), did.as_deref(), &options)?))
    }

    pub fn summary(&self) -> String {
        self.0.summary()
    }

    pub fn collections(&mut self) -> String {
        self.0.collections()
    }

    pub fn range(&mut self, prefix: &str) -> Vec<u32> {
        self.0.range(prefix).to_vec()
    }

    pub fn records(&mut self, from: u32, to: u32) -> String {
        self.0.records_json(from, to)
    }

    pub fn block(&self, cid: &str) -> Option<Vec<u32>> {
        self.0.block(cid).map(|place| place.to_vec())
    }

    pub fn node(&self, cid: &str) -> Option<String> {
        self.0.node(cid)
    }

    pub fn proof_path(&self, path: &str) -> Vec<String> {
        self.0.proof_path(path)
    }
}

#[wasm_bindgen]
pub struct Judge(FrameJudge);

#[wasm_bindgen]
impl Judge {
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str, seed: &[u8]) -> Result<Self> {
        Ok(Self(FrameJudge::new(options, seed_of(seed)?)?))
    }

    pub fn set_key(&mut self, did: &str, key: Option<String>) -> Result<()> {
        Ok(self.0.set_key(did, key.as_deref())?)
    }

    pub fn has_key(&self, did: &str) -> bool {
        self.0.has_key(did)
    }

    pub fn judge(&mut self, bytes: &[u8], ends: &[u32], now_micros: f64) -> String {
        self.0.judge(&parts(bytes, ends), now_micros as u64)
    }

    pub fn export_state(&self) -> String {
        self.0.export_state()
    }

    pub fn import_state(&mut self, json: &str) -> Result<()> {
        Ok(self.0.import_state(json)?)
    }
}

#[wasm_bindgen]
pub struct RepositoryPieces(RepositoryStream);

#[wasm_bindgen]
impl RepositoryPieces {
    #[wasm_bindgen(constructor)]
    pub fn new(
        kind: &str,
        key: &str,
        did: Option<String>,
        options: &str,
        seed: &[u8],
    ) -> Result<Self> {
        let (options, seed) = (OptionFields::parse(options)?, seed_of(seed)?);
        let key = key_argument(kind, key);
        Ok(Self(RepositoryStream::new(key, did.as_deref(), &options, seed)?))
    }

    /// Bytes, records and nodes so far.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<f64>> {
        let progress = self.0.push(bytes)?;
        Ok(vec![progress.bytes as f64, progress.records as f64, progress.nodes as f64])
    }

    pub fn finish(&mut self) -> Result<String> {
        Ok(self.0.finish()?)
    }
}

#[wasm_bindgen]
#[derive(Default)]
pub struct CarPieces(CarStream);

#[wasm_bindgen]
pub struct CarBlocks(crate::stream::Blocks);

#[wasm_bindgen]
impl CarPieces {
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    pub fn end(&mut self) {
        self.0.end();
    }

    pub fn roots(&mut self) -> Result<Option<String>> {
        Ok(self.0.roots()?)
    }

    pub fn next_blocks(&mut self) -> Result<Option<CarBlocks>> {
        Ok(self.0.next_blocks()?.map(CarBlocks))
    }
}

#[wasm_bindgen]
impl CarBlocks {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.bytes.clone()
    }

    pub fn places(&self) -> Vec<u32> {
        self.0.places.clone()
    }

    pub fn offsets(&self) -> Vec<f64> {
        self.0.offsets.clone()
    }
}
