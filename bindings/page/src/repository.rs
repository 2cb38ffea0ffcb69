//! A proved repository as tables: its nodes in the order of the walk, and its records in the order of their paths.

use std::io::{self, Read};

use atproto::commit::Commit;
use atproto::mst::canonical::Step;
use atproto::mst::{TreeLimits, key_height};
use atproto::repo::{self, BlockTotals, RepoError, Repository};
use codec::car::{self, CarFault, Sections};
use crypto::PublicKey;
use serde::Serialize;
use verify::repository::stream::{self, StreamFailure, StreamOptions};
use verify::repository::{self as whole, RepositoryFault, RepositoryRejection};
use verify::{InvalidRecord, InvalidRecords};

use crate::{Refusal, Result, find};

/// A proved repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The fields of the commit, and the totals.
    pub summary: Summary,
    /// Six numbers a node: parent or `u32::MAX`, layer, offset and length of the block, first record and the one after
    /// the last below it.
    pub nodes: Vec<u32>,
    /// Four numbers a record: end of its path in `paths`, node, offset and length of the block.
    pub records: Vec<u32>,
    /// The paths, one after the other.
    pub paths: Vec<u8>,
}

/// The fields of a commit, and the totals of its repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The account.
    pub did: String,
    /// The revision.
    pub rev: String,
    /// CID of the commit.
    pub commit: String,
    /// CID of the root of the tree.
    pub data: String,
    /// Offset and length of the commit block.
    pub commit_at: (usize, usize),
    /// Offset and length of the signature.
    pub signature_at: Option<(usize, usize)>,
    /// Whether the key signed the commit; otherwise no key was given.
    pub signed: bool,
    /// Blocks in the archive.
    pub blocks: u64,
    /// Nodes of the tree.
    pub nodes: u64,
    /// Records of the tree.
    pub records: u64,
    /// Blocks that the commit does not lead to.
    pub extra_blocks: u64,
    /// Bytes of these blocks.
    pub extra_bytes: u64,
    /// Records that are signed and invalid.
    pub invalid_records: u64,
    /// The first of them.
    pub first_invalid: Option<Refusal>,
}

/// Verifies an export as [`whole::verify`] does, without a key all but the signature, and lists its nodes and records.
/// `progress` gets the number of bytes that were read.
///
/// # Errors
/// At the first fault.
pub fn view(
    export: &[u8],
    did: Option<&str>,
    key: Option<&PublicKey>,
    progress: impl FnMut(usize),
) -> Result<View> {
    let proof =
        prove(export, did, key, progress).map_err(|rejection| refusal(export, &rejection))?;
    let of_proved = |error: RepoError| refusal(export, &error.into());
    let repository = Repository::read(export, &trusting()).map_err(of_proved)?;
    let mut view = View::default();
    view.walk(&repository, proof.height).map_err(of_proved)?;
    view.summary = Summary {
        signed: key.is_some(),
        blocks: proof.blocks,
        extra_blocks: proof.extra.blocks,
        extra_bytes: proof.extra.bytes,
        invalid_records: proof.invalid.records,
        first_invalid: proof.invalid.first.as_ref().map(|first| invalid(&repository, first)),
        ..summary(&repository)
    };
    view.summary.nodes = (view.nodes.len() / NODE) as u64;
    view.summary.records = (view.records.len() / RECORD) as u64;
    Ok(view)
}

/// Options for an archive whose hashes were checked already.
fn trusting() -> repo::Options {
    let mut options = repo::Options::default();
    options.trust_hashes = true;
    options
}

/// An invalid record and its place.
pub(super) fn invalid(repository: &Repository<'_>, record: &InvalidRecord) -> Refusal {
    let block = repository.block(&record.cid);
    let at = block.map_or(0, |block| repository.archive().offset_of(block)) as usize;
    Refusal {
        cid: Some(record.cid.to_string()),
        path: Some(record.path.to_string()),
        ..Refusal::new(record.error.code(), record.error.fault).at(at + record.error.offset)
    }
}

/// Facts that the verification alone has found.
struct Proof {
    blocks: u64,
    height: u8,
    extra: BlockTotals,
    invalid: InvalidRecords,
}

/// Verifies as a stream, which reports its progress; an archive whose order takes too much memory for that, as a whole.
fn prove(
    export: &[u8],
    did: Option<&str>,
    key: Option<&PublicKey>,
    progress: impl FnMut(usize),
) -> Result<Proof, RepositoryRejection> {
    let source = Reported { rest: export, len: export.len(), next: 0, progress };
    let opened = stream::open(source, &StreamOptions::default());
    let proved = opened.and_then(|opened| match key {
        Some(key) => opened.verify_signature(did, key)?.verify(),
        None => opened.without_signature().verify(),
    });
    match proved {
        Ok(proved) => Ok(Proof {
            blocks: proved.blocks(),
            height: proved.tree().height.unwrap_or_default(),
            extra: proved.extra(),
            invalid: proved.invalid_records().clone(),
        }),
        Err(StreamFailure::Rejected(rejection)) => Err(*rejection),
        Err(_) => prove_whole(export, did, key),
    }
}

fn prove_whole(
    export: &[u8],
    did: Option<&str>,
    key: Option<&PublicKey>,
) -> Result<Proof, RepositoryRejection> {
    let options = whole::Options::default();
    let proved = match key {
        Some(key) => whole::verify(export, did, key, &options)?,
        None => whole::verify_without_signature(export, &options)?,
    };
    Ok(Proof {
        blocks: proved.archive().block_count(),
        height: proved.tree().height.unwrap_or_default(),
        extra: proved.extra(),
        invalid: proved.invalid_records().clone(),
    })
}

/// A reader that reports how far it was read.
struct Reported<'a, P> {
    rest: &'a [u8],
    len: usize,
    /// The next length to report.
    next: usize,
    progress: P,
}

impl<P: FnMut(usize)> Read for Reported<'_, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.rest.read(buffer)?;
        let done = self.len - self.rest.len();
        if done >= self.next {
            (self.progress)(done);
            self.next = done + REPORT_BYTES;
        }
        Ok(read)
    }
}

/// The fields of the commit, without totals.
pub(super) fn summary(repository: &Repository<'_>) -> Summary {
    let (commit, block) = (repository.commit(), repository.commit_block());
    let at = repository.archive().offset_of(block) as usize;
    Summary {
        did: commit.did.to_owned(),
        rev: commit.rev.to_owned(),
        commit: repository.root().to_string(),
        data: commit.data.to_string(),
        commit_at: (at, block.len()),
        signature_at: find(block, commit.sig).map(|inside| (at + inside, commit.sig.len())),
        ..Summary::default()
    }
}

impl View {
    /// Lists nodes and records of a tree that is proved already, so that the height of a key tells its node.
    fn walk(&mut self, repository: &Repository<'_>, height: u8) -> Result<(), RepoError> {
        let archive = repository.archive();
        let mut walk = repository.walk(&TreeLimits::default());
        // The nodes from the root to the current one.
        let mut path: Vec<u32> = Vec::new();
        while let Some(step) = walk.next() {
            match step.map_err(|error| RepoError::in_tree(error, archive))? {
                Step::Node { block, .. } => {
                    let layer = usize::from(height).saturating_sub(path.len());
                    let parent = path.last().copied().unwrap_or(NO_PARENT);
                    path.push((self.nodes.len() / NODE) as u32);
                    let at = archive.offset_of(block) as u32;
                    let first = (self.records.len() / RECORD) as u32;
                    self.nodes.extend([parent, layer as u32, at, block.len() as u32, first, first]);
                }
                Step::Record { key, value } => {
                    path.truncate(1 + usize::from(height.saturating_sub(key_height(key))));
                    let node = path.last().copied().unwrap_or_default();
                    self.paths.extend_from_slice(key);
                    let block = value.to_cid().and_then(|cid| archive.block(&cid));
                    let at = block.map_or(0, |block| archive.offset_of(block) as u32);
                    let len = block.map_or(0, <[u8]>::len) as u32;
                    self.records.extend([self.paths.len() as u32, node, at, len]);
                }
            }
        }
        self.close();
        Ok(())
    }

    /// Sets the end of the records below each node: children come after their parents.
    fn close(&mut self) {
        for (index, record) in self.records.chunks_exact(RECORD).enumerate() {
            self.nodes[record[1] as usize * NODE + END] = index as u32 + 1;
        }
        for node in (0..self.nodes.len() / NODE).rev() {
            let (parent, end) = (self.nodes[node * NODE], self.nodes[node * NODE + END]);
            if parent != NO_PARENT {
                let of_parent = &mut self.nodes[parent as usize * NODE + END];
                *of_parent = end.max(*of_parent);
            }
        }
    }
}

/// The rejection with its bytes: of something missing, the link to it; of a signature, the signature.
pub(super) fn refusal(archive: &[u8], rejection: &RepositoryRejection) -> Refusal {
    let cid = rejection.cid.map_or(Vec::new(), |cid| cid.as_bytes().to_vec());
    let commit = commit_of(archive);
    let refusal = Refusal {
        cid: rejection.cid.map(|cid| cid.to_string()),
        path: rejection.path.as_deref().map(str::to_owned),
        did: commit.map(|commit| commit.did.to_owned()),
        offset: rejection.offset.map(|offset| offset as usize),
        length: 1,
        ..Refusal::new(rejection.code(), rejection.fault)
    };
    let refusal = match (rejection.fault, commit) {
        (RepositoryFault::Car(CarFault::HashMismatch), _) => {
            refusal.through(archive, &cid, "the CID that its block does not match")
        }
        (RepositoryFault::Signature(_), Some(commit)) => {
            refusal.or_find(archive, commit.sig, "the signature")
        }
        (RepositoryFault::OtherAccount | RepositoryFault::Did(_), Some(commit)) => {
            refusal.or_find(archive, commit.did.as_bytes(), "the account that the commit names")
        }
        (RepositoryFault::NoRoot | RepositoryFault::Root, _) => {
            refusal.or_find(archive, b"roots", "the roots in the header")
        }
        (RepositoryFault::Rev(_), Some(commit)) => {
            refusal.or_find(archive, commit.rev.as_bytes(), "the revision")
        }
        _ => refusal,
    };
    let path = refusal.path.clone().unwrap_or_default();
    let (_, key) = path.split_once('/').unwrap_or_default();
    refusal
        .or_find(archive, &cid, "the link to the block")
        .or_find(archive, path.as_bytes(), "the key")
        .or_find(
            archive,
            key.as_bytes(),
            "the key, after the part that it shares with the one before",
        )
}

/// The commit that the first root names, without a check of its hash.
fn commit_of(archive: &[u8]) -> Option<Commit<'_>> {
    let blocks = Sections::new(archive, &car::Options::default()).ok()?;
    let root = blocks.roots().first()?;
    let found = blocks.map_while(Result::ok).find(|block| block.cid == root)?;
    Commit::parse(found.data).ok()
}

/// The parent of the root.
const NO_PARENT: u32 = u32::MAX;
/// Numbers a node, and the last of them.
const NODE: usize = 6;
const END: usize = 5;
/// Numbers a record.
const RECORD: usize = 4;
/// Bytes between two reports of progress.
const REPORT_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use atproto::mst::node::Node;
    use atproto::repo::RepositoryWriter;
    use atproto::syntax::{Did, Tid};
    use crypto::{Curve, SecretKey};

    use super::*;

    const DID: &str = "did:plc:wq4aajammjtxdomz3e23667t";

    fn secret() -> SecretKey {
        SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap()
    }

    fn path(number: usize) -> String {
        format!("app.test.{}/{number:06}", ["like", "note"][number % 2])
    }

    fn export(records: usize) -> Vec<u8> {
        let mut writer = RepositoryWriter::new(Did::parse(DID).unwrap());
        for number in 0..records {
            let kind = &path(number)[.."app.test.like".len()];
            let block = [b"\xa1\x65$type\x6d", kind.as_bytes()].concat();
            writer.create(&path(number), &block).unwrap();
        }
        writer
            .commit(Tid::new(1_700_000_000_000_000, 0), |message| secret().sign(message))
            .unwrap();
        writer.export(Vec::new()).unwrap()
    }

    fn of(export: &[u8]) -> Result<View> {
        view(export, Some(DID), Some(&secret().public_key()), |_| ())
    }

    fn node(view: &View, index: usize) -> [u32; NODE] {
        view.nodes[index * NODE..][..NODE].try_into().unwrap()
    }

    #[test]
    fn every_record_has_its_path_its_block_and_its_node() {
        let export = export(500);
        let view = of(&export).unwrap();
        let repository = Repository::read(&export, &repo::Options::default()).unwrap();
        let mut start = 0;
        let mut count = 0;
        for (record, row) in repository.records().zip(view.records.chunks_exact(RECORD)) {
            let (record, [end, of, at, len]) = (record.unwrap(), row.try_into().unwrap());
            assert_eq!(view.paths[start..end as usize], *record.path.as_bytes());
            assert_eq!(export[at as usize..][..len as usize], *record.block);
            let [_, layer, node_at, node_len, first, last] = node(&view, of as usize);
            assert_eq!(layer, u32::from(key_height(record.path.as_bytes())));
            assert!((first..last).contains(&count));
            let block = &export[node_at as usize..][..node_len as usize];
            let holds = Node::parse(block)
                .unwrap()
                .entries()
                .any(|entry| entry.value.to_cid() == Some(record.cid));
            assert!(holds, "{}", record.path);
            (start, count) = (end as usize, count + 1);
        }
        assert_eq!((count, view.summary.records), (500, 500));
    }

    #[test]
    fn the_records_below_a_node_are_a_range_within_the_range_of_its_parent() {
        let view = of(&export(500)).unwrap();
        let nodes = view.nodes.len() / NODE;
        assert_eq!((node(&view, 0)[0], node(&view, 0)[4], node(&view, 0)[5]), (NO_PARENT, 0, 500));
        for index in 1..nodes {
            let [parent, layer, _, _, first, last] = node(&view, index);
            let [_, above, _, _, parent_first, parent_last] = node(&view, parent as usize);
            assert!((parent as usize) < index && above == layer + 1);
            assert!(parent_first <= first && first < last && last <= parent_last);
        }
    }

    #[test]
    fn an_empty_repository_has_a_root_and_no_record() {
        let view = of(&export(0)).unwrap();
        assert_eq!((view.nodes.len(), view.records.len(), view.paths.len()), (NODE, 0, 0));
        assert_eq!((node(&view, 0)[4], node(&view, 0)[5]), (0, 0));
    }

    #[test]
    fn progress_ends_at_the_length_of_the_archive() {
        let export = export(20_000);
        let mut reports = Vec::new();
        view(&export, None, None, |read| reports.push(read)).unwrap();
        assert!(
            reports.len() > 2 && reports.is_sorted() && *reports.last().unwrap() <= export.len()
        );
    }

    #[test]
    fn a_signature_is_marked_and_a_missing_block_by_its_link() {
        let export = export(50);
        let summary = of(&export).unwrap().summary;
        let other = SecretKey::from_bytes(Curve::K256, &[8; 32]).unwrap().public_key();
        let refusal = view(&export, Some(DID), Some(&other), |_| ()).unwrap_err();
        assert_eq!(refusal.code, "signature/wrong");
        assert_eq!(Some((refusal.offset.unwrap(), refusal.length)), summary.signature_at);
        assert_eq!(refusal.did.as_deref(), Some(DID));

        let read = car::read(&export, &car::Options::default()).unwrap();
        let root = read.blocks[0].cid.to_cid().unwrap();
        let mut writer = car::Writer::new(Vec::new(), &[root]).unwrap();
        let kept = read.blocks.iter().filter(|block| block.cid.to_string() != summary.data);
        kept.for_each(|block| writer.block(&block.cid.to_cid().unwrap(), block.data).unwrap());
        let partial = writer.into_inner();
        let refusal = of(&partial).unwrap_err();
        assert_eq!((refusal.code.as_str(), refusal.length), ("tree/missing-node", 36));
        let commit = &read.blocks[0];
        let inside = find(commit.data, read.blocks[1].cid.as_bytes()).unwrap();
        assert_eq!(refusal.offset, Some(commit.data_offset() + inside));
    }

    #[test]
    fn another_account_is_marked_where_the_commit_names_it() {
        let export = export(5);
        let key = secret().public_key();
        let other = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
        let refusal = view(&export, Some(other), Some(&key), |_| ()).unwrap_err();
        let marked = &export[refusal.offset.unwrap()..][..refusal.length];
        assert_eq!((refusal.code.as_str(), marked), ("commit/did", DID.as_bytes()));
    }

    #[test]
    fn a_cut_anywhere_is_refused_within_the_input() {
        let export = export(30);
        for len in 0..export.len() {
            let refusal = of(&export[..len]).unwrap_err();
            assert!(refusal.offset.is_none_or(|offset| offset <= len), "{len}: {refusal:?}");
        }
    }
}
