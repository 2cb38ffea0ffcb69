//! The content to archive: frames, the keys of their accounts, and their repositories before the first frame.

use std::collections::BTreeMap;
use std::path::Path;

use atproto::corpus;
use atproto::event::{Commit, Decoder, Event, Options, RepoOp};
use atproto::repo::RepositoryWriter;
use atproto::syntax::{Did, Tid};
use codec::cbor::{Arena, decode};
use codec::json::encode;
use crypto::{Curve, SecretKey};
use serde_json::json;
use serde_json::value::RawValue;
use simnet::firehose::{Corpus, Spec};
use simnet::random::{DEFAULT_SEED, Random, Seed};
use simnet::record::{self, Collection, RecordPath, did_plc};
use simnet::time::{START_MICROS, datetime};
use verify::identity::AccountKeys;

use crate::failure::Failure;
use crate::files;
use program::key_files::account_keys;

/// Frames, and the data needed to archive them.
pub(super) struct ArchiveCorpus {
    pub(super) name: String,
    pub(super) frames: Vec<Vec<u8>>,
    pub(super) keys: AccountKeys,
    /// The repositories as CARs, if they are known.
    pub(super) repositories: Vec<Vec<u8>>,
}

impl ArchiveCorpus {
    /// The stream that `bench commit` generates.
    pub(super) fn generate(is_quick: bool) -> Self {
        let spec = if is_quick { Spec::quick() } else { Spec::default() };
        let corpus = Corpus::generate(&spec, &mut |_, _| ());
        let keys = files::to_json(&corpus.account_keys());
        Self {
            name: "generated".to_owned(),
            frames: corpus.frames().to_vec(),
            keys: AccountKeys::from_json(&keys).expect("keys of the generator"),
            repositories: corpus
                .accounts()
                .map(|account| account.open_repository().export_car())
                .collect(),
        }
    }

    /// Commits of one record, of accounts that begin with them: chains that need no repository.
    pub(super) fn chains(is_quick: bool) -> Result<Self, Failure> {
        let (accounts, commits) = if is_quick { (20, 20) } else { (200, 100) };
        let writers: Vec<ChainWriter> =
            (0..accounts).map(ChainWriter::new).collect::<Result<_, _>>()?;
        let keys: BTreeMap<&str, String> = writers
            .iter()
            .map(|writer| (&*writer.did, writer.key.public_key().to_did_key()))
            .collect();
        let keys = AccountKeys::from_json(&files::to_json(&keys)).expect("keys of the generator");
        let mut frames = vec![Vec::new(); (accounts * commits) as usize];
        for (account, writer) in writers.into_iter().enumerate() {
            // Accounts take turns.
            let of_account = frames.iter_mut().skip(account).step_by(accounts as usize);
            writer.write(of_account)?;
        }
        Ok(Self { name: "from first commits".to_owned(), frames, keys, repositories: Vec::new() })
    }

    /// Frames of a capture.
    pub(super) fn read(frames: &Path, keys: &Path) -> Result<Self, Failure> {
        let (file, keys) = (files::read(frames)?, account_keys(keys)?);
        let found = corpus::read(&file).map_err(|error| Failure::refused(frames, error))?;
        Ok(Self {
            name: short_name(frames),
            frames: found.into_iter().map(<[u8]>::to_vec).collect(),
            keys,
            repositories: Vec::new(),
        })
    }

    /// The operations of the frames as a Jetstream server sends them, one per line.
    pub(super) fn jetstream_lines(&self) -> Vec<String> {
        let mut decoder = Decoder::new(Options::default());
        let mut lines = Vec::new();
        for frame in &self.frames {
            if let Ok(Event::Commit(commit)) = decoder.decode(frame) {
                lines.extend(commit.ops.iter().map(|op| jetstream_line(&commit, op)));
            }
        }
        lines
    }

    /// Size of the frames in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.frames.iter().map(|frame| frame.len() as u64).sum()
    }
}

/// An account without records.
struct ChainWriter {
    did: String,
    key: SecretKey,
    seed: Seed,
    random: Random,
}

impl ChainWriter {
    fn new(number: u64) -> Result<Self, Failure> {
        let seed = Seed::new(DEFAULT_SEED, "chains");
        let mut random = seed.stream(number);
        let did = did_plc(&mut random);
        let key = SecretKey::from_bytes(Curve::K256, &random.bytes32());
        let key = key.map_err(|error| Failure::Local(format!("a generated key: {error}")))?;
        Ok(Self { did, key, seed, random })
    }

    /// Writes a commit into every one of these frames.
    fn write<'f>(mut self, frames: impl Iterator<Item = &'f mut Vec<u8>>) -> Result<(), Failure> {
        let failed = |error: &dyn ToString| {
            Failure::Local(format!("a generated commit: {}", error.to_string()))
        };
        let did = Did::parse(&self.did).map_err(|error| failed(&error))?;
        let mut repository = RepositoryWriter::new(did);
        for (number, frame) in (1..).zip(frames) {
            let micros = START_MICROS + number * 60_000_000 + self.random.below(60_000_000);
            let collection =
                *self.random.pick(&[Collection::Like, Collection::Post, Collection::Repost]);
            let path = RecordPath { collection, tid: Tid::new(micros - 1_000_000, 0) };
            let record = record::write(&self.seed, &self.did, path, 0);
            repository.create(&path.to_key(), &record.data).map_err(|error| failed(&error))?;
            let rev = Tid::new(micros, 0);
            let commit = repository.commit(rev, |message| self.key.sign(message));
            let commit = commit.map_err(|error| failed(&error))?;
            *frame = commit
                .to_frame(micros as i64, &datetime(micros))
                .map_err(|error| failed(&error))?;
        }
        Ok(())
    }
}

/// The last two parts of a path.
fn short_name(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts[parts.len().saturating_sub(2)..].join("/")
}

fn jetstream_line(commit: &Commit<'_>, op: &RepoOp<'_>) -> String {
    let arena = Arena::new();
    let value = op.record.and_then(|block| decode(block.data, &arena).ok());
    let record = value.and_then(|value| encode(&value).ok());
    let record = record.and_then(|json| RawValue::from_string(json).ok());
    let (collection, rkey) = op.path.split_once('/').unwrap_or_default();
    let operation = op.action.as_str();
    let cid = op.cid.map(|cid| cid.to_string());
    let commit_fields = json!({
        "rev": commit.rev, "operation": operation, "collection": collection, "rkey": rkey,
        "record": record, "cid": cid,
    });
    let line = json!({
        "did": commit.repo, "time_us": commit.seq, "kind": "commit", "commit": commit_fields,
    });
    line.to_string()
}
