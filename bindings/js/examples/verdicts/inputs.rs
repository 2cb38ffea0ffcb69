//! Inputs of every kind: the hostile set, logs and events that are made here, published vectors, and files of others.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use atproto::plc::{AccountData, UnsignedOperation, Update};
use atproto::repo::RepositoryWriter;
use atproto::syntax::{Datetime, Did, Tid};
use codec::cbor::Encoder;
use crypto::{Curve, SecretKey};
use data_encoding::BASE64;
use serde_json::{Value, json};
use simnet::hostile::{Case, CaseSet, InputKind, Spec};

/// The function that reads an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Repository,
    UnsignedRepository,
    Range,
    Record,
    Frames,
    Frame,
    Car,
    Cbor,
    PlcLog,
    Event,
    /// A signature, then the message.
    Signature,
}

impl Kind {
    pub(crate) const ALL: [Self; 11] = [
        Self::Repository,
        Self::UnsignedRepository,
        Self::Range,
        Self::Record,
        Self::Frames,
        Self::Frame,
        Self::Car,
        Self::Cbor,
        Self::PlcLog,
        Self::Event,
        Self::Signature,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Repository => "repository",
            Self::UnsignedRepository => "unsigned-repository",
            Self::Range => "range",
            Self::Record => "record",
            Self::Frames => "frames",
            Self::Frame => "frame",
            Self::Car => "car",
            Self::Cbor => "cbor",
            Self::PlcLog => "plc-log",
            Self::Event => "event",
            Self::Signature => "signature",
        }
    }

    pub(crate) fn is_archive(self) -> bool {
        matches!(
            self,
            Self::Repository | Self::UnsignedRepository | Self::Range | Self::Record | Self::Car
        )
    }
}

/// An input, and what its reader knows.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
    pub(crate) did: String,
    pub(crate) key: String,
    pub(crate) now_micros: u64,
    pub(crate) collections: Vec<String>,
    pub(crate) path: String,
    /// The code that the hostile set requires, for a verifier that is not strict about records.
    code: Option<&'static str>,
}

impl Seed {
    fn new(name: &str, kind: Kind, bytes: &[u8]) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            bytes: bytes.to_vec(),
            did: "did:plc:ewvi7nxzyoun6zhxrhs64oiz".to_owned(),
            key: secret().public_key().to_did_key(),
            now_micros: 1_782_864_000_000_000,
            collections: vec!["app.bsky.feed.post".to_owned()],
            path: "app.bsky.feed.post/3jzfcijpj2z2a".to_owned(),
            code: None,
        }
    }

    fn of_case(case: &Case, kind: Kind) -> Self {
        let now = case.now.as_deref().and_then(|now| Datetime::parse(now).ok());
        let now = now.map_or(0, |now| u64::try_from(now.unix_micros()).unwrap_or_default());
        Self {
            did: case.did.clone(),
            key: case.signing_key.clone(),
            now_micros: now,
            collections: case.collections.clone(),
            code: case.code,
            ..Self::new(&case.name, kind, &case.bytes)
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        json!({
            "name": self.name,
            "kind": self.kind.name(),
            "bytes": BASE64.encode(&self.bytes),
            "did": self.did,
            "key": self.key,
            "now": self.now_micros,
            "collections": self.collections,
            "path": self.path,
            "code": self.code,
        })
    }
}

/// All inputs.
pub(crate) fn all() -> Result<Vec<Seed>, Box<dyn Error>> {
    let mut seeds: Vec<Seed> =
        CaseSet::generate(&Spec::default()).cases().iter().flat_map(of_case).collect();
    let keys = ["3jzfcijpj2z2a", "self", "zzz"];
    let records: Vec<Seed> = keys.iter().flat_map(|key| records(&seeds, key)).collect();
    seeds.extend(records);
    seeds.push(Seed::new("a plain log", Kind::PlcLog, log().as_bytes()));
    seeds.extend(events()?);
    seeds.extend([Curve::K256, Curve::P256].map(signature));
    seeds.extend(
        [&b"\xa0"[..], b"\xfb\x3f\xf0\0\0\0\0\0\0", b"\x1b\0\x20\0\0\0\0\0\0"]
            .map(|item| Seed::new("an item", Kind::Cbor, item)),
    );
    if let Some(folder) = std::env::var_os("WIREPROOF_FIXTURES") {
        seeds.extend(of_files(&PathBuf::from(folder).join("atproto"))?);
    }
    Ok(seeds)
}

/// A hostile case as the input of every function that reads its kind.
fn of_case(case: &Case) -> Vec<Seed> {
    match case.kind {
        InputKind::Repo => {
            let others = [Kind::UnsignedRepository, Kind::Car];
            let others = others.map(|kind| Seed { code: None, ..Seed::of_case(case, kind) });
            [vec![Seed::of_case(case, Kind::Repository)], others.to_vec()].concat()
        }
        InputKind::Part => vec![Seed::of_case(case, Kind::Range)],
        InputKind::Frames => {
            let frames = split_frames(&case.bytes);
            let last = frames.last().copied().unwrap_or_default();
            vec![Seed::of_case(case, Kind::Frames), Seed::new(&case.name, Kind::Frame, last)]
        }
    }
}

/// Valid repositories and parts as slices that prove the record at a path, or that there is none.
fn records(seeds: &[Seed], key: &str) -> Vec<Seed> {
    let is_valid =
        |seed: &&Seed| matches!(seed.kind, Kind::Repository | Kind::Range) && seed.code.is_none();
    let path = format!("app.bsky.feed.post/{key}");
    let of = |seed: &Seed| Seed { kind: Kind::Record, path: path.clone(), ..seed.clone() };
    seeds.iter().filter(is_valid).take(8).map(of).collect()
}

/// A signed repository of some 70 MB in streamable order, with its account and key as JSON.
pub(crate) fn large() -> Result<(Vec<u8>, String), Box<dyn Error>> {
    let (did, secret) = ("did:web:large.example", secret());
    let mut writer = RepositoryWriter::new(Did::parse(did)?);
    let mut record = Encoder::new();
    for number in 0..LARGE_RECORDS {
        record.truncate(0);
        let text = format!("record {number} {}", "of some length ".repeat(10));
        record.map(2).text("text").text(&text).text("$type").text("app.test.note");
        let rkey = Tid::new(1_700_000_000_000_000 + 1_000_003 * number, 0);
        writer.create(&format!("app.test.note/{rkey}"), record.as_bytes())?;
    }
    writer.commit(Tid::new(1_782_864_000_000_000, 0), |message| secret.sign(message))?;
    let owner = json!({ "did": did, "key": secret.public_key().to_did_key() }).to_string();
    Ok((writer.export(Vec::new())?, owner))
}

/// The frames in a file of frames; a part of one that is cut is a frame too.
pub(crate) fn split_frames(file: &[u8]) -> Vec<&[u8]> {
    let (mut frames, mut rest) = (Vec::new(), file.get(4..).unwrap_or_default());
    while let Some((len, after)) = rest.split_first_chunk() {
        let len = (u32::from_be_bytes(*len) as usize).min(after.len());
        let (frame, others) = after.split_at(len);
        frames.push(frame);
        rest = others;
    }
    frames
}

/// A log of two operations.
fn log() -> String {
    let key = secret();
    let data =
        AccountData { rotation_keys: vec![key.public_key().to_did_key()], ..Default::default() };
    let signed = |operation: UnsignedOperation| {
        let sig = key.sign(&operation.to_bytes());
        operation.with_signature(sig)
    };
    let first = signed(UnsignedOperation::Update(Update { data: data.clone(), prev: None }));
    let mut next = data;
    next.verification_methods.insert("atproto".to_owned(), key.public_key().to_did_key());
    next.also_known_as.push("at://alice.example".to_owned());
    let prev = Some(first.cid());
    let second = signed(UnsignedOperation::Update(Update { data: next, prev }));
    format!("[{},{}]", first.to_json(), second.to_json())
}

/// A signature and its message.
fn signature(curve: Curve) -> Seed {
    let secret = SecretKey::from_bytes(curve, &[9; 32]).expect("a number below the order");
    let bytes = [&secret.sign(MESSAGE)[..], MESSAGE].concat();
    let key = secret.public_key().to_did_key();
    Seed { key, ..Seed::new("a signature", Kind::Signature, &bytes) }
}

/// The events and the refused JSON of the published vectors.
fn events() -> Result<Vec<Seed>, Box<dyn Error>> {
    let vectors: Value = serde_json::from_str(VECTORS)?;
    let empty = Vec::new();
    let list = |name: &str| vectors[name].as_array().unwrap_or(&empty).iter();
    let mut seeds: Vec<Seed> = list("events")
        .map(|event| Seed::new("an event", Kind::Event, event["event"].to_string().as_bytes()))
        .collect();
    for refusal in list("refusals").filter(|refusal| refusal["format"] == "json") {
        let bytes = refusal["bytes"].as_str().unwrap_or_default();
        let bytes = data_encoding::HEXLOWER.decode(bytes.as_bytes())?;
        seeds.push(Seed::new("a refused event", Kind::Event, &bytes));
    }
    Ok(seeds)
}

/// The files of a folder of captures and vectors of others, by their endings.
fn of_files(folder: &Path) -> Result<Vec<Seed>, Box<dyn Error>> {
    let mut seeds = Vec::new();
    for path in files(folder)? {
        let (name, bytes) = (path.to_string_lossy().into_owned(), fs::read(&path)?);
        if bytes.len() > MAX_FILE_BYTES {
            continue;
        }
        let kinds: &[Kind] = match name.rsplit('.').next() {
            Some("dag-cbor" | "cbor") => &[Kind::Cbor],
            Some("car") => &[Kind::Car, Kind::UnsignedRepository, Kind::Repository],
            Some("frame") => &[Kind::Frame],
            Some("json") if name.contains("plc") => &[Kind::PlcLog],
            _ => &[],
        };
        let accounts = accounts_near(&path);
        for kind in kinds {
            let seed = Seed::new(&name, *kind, &bytes);
            if *kind == Kind::Repository {
                let of = |(did, key): &(String, String)| Seed {
                    did: did.clone(),
                    key: key.clone(),
                    ..seed.clone()
                };
                seeds.extend(accounts.iter().map(of));
            } else {
                seeds.push(seed);
            }
        }
    }
    Ok(seeds)
}

/// The accounts and keys that the file `keys.json` of the folder of an archive names, or of the folder above.
fn accounts_near(path: &Path) -> Vec<(String, String)> {
    let files = path.ancestors().skip(1).take(2).map(|folder| folder.join("keys.json"));
    let text = files.filter_map(|file| fs::read(file).ok()).next().unwrap_or_default();
    let Ok(Value::Object(keys)) = serde_json::from_slice(&text) else { return Vec::new() };
    let mut accounts = Vec::new();
    for (name, listed) in &keys {
        let did = match name.strip_suffix("_keys") {
            Some(part) => keys.get(&format!("{part}_did")).and_then(Value::as_str),
            None => Some(&**name),
        };
        let listed = listed.as_array().into_iter().flatten().filter_map(Value::as_str);
        accounts.extend(
            did.into_iter()
                .flat_map(|did| listed.clone().map(|key| (did.to_owned(), key.to_owned()))),
        );
    }
    accounts
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    found.sort();
    Ok(found)
}

fn secret() -> SecretKey {
    SecretKey::from_bytes(Curve::K256, &[7; 32]).expect("a number below the order")
}

const LARGE_RECORDS: u64 = 230_000;

const MESSAGE: &[u8] = b"a message of a few words";

const VECTORS: &str = include_str!("../../../../docs/formats/nostr/vectors.json");

/// Larger files would fill the list with the same bytes many times.
const MAX_FILE_BYTES: usize = 200_000;
