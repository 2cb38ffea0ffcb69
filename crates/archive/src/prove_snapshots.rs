//! Proves the snapshots of an archive again: the tree of their records must have the root that the account signed.

use atproto::commit::UnsignedCommit;
use atproto::mst::Builder;
use codec::cid::Codec;
use codec::{AnyCid, Cid};
use crypto::PublicKey;
use kernels::sha256;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::scan::{RecordColumns, Row, Scan, SnapshotColumns};
use crate::verify::{Finding, Rule, Verification};

impl Archive {
    pub(crate) async fn prove_snapshots(
        &self,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        let mut snapshots: Scan<SnapshotColumns> = self.scan().await?;
        let mut repositories = Repositories { records: self.scan().await?, next: None };
        let mut built = repositories.build_next().await?;
        while let Some(row) = snapshots.next().await? {
            verification.report.snapshots += 1;
            let place =
                (row.columns().did.value(row.index()), row.columns().rev.value(row.index()));
            while built.as_ref().is_some_and(|built| built.place() < place) {
                built = repositories.build_next().await?;
            }
            let records = built.as_ref().filter(|built| built.place() == place);
            match check(&row, records) {
                Ok(()) => verification.report.proved_snapshots += 1,
                Err((code, message)) => {
                    let (file, number) = row.place();
                    verification.refuse(Finding {
                        file: file.to_owned(),
                        row: Some(number),
                        did: Some(place.0.to_owned()),
                        code,
                        message,
                    });
                }
            }
        }
        Ok(())
    }
}

/// The records of a revision, as a tree.
struct Built {
    did: Box<str>,
    rev: Box<str>,
    records: i64,
    /// The root, or why there is no tree.
    root: Result<Cid, String>,
}

impl Built {
    fn place(&self) -> (&str, &str) {
        (&self.did, &self.rev)
    }
}

/// The repositories of the table `records`, one after the other.
struct Repositories {
    records: Scan<RecordColumns>,
    /// The first record of the next repository.
    next: Option<Row<RecordColumns>>,
}

impl Repositories {
    /// Builds the tree of the next repository. The same revision in two files is one: its records follow in two runs, of
    /// which the second one is left out.
    async fn build_next(&mut self) -> Result<Option<Built>, ArchiveError> {
        let first = match self.next.take() {
            Some(row) => row,
            None => match self.records.next().await? {
                Some(row) => row,
                None => return Ok(None),
            },
        };
        let (mut tree, mut chunk) = (TreeOfRecords::new(), vec![first.clone()]);
        while let Some(row) = self.records.next().await? {
            if !is_same_repository(&first, &row) {
                self.next = Some(row);
                break;
            }
            chunk.push(row);
            if chunk.len() == CHUNK_RECORDS {
                tree.add(&chunk);
                chunk.clear();
            }
        }
        tree.add(&chunk);
        let (did, rev) = place(&first);
        Ok(Some(Built {
            did: did.into(),
            rev: rev.into(),
            records: tree.records,
            root: tree.finish(),
        }))
    }
}

fn is_same_repository(a: &Row<RecordColumns>, b: &Row<RecordColumns>) -> bool {
    place(a) == place(b)
}

fn place(row: &Row<RecordColumns>) -> (&str, &str) {
    let (columns, index) = (row.columns(), row.index());
    (columns.did.value(index), columns.rev.value(index))
}

/// A tree that grows by records in order.
struct TreeOfRecords {
    builder: Builder,
    records: i64,
    fault: Option<String>,
    /// The file of the first record.
    file: Option<String>,
}

impl TreeOfRecords {
    fn new() -> Self {
        Self { builder: Builder::new(), records: 0, fault: None, file: None }
    }

    fn add(&mut self, rows: &[Row<RecordColumns>]) {
        let blocks: Vec<&[u8]> =
            rows.iter().map(|row| row.columns().record.value(row.index())).collect();
        for (row, digest) in rows.iter().zip(sha256::digest_many(&blocks)) {
            let (columns, index) = (row.columns(), row.index());
            let file = self.file.get_or_insert_with(|| row.place().0.to_owned());
            if row.place().0 != file {
                continue;
            }
            let key = format!("{}/{}", columns.collection.value(index), columns.rkey.value(index));
            let value = match arrow_array::Array::is_valid(&columns.cid, index) {
                false => Some(Cid::from_digest(Codec::DagCbor, &digest)),
                // Its hash is that of the bytes, only its codec is another.
                true => {
                    Cid::from_bytes(columns.cid.value(index)).filter(|cid| *cid.digest() == digest)
                }
            };
            self.records += 1;
            let inserted = match value {
                None => Err("the record is not what its CID names".to_owned()),
                Some(value) => match self.builder.insert(key.as_bytes(), AnyCid::from(value)) {
                    Ok(None) => Ok(()),
                    Ok(Some(_)) => Err("the path is there twice".to_owned()),
                    Err(error) => Err(error.to_string()),
                },
            };
            if let Err(fault) = inserted {
                self.fault.get_or_insert_with(|| format!("{key}: {fault}"));
            }
        }
    }

    fn finish(self) -> Result<Cid, String> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self.builder.finish().root()),
        }
    }
}

/// Checks that the account signed the tree of these records.
fn check(row: &Row<SnapshotColumns>, built: Option<&Built>) -> Result<(), (&'static str, String)> {
    let (columns, index) = (row.columns(), row.index());
    let refused = |code, message: &str| Err((code, message.to_owned()));
    let data = Cid::from_bytes(columns.data.value(index));
    let Some(data) = data else { return refused(Rule::Value.code(), "data is no CID") };
    let Ok(sig) = columns.sig.value(index).try_into() else {
        return refused(Rule::Value.code(), "sig has other than 64 bytes");
    };
    let root = match built {
        Some(built) if built.records == columns.records.value(index) => built.root.clone(),
        // A repository without records has no row.
        None if columns.records.value(index) == 0 => Ok(Builder::new().finish().root()),
        Some(_) | None => {
            return refused(Rule::Records.code(), "the table has another number of records");
        }
    };
    match root {
        Ok(root) if root == data => {}
        Ok(root) => {
            return Err((
                Rule::Records.code(),
                format!("the records give the tree {root}, the commit has {data}"),
            ));
        }
        Err(fault) => return Err((Rule::Records.code(), fault)),
    }
    let commit = UnsignedCommit {
        did: columns.did.value(index),
        rev: columns.rev.value(index),
        data,
        prev: None,
    };
    let stored = columns.commit_block.value(index);
    let message = match stored.is_empty() {
        true => commit.to_bytes(),
        false => match atproto::commit::Commit::parse(stored) {
            Ok(parsed)
                if (parsed.did, parsed.rev, parsed.data, parsed.sig)
                    == (commit.did, commit.rev, data, sig) =>
            {
                parsed.signing_bytes().to_vec()
            }
            _ => return refused(Rule::Value.code(), "commit_block is not the commit of its row"),
        },
    };
    let key = columns.key.value(index);
    let key = match PublicKey::from_did_key(key) {
        Ok(key) => key,
        Err(error) => return Err((Rule::Value.code(), format!("key {key}: {error}"))),
    };
    key.verify(&message, sig).map_err(|fault| ("signature/wrong", fault.to_string()))
}

/// Records that are hashed together.
const CHUNK_RECORDS: usize = 256;
