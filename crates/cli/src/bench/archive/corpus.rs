//! What is archived: frames, the keys of their accounts, and their repositories before the first frame.

use std::path::Path;

use serde_json::json;
use serde_json::value::RawValue;
use simnet::firehose::{Corpus, Spec};
use wireproof::atproto::corpus;
use wireproof::atproto::event::{Commit, Decoder, Event, Options, RepoOp};
use wireproof::codec::cbor::{Arena, decode};
use wireproof::codec::json::encode;
use wireproof::verify::identity::AccountKeys;

use crate::failure::Failure;
use crate::files;
use crate::verify::account_keys;

/// Frames, and what is needed to archive them.
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

    /// Frames of a capture.
    pub(super) fn read(frames: &Path, keys: &Path) -> Result<Self, Failure> {
        let (file, keys) = (files::read(frames)?, account_keys(keys)?);
        let found = corpus::read(&file).map_err(|error| Failure::refused(frames, error))?;
        Ok(Self {
            name: files::name(frames),
            frames: found.into_iter().map(<[u8]>::to_vec).collect(),
            keys,
            repositories: Vec::new(),
        })
    }

    /// The operations of the frames as a Jetstream server sends them, a line each.
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
