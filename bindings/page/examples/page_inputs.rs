//! Writes inputs for the tests of the page into a folder: each form, valid and broken, and `inputs.json` with the verdicts of the
//! native library.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use atproto::commit::UnsignedCommit;
use atproto::event::{Account, Event};
use atproto::mst::{Tree, canonical};
use atproto::plc::{AccountData, Operation, Service, UnsignedOperation, Update};
use atproto::repo::{Repository, RepositoryWriter};
use atproto::syntax::{DidBuf, Tid};
use codec::cid::Codec;
use codec::{Cid, car};
use crypto::{Curve, PublicKey, SecretKey, schnorr};
use nostr::canonical::{self as nostr_canonical, ControlChars};
use nostr::{Arena, Limits};
use serde_json::{Value, json};
use simnet::hostile::{CaseSet, Spec};
use verify::collections;
use verify::repository::{self as whole, RepositoryRejection};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).ok_or("usage: page_inputs FOLDER")?;
    let mut inputs = Inputs::new(PathBuf::from(folder))?;
    inputs.identities()?;
    inputs.repositories()?;
    inputs.broken_repositories()?;
    inputs.records()?;
    inputs.ranges()?;
    inputs.frames()?;
    inputs.chains()?;
    inputs.events()?;
    CaseSet::generate(&Spec::default()).write(&inputs.folder.join("hostile/hostile.json"))?;
    inputs.write_manifest()
}

/// The account, and the inputs that were written.
struct Inputs {
    folder: PathBuf,
    secret: SecretKey,
    log: Vec<Operation>,
    did: DidBuf,
    entries: Vec<Value>,
}

impl Inputs {
    fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        let secret = secret(7);
        let log = log(&secret)?;
        let did = log[0].did().ok_or("the first operation")?;
        Ok(Self { folder, secret, log, did, entries: Vec::new() })
    }

    fn key(&self) -> PublicKey {
        self.secret.public_key()
    }

    /// Writes an input, and notes what the page must say of it.
    fn add(&mut self, file: &str, bytes: &[u8], expected: Value) -> Result<()> {
        fs::write(self.folder.join(file), bytes)?;
        let mut entry = json!({ "file": file });
        let fields = entry.as_object_mut().zip(expected.as_object());
        fields.into_iter().for_each(|(entry, expected)| entry.extend(expected.clone()));
        self.entries.push(entry);
        Ok(())
    }

    fn write_manifest(&self) -> Result<()> {
        let (did, key) = (self.did.to_string(), self.key().to_did_key());
        let manifest = json!({ "did": did, "key": key, "handle": HANDLE, "inputs": self.entries });
        Ok(fs::write(self.folder.join("inputs.json"), manifest.to_string())?)
    }

    fn identities(&mut self) -> Result<()> {
        let entries: Vec<Value> = self
            .log
            .iter()
            .enumerate()
            .map(|(at, operation)| {
                let operation_json: Value =
                    serde_json::from_str(&operation.to_json()).unwrap_or_default();
                json!({
                    "did": self.did.to_string(),
                    "operation": operation_json,
                    "cid": operation.cid().to_string(),
                    "nullified": false,
                    "createdAt": format!("2024-0{}-11T09:30:00.000Z", at + 1),
                })
            })
            .collect();
        let log = serde_json::to_string(&entries)?;
        self.add("log.json", log.as_bytes(), json!({ "title": "DID log proved" }))?;
        let broken = log
            .replace("2024-02", "2024-01")
            .replace("09:30:00.000Z\",\"did", "09:00:00.000Z\",\"did");
        let at = broken.rfind("\"createdAt\"").ok_or("a time")?;
        let second = broken[..at].rfind("\"createdAt\"").ok_or("a time")?;
        self.add(
            "log-time.json",
            broken.as_bytes(),
            json!({ "code": "plc/created-at", "offset": second }),
        )?;
        let document = json!({
            "@context": ["https://www.w3.org/ns/did/v1"],
            "id": self.did.to_string(),
            "alsoKnownAs": [format!("at://{HANDLE}")],
            "verificationMethod": [{
                "id": format!("{}#atproto", self.did),
                "type": "Multikey",
                "controller": self.did.to_string(),
                "publicKeyMultibase": self.key().to_multikey(),
            }],
            "service": [{
                "id": "#atproto_pds",
                "type": "AtprotoPersonalDataServer",
                "serviceEndpoint": HOST,
            }],
        });
        let text = document.to_string();
        self.add("document.json", text.as_bytes(), json!({ "title": "DID document read" }))?;
        let broken = text.replace("did:plc:", "dad:plc:");
        self.add("document-did.json", broken.as_bytes(), json!({ "code": "identity/document" }))
    }

    fn repositories(&mut self) -> Result<()> {
        let large = self.repository(10_000)?.export(Vec::new())?;
        self.add("repository-10000.car", &large, json!({ "title": "Proved", "records": 10_000 }))?;
        let small = self.repository(240)?.export(Vec::new())?;
        self.add("repository.car", &small, json!({ "title": "Proved", "records": 240 }))
    }

    /// A repository of posts, likes and more, with markup in its texts.
    fn repository(&self, records: usize) -> Result<RepositoryWriter> {
        let mut writer = RepositoryWriter::new(self.did.as_did());
        for number in 0..records {
            let (path, record) = record(number);
            writer.create(&path, &record)?;
        }
        writer.commit(Tid::new(START_MICROS, 0), |message| self.secret.sign(message))?;
        Ok(writer)
    }

    fn broken_repositories(&mut self) -> Result<()> {
        let export = self.repository(240)?.export(Vec::new())?;
        let mut flipped = export.clone();
        let at = flipped.len() - 12;
        flipped[at] ^= 1;
        self.refuse("hash.car", &flipped)?;
        self.refuse("truncated.car", &export[..export.len() - 40])?;
        let repository = Repository::read(&export, &car::Options::default())?;
        let blocks = blocks(&export)?;
        let record = repository.records().last().ok_or("records")??.cid;
        for (file, missing) in
            [("record-missing.car", record), ("node-missing.car", repository.commit().data)]
        {
            let kept: Vec<_> = blocks.iter().filter(|(cid, _)| *cid != missing).cloned().collect();
            self.refuse(file, &archive(&kept)?)?;
        }
        let (did, data) = (self.did.to_string(), repository.commit().data);
        self.refuse("signature.car", &Self::with_commit(&did, &blocks, data, &secret(9))?)?;
        let markup = self.of_one_record(&did, HOSTILE_KEY, r#"{"$type":"app.test.note"}"#)?;
        self.refuse("key-with-markup.car", &markup)?;
        // It names the account of the key in a record alone.
        let record = format!(r#"{{"$type":"app.test.note","did":"{did}"}}"#);
        self.refuse(
            "other-account.car",
            &self.of_one_record(SUBJECT, "app.test.note/a", &record)?,
        )?;
        self.refuse("empty.car", b"\x0a\xa1\x67version\x01")
    }

    /// The blocks under a commit of `did` by a key, instead of the first.
    fn with_commit(
        did: &str,
        blocks: &[(Cid, Vec<u8>)],
        data: Cid,
        secret: &SecretKey,
    ) -> Result<Vec<u8>> {
        let rev = Tid::new(START_MICROS, 0).to_string();
        let unsigned = UnsignedCommit { did, rev: &rev, data, prev: None };
        let commit = unsigned.with_signature(&secret.sign(&unsigned.to_bytes()));
        let mut all = vec![(Cid::of(Codec::DagCbor, &commit), commit)];
        all.extend_from_slice(&blocks[1..]);
        archive(&all)
    }

    /// A repository of `did` with one record, signed by the account of all inputs.
    fn of_one_record(&self, did: &str, path: &str, record: &str) -> Result<Vec<u8>> {
        let record = cbor(record)?;
        let cid = Cid::of(Codec::DagCbor, &record);
        let mut tree = Tree::empty();
        tree.insert(path.as_bytes(), cid)?;
        let (root, nodes) = (tree.root(), tree.collect_blocks());
        let mut blocks = vec![(cid, Vec::new())];
        blocks.extend(nodes);
        blocks.push((cid, record));
        Self::with_commit(did, &blocks, root, &self.secret)
    }

    /// An archive that the native library refuses.
    fn refuse(&mut self, file: &str, export: &[u8]) -> Result<()> {
        let did = self.did.to_string();
        let verified = whole::verify(export, Some(&did), &self.key(), &whole::Options::default());
        let rejection: RepositoryRejection = verified.err().ok_or("a broken archive")?;
        self.add(
            file,
            export,
            json!({ "code": rejection.code(), "offset": rejection.offset, "did": did }),
        )
    }

    /// Slices that prove a record and an absence.
    fn records(&mut self) -> Result<()> {
        let export = self.repository(240)?.export(Vec::new())?;
        let repository = Repository::read(&export, &car::Options::default())?;
        let (present, absent) = (record(17).0, "app.bsky.feed.post/3zzzzzzzzzzzz".to_owned());
        for (file, path, title) in
            [("record.car", present, "Record proved"), ("absence.car", absent, "Absence proved")]
        {
            let found = canonical::search(repository.commit().data, &repository, path.as_bytes())?;
            let mut blocks = vec![(repository.root(), repository.commit_block().to_vec())];
            blocks.extend(found.nodes.iter().map(|(cid, block)| (*cid, block.to_vec())));
            let record = found.value.and_then(|value| value.to_cid());
            blocks.extend(record.and_then(|cid| Some((cid, repository.block(&cid)?.to_vec()))));
            self.add(file, &archive(&blocks)?, json!({ "title": title, "path": path }))?;
            if file == "record.car" {
                blocks.pop();
                self.add(
                    "record-left-out.car",
                    &archive(&blocks)?,
                    json!({ "code": "record/missing", "path": path }),
                )?;
            }
        }
        Ok(())
    }

    /// Slices that prove all records of a collection.
    fn ranges(&mut self) -> Result<()> {
        let export = self.repository(240)?.export(Vec::new())?;
        let repository = Repository::read(&export, &car::Options::default())?;
        let collection = "app.bsky.graph.follow";
        let options = verify::record::Options::default();
        let did = self.did.to_string();
        let proof = collections::verify(
            &export,
            &[collection.parse()?],
            Some(&did),
            &self.key(),
            &options,
        )?;
        let mut blocks = vec![(repository.root(), repository.commit_block().to_vec())];
        blocks.extend(proof.nodes().iter().map(|(cid, block)| (*cid, block.to_vec())));
        blocks.extend(proof.records().iter().map(|record| (record.cid, record.bytes.to_vec())));
        let expected = json!({
            "title": "Collections proved",
            "records": proof.records().len(),
            "path": collection,
        });
        self.add("range.car", &archive(&blocks)?, expected)?;
        // Records of the same content are one block.
        let missing = blocks.pop().ok_or("a record")?.0;
        blocks.retain(|(cid, _)| *cid != missing);
        let expected = json!({ "code": "record/missing", "path": collection });
        self.add("range-left-out.car", &archive(&blocks)?, expected)
    }

    fn frames(&mut self) -> Result<()> {
        let mut writer = self.repository(240)?;
        for number in 240..243 {
            let (path, record) = record(number);
            writer.create(&path, &record)?;
        }
        writer.delete(&record(3).0)?;
        let rev = Tid::new(START_MICROS + 60_000_000, 0);
        let mut forged = writer.clone();
        let commit = writer.commit(rev, |message| self.secret.sign(message))?;
        let frame = commit.to_frame(41_233, "2024-03-09T16:01:00.000Z")?;
        self.add("frame.bin", &frame, json!({ "title": "Verified" }))?;
        let other = secret(9);
        let commit = forged.commit(rev, |message| other.sign(message))?;
        let forged = commit.to_frame(41_233, "2024-03-09T16:01:00.000Z")?;
        self.add("frame-signature.bin", &forged, json!({ "code": "signature/wrong" }))?;
        let mut long = frame;
        long.push(0);
        let end = long.len() - 1;
        self.add("frame-trailing.bin", &long, json!({ "code": "frame/cbor", "offset": end }))?;
        let did = self.did.to_string();
        let account = Account {
            seq: 5,
            did: &did,
            time: "2024-03-09T16:01:00.000Z",
            active: false,
            status: Some("takendown"),
        };
        self.add(
            "frame-account.bin",
            &Event::Account(account).to_frame(),
            json!({ "title": "Well formed" }),
        )
    }

    /// Messages of one account in a row, each in a file, and all in one file.
    fn chains(&mut self) -> Result<()> {
        let mut writer = self.repository(240)?;
        let mut frames = Vec::new();
        for number in 0..3 {
            let (path, record) = record(240 + number);
            writer.create(&path, &record)?;
            let rev = Tid::new(START_MICROS + 60_000_000 * (number as u64 + 1), 0);
            let commit = writer.commit(rev, |message| self.secret.sign(message))?;
            frames.push(commit.to_frame(41_240 + number as i64, "2024-03-09T16:05:00.000Z")?);
        }
        for (number, frame) in frames.iter().enumerate() {
            let file = format!("chain-{number}.bin");
            self.add(&file, frame, json!({ "title": "Verified" }))?;
        }
        self.add("chain.bin", &in_one_file(&frames), json!({ "title": "Verified" }))?;
        let record = frames[2].windows(9).rposition(|bytes| bytes == b"createdAt");
        frames[2][record.ok_or("a record")?] ^= 1;
        let expected = json!({ "code": "car/hash", "title": "1 of 3 messages refused" });
        self.add("chain-hash.bin", &in_one_file(&frames), expected)
    }

    fn events(&mut self) -> Result<()> {
        let lines: Vec<String> = (0..300).map(event).collect::<Result<_>>()?;
        self.add("event.json", lines[0].as_bytes(), json!({ "title": "Verified" }))?;
        self.add("events.jsonl", lines.join("\n").as_bytes(), json!({ "title": "Verified" }))?;
        let mut broken = lines;
        broken[120] = broken[120].replace("note", "nota");
        broken[200].truncate(80);
        let id = broken[120].find("\"id\":\"").ok_or("an id")? + 6;
        let offset = broken[..120].iter().map(|line| line.len() + 1).sum::<usize>() + id;
        let expected =
            json!({ "code": "event/id", "offset": offset, "title": "2 of 300 events refused" });
        self.add("events-broken.jsonl", broken.join("\n").as_bytes(), expected)
    }
}

/// The number of frames, and each after its length.
fn in_one_file(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = (frames.len() as u32).to_be_bytes().to_vec();
    for frame in frames {
        file.extend((frame.len() as u32).to_be_bytes());
        file.extend(frame);
    }
    file
}

fn secret(seed: u8) -> SecretKey {
    SecretKey::from_bytes(Curve::K256, &[seed; 32]).expect("a number below the order")
}

/// Three operations: the account, another handle, another server.
fn log(secret: &SecretKey) -> Result<Vec<Operation>> {
    let rotation = self::secret(11);
    let data = |handle: &str, host: &str| AccountData {
        rotation_keys: vec![rotation.public_key().to_did_key()],
        verification_methods: BTreeMap::from([(
            "atproto".to_owned(),
            secret.public_key().to_did_key(),
        )]),
        also_known_as: vec![format!("at://{handle}")],
        services: BTreeMap::from([(
            "atproto_pds".to_owned(),
            Service { kind: "AtprotoPersonalDataServer".to_owned(), endpoint: host.to_owned() },
        )]),
    };
    let mut operations: Vec<Operation> = Vec::new();
    for (handle, host) in [
        ("alice.host.example", "https://old.example"),
        (HANDLE, "https://old.example"),
        (HANDLE, HOST),
    ] {
        let prev = operations.last().map(Operation::cid);
        let unsigned = UnsignedOperation::Update(Update { data: data(handle, host), prev });
        let sig = rotation.sign(&unsigned.to_bytes());
        operations.push(unsigned.with_signature(sig));
    }
    Ok(operations)
}

/// A path and its record.
fn record(number: usize) -> (String, Vec<u8>) {
    let micros = START_MICROS - 7_777_777 * (number as u64 + 1);
    let rkey = Tid::new(micros, 0).to_string();
    let (collection, fields) = match number {
        0 => return ("app.bsky.actor.profile/self".to_owned(), profile()),
        _ => match number % 10 {
            0..4 => (
                "app.bsky.feed.like",
                format!(
                    r#""subject":{{"uri":"at://{SUBJECT}/app.bsky.feed.post/{rkey}","cid":"{SUBJECT_CID}"}}"#
                ),
            ),
            4..7 => (
                "app.bsky.feed.post",
                format!(r#""text":{},"langs":["en"]"#, json!(TEXTS[number % TEXTS.len()])),
            ),
            7 | 8 => ("app.bsky.graph.follow", format!(r#""subject":"{SUBJECT}""#)),
            _ => (
                "app.bsky.feed.repost",
                format!(
                    r#""subject":{{"uri":"at://{SUBJECT}/app.bsky.feed.post/{rkey}","cid":"{SUBJECT_CID}"}}"#
                ),
            ),
        },
    };
    let json = format!(
        r#"{{"$type":"{collection}",{fields},"createdAt":"2024-03-0{}T12:00:00.000Z"}}"#,
        number % 9 + 1
    );
    (format!("{collection}/{rkey}"), cbor(&json).expect("JSON of a record"))
}

fn profile() -> Vec<u8> {
    let name = json!("Alice </script><img src=x onerror=alert(1)>");
    cbor(&format!(r#"{{"$type":"app.bsky.actor.profile","displayName":{name},"description":"Proof, not trust."}}"#))
        .expect("JSON of a record")
}

/// DAG-CBOR from JSON.
fn cbor(text: &str) -> Result<Vec<u8>> {
    let arena = bumpalo::Bump::new();
    Ok(codec::cbor::encode(&codec::json::decode(text, &arena)?)?)
}

fn blocks(export: &[u8]) -> Result<Vec<(Cid, Vec<u8>)>> {
    let read = car::read(export, &car::Options::default())?;
    let block = |block: &car::Block<'_>| Some((block.cid.to_cid()?, block.data.to_vec()));
    read.blocks.iter().map(|it| block(it).ok_or_else(|| "a CID".into())).collect()
}

fn archive(blocks: &[(Cid, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut writer = car::Writer::new(Vec::new(), &[blocks[0].0])?;
    blocks.iter().try_for_each(|(cid, block)| writer.block(cid, block))?;
    Ok(writer.into_inner())
}

/// A signed event, as JSON.
fn event(number: u64) -> Result<String> {
    let secret = schnorr::SecretKey::from_bytes(&[5; 32])?;
    let text = nostr::example::JSON;
    let arena = Arena::new();
    let mut event = nostr::json::decode(text.as_bytes(), &arena, &Limits::default())?;
    let content = format!("note {number} <b onclick=alert(1)>bold</b> \u{202e}reversed");
    event.content = &content;
    event.pubkey = secret.public_key().to_bytes();
    event.created_at += number as i64;
    event.id = nostr_canonical::id(&event, ControlChars::Verbatim, &mut Vec::new());
    event.sig = secret.sign(&event.id, &[0; 32]);
    let mut json = Vec::new();
    nostr::json::encode(&event, &mut json);
    Ok(String::from_utf8(json)?)
}

const HANDLE: &str = "alice.example";
const HOST: &str = "https://pds.example";
const SUBJECT: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
const SUBJECT_CID: &str = "bafyreib2rxk3rybloqtqwbo2ndlgp2q4jjvvpqv6b3f3qpqgowmgsa3w4m";
const HOSTILE_KEY: &str = "<img src=x onerror=alert(1)>/\u{202e}<script>alert(2)</script>";
/// 9 March 2024, 16:00 UTC.
const START_MICROS: u64 = 1_710_000_000_000_000;
const TEXTS: [&str; 6] = [
    "Good morning.",
    "Everything signed, nothing taken on trust.",
    "<script>document.title = 'run'</script>",
    "\u{202e}right to left\u{202c} and \u{0} control",
    "A longer post about Merkle trees: the root names every node, every node names its records, and one signature covers all of them.",
    "\"quotes\", \\backslashes\\ and emoji 🦋🌳",
];
