//! Bundles of operations, as `plcbundle` keeps them (version 1 of its specification): files of 10,000 lines of an export,
//! compressed with Zstandard, and an index that chains their hashes.
//!
//! ```text
//! content_hash = SHA-256(the lines)
//! hash         = SHA-256("plcbundle:genesis:" || content_hash)       of the first bundle
//!                SHA-256(hash of the bundle before || ":" || content_hash)
//! ```
//!
//! The lines of bundles have no numbers, so they are numbered by their places here. The lines of an export depend on the version of the
//! server and on later nullifications, so bundles that are written now have other hashes than bundles of the same operations that
//! were collected before.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use atproto::plc::{ExportLine, OperationFault};
use data_encoding::HEXLOWER;
use kernels::sha256;
use serde::{Deserialize, Serialize};
use store::{MirroredOperation, PlcMirrorReader, StoreError};

use crate::lines::push_timed;
use crate::time::push_iso;

/// A folder of bundles, whose index is read and whose chain of hashes is verified.
#[derive(Clone, Debug)]
pub struct BundleFolder {
    folder: PathBuf,
    index: Index,
}

/// Why bundles cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// A file cannot be read or written.
    #[error("{}: {}", .0.display(), .1)]
    File(PathBuf, #[source] std::io::Error),
    /// The index is not one of version 1.
    #[error("{}: {}", .0.display(), .1)]
    Index(PathBuf, String),
    /// A bundle is not the one of the index.
    #[error("bundle {number}: {rule}")]
    Bundle {
        /// The number of the bundle.
        number: u64,
        /// The broken rule.
        rule: &'static str,
    },
    /// A line of a bundle names no account.
    #[error("bundle {number}, line {line}: {fault}")]
    Line {
        /// The number of the bundle.
        number: u64,
        /// The line, from 1.
        line: usize,
        /// The broken rule.
        fault: OperationFault,
    },
    /// The mirror cannot be read.
    #[error(transparent)]
    Mirror(#[from] StoreError),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Index {
    version: String,
    #[serde(default)]
    origin: String,
    last_bundle: u64,
    updated_at: String,
    total_size_bytes: u64,
    #[serde(default)]
    total_uncompressed_size_bytes: u64,
    bundles: Vec<Metadata>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Metadata {
    bundle_number: u64,
    start_time: String,
    end_time: String,
    operation_count: u64,
    did_count: u64,
    hash: String,
    content_hash: String,
    parent: String,
    compressed_hash: String,
    compressed_size: u64,
    uncompressed_size: u64,
    #[serde(default)]
    cursor: String,
    #[serde(default)]
    created_at: String,
}

impl BundleFolder {
    /// Reads the index of a folder, and verifies that its numbers follow each other and that its hashes are a chain.
    ///
    /// # Errors
    /// If it cannot be read, is not of version 1, or breaks a rule.
    pub fn open(folder: &Path) -> Result<Self, BundleError> {
        let path = folder.join(INDEX);
        let bad = |what: String| BundleError::Index(path.clone(), what);
        let json = read_at_most(&path, MAX_INDEX_BYTES)?;
        let index: Index = serde_json::from_slice(&json).map_err(|error| bad(error.to_string()))?;
        if index.version != "1.0" {
            return Err(bad(format!("version {:?}, and not \"1.0\"", index.version)));
        }
        let mut parent = "";
        for (bundle, expected) in index.bundles.iter().zip(1..) {
            let fault = |rule| Err(BundleError::Bundle { number: bundle.bundle_number, rule });
            match () {
                () if bundle.bundle_number != expected => {
                    return fault("the numbers do not follow each other");
                }
                () if bundle.parent != parent => {
                    return fault("`parent` is not the hash of the bundle before");
                }
                () if bundle.hash != chain_hash(parent, &bundle.content_hash) => {
                    return fault("`hash` is not the hash of the chain");
                }
                () if bundle.operation_count > MAX_OPERATIONS => {
                    return fault("more than 10,000 operations");
                }
                () => parent = &bundle.hash,
            }
        }
        Ok(Self { folder: folder.to_owned(), index })
    }

    /// The origin of the directory; empty in old indexes.
    pub fn origin(&self) -> &str {
        &self.index.origin
    }

    /// Number of bundles.
    pub fn len(&self) -> usize {
        self.index.bundles.len()
    }

    /// Whether there is no bundle.
    pub fn is_empty(&self) -> bool {
        self.index.bundles.is_empty()
    }

    /// The lines of a bundle, from 0, numbered by their places, after both hashes of its file are verified.
    ///
    /// # Errors
    /// If it cannot be read, differs from the index, or has a line of no account.
    pub fn lines(&self, at: usize) -> Result<Vec<ExportLine>, BundleError> {
        let Some(bundle) = self.index.bundles.get(at) else { return Ok(Vec::new()) };
        let number = bundle.bundle_number;
        let fault = |rule| BundleError::Bundle { number, rule };
        let path = self.folder.join(format!("{number:06}.jsonl.zst"));
        let compressed = read_at_most(&path, MAX_BUNDLE_BYTES)?;
        if hash_text(&compressed) != bundle.compressed_hash {
            return Err(fault("the file has another `compressed_hash`"));
        }
        let content = decompress(&compressed).map_err(|error| BundleError::File(path, error))?;
        if hash_text(&content) != bundle.content_hash {
            return Err(fault("the lines have another `content_hash`"));
        }
        let first = (number - 1) * MAX_OPERATIONS + 1;
        let texts = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines: Result<Vec<ExportLine>, BundleError> = (first..)
            .zip(texts)
            .map(|(seq, json)| {
                let line = (seq - first) as usize + 1;
                let fault = |fault| BundleError::Line { number, line, fault };
                ExportLine::parse_unnumbered(json, seq).map_err(fault)
            })
            .collect();
        let lines = lines?;
        if lines.len() as u64 != bundle.operation_count {
            return Err(fault("the number of lines is not `operation_count`"));
        }
        Ok(lines)
    }
}

/// Writes all complete bundles of a mirror into a folder without an index. Their number.
///
/// # Errors
/// If the mirror cannot be read, the folder has an index, or a file cannot be written.
pub fn write_bundles(
    mirror: &PlcMirrorReader,
    folder: &Path,
    now_micros: i64,
) -> Result<u64, BundleError> {
    fs::create_dir_all(folder).map_err(|error| BundleError::File(folder.to_owned(), error))?;
    let path = folder.join(INDEX);
    if path.exists() {
        return Err(BundleError::Index(
            path,
            "the folder has bundles: choose another one".to_owned(),
        ));
    }
    let now = iso(now_micros);
    let mut index = Index {
        version: "1.0".to_owned(),
        origin: mirror.totals()?.directory,
        last_bundle: 0,
        updated_at: now.clone(),
        total_size_bytes: 0,
        total_uncompressed_size_bytes: 0,
        bundles: Vec::new(),
    };
    let mut last = (i64::MIN, String::new());
    loop {
        let operations =
            mirror.operations_after_moment(last.0, &last.1, MAX_OPERATIONS as usize)?;
        let Some(newest) = operations.last().filter(|_| operations.len() as u64 == MAX_OPERATIONS)
        else {
            break;
        };
        last = (newest.created_at_micros, newest.cid.clone());
        let bundle = write_bundle(folder, &operations, index.bundles.last(), &now)?;
        index.last_bundle = bundle.bundle_number;
        index.total_size_bytes += bundle.compressed_size;
        index.total_uncompressed_size_bytes += bundle.uncompressed_size;
        index.bundles.push(bundle);
    }
    let json = serde_json::to_vec_pretty(&index).expect("text and numbers have JSON");
    let temporary = folder.join(format!("{INDEX}.new"));
    fs::write(&temporary, json).map_err(|error| BundleError::File(temporary.clone(), error))?;
    fs::rename(&temporary, &path).map_err(|error| BundleError::File(path, error))?;
    Ok(index.last_bundle)
}

fn write_bundle(
    folder: &Path,
    operations: &[MirroredOperation],
    before: Option<&Metadata>,
    now: &str,
) -> Result<Metadata, BundleError> {
    let mut content = String::new();
    for operation in operations {
        push_timed(&operation.as_row(), &mut content);
        content.push('\n');
    }
    let number = before.map_or(1, |before| before.bundle_number + 1);
    let path = folder.join(format!("{number:06}.jsonl.zst"));
    let compressed = zstd::bulk::compress(content.as_bytes(), ZSTD_LEVEL)
        .map_err(|error| BundleError::File(path.clone(), error))?;
    fs::write(&path, &compressed).map_err(|error| BundleError::File(path, error))?;
    let parent = before.map_or_else(String::new, |before| before.hash.clone());
    let content_hash = hash_text(content.as_bytes());
    let time = |of: Option<&MirroredOperation>| {
        of.map_or_else(String::new, |of| iso(of.created_at_micros))
    };
    let dids: BTreeSet<&str> = operations.iter().map(|of| of.did.as_str()).collect();
    Ok(Metadata {
        bundle_number: number,
        start_time: time(operations.first()),
        end_time: time(operations.last()),
        operation_count: operations.len() as u64,
        did_count: dids.len() as u64,
        hash: chain_hash(&parent, &content_hash),
        content_hash,
        parent,
        compressed_hash: hash_text(&compressed),
        compressed_size: compressed.len() as u64,
        uncompressed_size: content.len() as u64,
        cursor: before.map_or_else(String::new, |before| before.end_time.clone()),
        created_at: now.to_owned(),
    })
}

fn chain_hash(parent: &str, content_hash: &str) -> String {
    let parent = if parent.is_empty() { "plcbundle:genesis" } else { parent };
    hash_text(format!("{parent}:{content_hash}").as_bytes())
}

fn hash_text(bytes: &[u8]) -> String {
    HEXLOWER.encode(&sha256::digest(bytes))
}

fn iso(micros: i64) -> String {
    let mut text = String::new();
    push_iso(micros, &mut text);
    text
}

fn decompress(compressed: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let decoder = zstd::stream::read::Decoder::new(compressed)?;
    decoder.take(MAX_CONTENT_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_CONTENT_BYTES {
        return Err(std::io::Error::other("more than 640 MiB of lines"));
    }
    Ok(content)
}

fn read_at_most(path: &Path, max: u64) -> Result<Vec<u8>, BundleError> {
    let failed = |error| BundleError::File(path.to_owned(), error);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(max + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > max {
        return Err(failed(std::io::Error::other(format!("longer than {max} bytes"))));
    }
    Ok(bytes)
}

const INDEX: &str = "plc_bundles.json";

/// Number of operations of a bundle.
const MAX_OPERATIONS: u64 = 10_000;

const ZSTD_LEVEL: i32 = 3;
const MAX_INDEX_BYTES: u64 = 256 << 20;
const MAX_BUNDLE_BYTES: u64 = 256 << 20;

/// Maximum length of the lines of a bundle: 10,000 of the maximum length of a line.
const MAX_CONTENT_BYTES: u64 = 640 << 20;
