//! The blobs of accounts: their content, once for all accounts, under its CID; and a row for every account that has it.
//!
//! ```text
//! stage_blob ── hash ── put_blob: blob_files/<first byte>/<cid> ── seal_blobs: a row per account
//! ```
//!
//! Content is stored before a row names it, and deleted before the last row is. Until a row names it, it is announced as files
//! of tables are: the content of a process that ends before is deleted a day later.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use base::crash_point;
use codec::Cid;
use codec::cid::Codec;
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};

use crate::archive::Archive;
use crate::blob_rows::BlobColumns;
use crate::delta::{Change, now_ms};
use crate::erase::Erased;
use crate::error::ArchiveError;
use crate::rule::Rule;
use crate::scan::Scan;
use crate::sealed::Sealed;
use crate::staged_file::StagedFile;
use crate::table::{Table, day_of};
use crate::table_file::TableFile;
use crate::table_rows::Row;
use crate::table_scan::Selection;
use crate::uploads::{self, MAX_UPLOAD};
use crate::verification::{Finding, Verification};

/// A blob that is stored for an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    /// The account.
    pub did: String,
    /// The CID.
    pub cid: Cid,
    /// Size in bytes.
    pub size: u64,
    /// The origin of the host that sent it.
    pub host: String,
    /// The time at which it was fetched, in microseconds since 1970.
    pub fetched: i64,
}

/// Why the content of a blob is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobFault {
    /// The file is missing.
    #[error("the blob is missing")]
    Missing,
    /// The hash of the bytes is another.
    #[error("the bytes of the blob do not have the hash in its CID")]
    OtherBytes,
}

/// The content of a blob that is being received, on disk, and its hash.
#[derive(Debug)]
pub struct BlobFile {
    file: StagedFile,
    hash: Sha256,
    size: u64,
}

impl BlobFile {
    /// Number of bytes so far.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Write for BlobFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Archive {
    /// A file for the content of a blob, which [`put_blob`](Self::put_blob) stores.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn stage_blob(&self) -> Result<BlobFile, ArchiveError> {
        Ok(BlobFile { file: self.storage().stage()?, hash: Sha256::new(), size: 0 })
    }

    /// Stores content under its CID; `false`, and nothing is stored, if it has another hash.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub async fn put_blob(&self, cid: &Cid, content: BlobFile) -> Result<bool, ArchiveError> {
        let digest: [u8; 32] = content.hash.finalize().into();
        if Cid::from_digest(Codec::Raw, &digest) != *cid {
            return Ok(false);
        }
        uploads::announce(self.storage(), Table::Blobs, &path(cid)).await?;
        self.storage().upload(&path(cid), content.file).await?;
        crash_point("archive/blob-stored");
        Ok(true)
    }

    /// The size in bytes of the content of a blob; `None` if it is not there.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn blob_size(&self, cid: &Cid) -> Result<Option<u64>, ArchiveError> {
        self.storage().size(&path(cid)).await
    }

    /// Adds rows for accounts that are not erased, and whose blobs are stored.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn seal_blobs(&self, mut blobs: Vec<StoredBlob>) -> Result<Sealed, ArchiveError> {
        let list = self.hide_list().await?;
        list.check_erasure_keys()?;
        blobs.retain(|blob| !list.is_erased(&blob.did));
        let place = |blob: &StoredBlob| (blob.did.clone(), blob.fetched, *blob.cid.as_bytes());
        blobs.sort_by_key(place);
        blobs.dedup_by(|a, b| a.did == b.did && a.cid == b.cid);
        let mut days: BTreeMap<_, Vec<&StoredBlob>> = BTreeMap::new();
        for blob in &blobs {
            days.entry(day_of(blob.fetched)).or_default().push(blob);
        }
        let mut add = Vec::new();
        for (day, blobs) in days {
            let mut file = TableFile::create(self.storage(), Table::Blobs, day)?;
            file.write(&rows(&blobs))?;
            add.extend(file.finish(self.storage()).await?);
        }
        if add.is_empty() {
            return Ok(Sealed::default());
        }
        let bytes = add.iter().map(|add| add.size).sum();
        let sealed = Sealed { events: 0, files: add.len() as u64, bytes };
        let change = Change { operation: "WRITE", add, ..Change::default() };
        self.commit(Table::Blobs, &change).await?;
        crash_point("archive/blobs-sealed");
        for blob in &blobs {
            uploads::settle(self.storage(), Table::Blobs, &path(&blob.cid)).await?;
        }
        Ok(sealed)
    }

    /// The CIDs of the blobs that are stored for an account, with their sizes in bytes.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn blobs_of(&self, did: &str) -> Result<BTreeMap<Cid, u64>, ArchiveError> {
        let selection = Selection { did: Some(did.to_owned()), ..Selection::default() };
        let mut rows: Scan<BlobColumns> = self.scan(&selection).await?;
        let mut blobs = BTreeMap::new();
        while let Some(row) = rows.next().await? {
            if let (true, Some(cid)) = (row.did() == did, row.cid()) {
                blobs.insert(cid, u64::try_from(row.size()).unwrap_or_default());
            }
        }
        Ok(blobs)
    }

    /// Hashes the content of a blob again, and returns its size in bytes, or its fault.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn check_blob(&self, cid: &Cid) -> Result<Result<u64, BlobFault>, ArchiveError> {
        let mut parts = std::pin::pin!(self.storage().read(&path(cid)));
        let (mut hash, mut size) = (Sha256::new(), 0);
        loop {
            match parts.try_next().await {
                Ok(Some(part)) => {
                    hash.update(&part);
                    size += part.len() as u64;
                }
                Ok(None) => break,
                Err(error) if error.is_missing_file() => return Ok(Err(BlobFault::Missing)),
                Err(error) => return Err(error),
            }
        }
        let digest: [u8; 32] = hash.finalize().into();
        let is_it = Cid::from_digest(Codec::Raw, &digest) == *cid;
        Ok(if is_it { Ok(size) } else { Err(BlobFault::OtherBytes) })
    }

    /// Deletes the content of the blobs that only this account has. Its rows stay until the table is rewritten.
    pub(crate) async fn erase_blobs(
        &self,
        did: &str,
        erased: &mut Erased,
    ) -> Result<(), ArchiveError> {
        let mut own: BTreeSet<Cid> = self.blobs_of(did).await?.into_keys().collect();
        self.retain_unnamed(&mut own, Some(did)).await?;
        for cid in own {
            let Some(size) = self.blob_size(&cid).await? else { continue };
            self.storage().delete(&path(&cid)).await?;
            erased.blobs += 1;
            erased.bytes = erased.bytes.saturating_add(size);
        }
        Ok(())
    }

    /// Retains the blobs that no row names, rows of one account apart.
    async fn retain_unnamed(
        &self,
        blobs: &mut BTreeSet<Cid>,
        except: Option<&str>,
    ) -> Result<(), ArchiveError> {
        if blobs.is_empty() {
            return Ok(());
        }
        let mut rows: Scan<BlobColumns> = self.scan(&Selection::default()).await?;
        while let Some(row) = rows.next().await? {
            if let (true, Some(cid)) = (except != Some(row.did()), row.cid()) {
                blobs.remove(&cid);
            }
        }
        Ok(())
    }

    /// Deletes the content that was announced a day ago and that no row names, and returns the number of later ones.
    pub(crate) async fn sweep_blobs(&self) -> Result<u64, ArchiveError> {
        let announced = uploads::announced(self.storage(), Table::Blobs).await?;
        let announced: BTreeMap<Cid, i64> =
            announced.iter().filter_map(|(path, at)| Some((cid_of(path)?, *at))).collect();
        let mut unnamed = announced.keys().copied().collect();
        self.retain_unnamed(&mut unnamed, None).await?;
        let mut later = 0;
        for (cid, announced_ms) in announced {
            let is_unnamed = unnamed.contains(&cid);
            if is_unnamed && now_ms().saturating_sub(announced_ms) <= MAX_UPLOAD.as_millis() as i64
            {
                later += 1;
                continue;
            }
            if is_unnamed {
                self.storage().delete(&path(&cid)).await?;
            }
            uploads::settle(self.storage(), Table::Blobs, &path(&cid)).await?;
        }
        Ok(later)
    }

    /// Hashes the blobs of the selected accounts again.
    pub(crate) async fn prove_blobs(
        &self,
        selection: &Selection,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        let mut rows: Scan<BlobColumns> = self.scan(selection).await?;
        while let Some(row) = rows.next().await? {
            if !verification.has_account(row.did()) || row.fetched() < verification.since() {
                continue;
            }
            verification.report.blobs += 1;
            match self.blob_fault(&row).await? {
                None => verification.report.proved_blobs += 1,
                Some(message) => verification.refuse(finding(&row, message)),
            }
        }
        Ok(())
    }

    async fn blob_fault(&self, row: &Row<BlobColumns>) -> Result<Option<String>, ArchiveError> {
        let Some(cid) = row.cid().filter(|cid| cid.codec() == Codec::Raw) else {
            return Ok(Some("the row has no CID of a blob".to_owned()));
        };
        Ok(match self.check_blob(&cid).await? {
            Ok(size) if i64::try_from(size) == Ok(row.size()) => None,
            Ok(size) => Some(format!("{cid} has {size} bytes, and the row says {}", row.size())),
            Err(fault) => Some(format!("{cid}: {fault}")),
        })
    }
}

fn finding(row: &Row<BlobColumns>, message: String) -> Finding {
    let (file, number) = row.place();
    let did = Some(row.did().to_owned());
    Finding { file: file.to_owned(), row: Some(number), did, code: Rule::Blob.code(), message }
}

/// The path of the content of a blob within the archive.
fn path(cid: &Cid) -> String {
    format!("{FILES}/{:02x}/{cid}", cid.digest()[0])
}

/// The CID of a blob by the path of its content.
fn cid_of(path: &str) -> Option<Cid> {
    let cid: Cid = path.rsplit_once('/')?.1.parse().ok()?;
    (self::path(&cid) == path).then_some(cid)
}

fn rows(blobs: &[&StoredBlob]) -> RecordBatch {
    let mut did = StringBuilder::new();
    let mut fetched = TimestampMicrosecondBuilder::new();
    let mut cid = BinaryBuilder::new();
    let mut size = Int64Builder::new();
    let mut host = StringBuilder::new();
    for blob in blobs {
        did.append_value(&blob.did);
        fetched.append_value(blob.fetched);
        cid.append_value(blob.cid.as_bytes());
        size.append_value(i64::try_from(blob.size).unwrap_or(i64::MAX));
        host.append_value(&blob.host);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(did.finish()),
        Arc::new(fetched.finish().with_timezone("UTC")),
        Arc::new(cid.finish()),
        Arc::new(size.finish()),
        Arc::new(host.finish()),
    ];
    RecordBatch::try_new(Table::Blobs.schema(), columns).expect("the columns of the table")
}

/// The folder of the content.
const FILES: &str = "blob_files";
