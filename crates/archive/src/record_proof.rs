//! The proof of one record: the commit, the nodes on the way to the record, and the record.

use std::collections::HashMap;
use std::io;

use atproto::commit::Commit;
use atproto::event::{Decoder, Event, Options};
use atproto::mst::{BlockSource, Tree, TreeError, canonical};
use atproto::repo::Repository;
use codec::cid::Codec;
use codec::{AnyCid, Cid, car};
use kernels::sha256;

use crate::archive::Archive;
use crate::chain::{ChainCommit, Chains, ops_of_rows};
use crate::collections::Collections;
use crate::error::ArchiveError;
use crate::event_rows::{EventColumns, EventRow};
use crate::op_rows::OpColumns;
use crate::part_rows::PartColumns;
use crate::part_slice::PartSlices;
use crate::prove_compact::OpsOfCommits;
use crate::record_trees::RecordTrees;
use crate::repository_rows::{RecordColumns, SnapshotColumns};
use crate::rows::{COMPACT, FULL};
use crate::scan::Scan;
use crate::signed_commit::StoredCommit;
use crate::table_rows::{Key, Row, place};
use crate::table_scan::Selection;

impl Archive {
    /// A CAR slice, as `com.atproto.sync.getRecord` gives it, that proves the newest stored state of a record: that it
    /// is there, or that it is not. `None` if the archive has nothing of the record and no repository of the account,
    /// or if its content cannot be proved, and for hidden records.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn prove_record(
        &self,
        did: &str,
        collection: &str,
        rkey: &str,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        if self.hide_list().await?.has_record(did, collection, rkey) {
            return Ok(None);
        }
        let proof = Proof { archive: self, did, collection, rkey };
        let event = proof.last_event().await?;
        let snapshot = self.last_snapshot(did).await?;
        let part = proof.last_part().await?;
        let rev = |row: &EventRow| row.commit().map(|commit| commit.rev.to_owned());
        let snapshot_rev = |row: &Row<SnapshotColumns>| row.commit().rev.to_owned();
        if let Some(part) = part {
            let part_rev = Some(part.part()[1].to_owned());
            let event_rev = event.as_ref().and_then(rev);
            if part_rev > event_rev && part_rev > snapshot.as_ref().map(snapshot_rev) {
                return proof.of_part(&part).await;
            }
        }
        match (event, snapshot) {
            (None, None) => Ok(None),
            (Some(event), snapshot) if rev(&event) > snapshot.as_ref().map(snapshot_rev) => {
                match event.form() {
                    FULL => Ok(proof.of_frame(&event)),
                    COMPACT => proof.of_chain(&event).await,
                    _ => Ok(None),
                }
            }
            (_, Some(snapshot)) => proof.of_snapshot(&snapshot).await,
            (Some(_), None) => Ok(None),
        }
    }
}

/// The record that is proved.
struct Proof<'a> {
    archive: &'a Archive,
    did: &'a str,
    collection: &'a str,
    rkey: &'a str,
}

impl Proof<'_> {
    fn key(&self) -> String {
        format!("{}/{}", self.collection, self.rkey)
    }

    fn selection(&self) -> Selection {
        Selection { did: Some(self.did.to_owned()), ..Selection::default() }
    }

    fn place(&self, number: i64) -> Key {
        Key { did: Some(self.did.into()), number, text: None }
    }

    /// The last verified event with an operation on the record.
    async fn last_event(&self) -> Result<Option<EventRow>, ArchiveError> {
        let mut ops: Scan<OpColumns> = self.archive.scan(&self.selection()).await?;
        ops.skip_to(&self.place(i64::MIN)).await?;
        let mut last = None;
        let end = self.place(i64::MAX);
        while let Some(op) = ops.next_before(&end).await? {
            if op.path() == (self.collection, self.rkey) {
                last = Some(op.arrival());
            }
        }
        let Some(arrival) = last else { return Ok(None) };
        let mut events: Scan<EventColumns> = self.archive.scan(&self.selection()).await?;
        events.skip_to(&self.place(arrival)).await?;
        let row = events.next_before(&self.place(arrival.saturating_add(1))).await?;
        Ok(row.map(EventRow))
    }

    /// The last part that has the collection.
    async fn last_part(&self) -> Result<Option<Row<PartColumns>>, ArchiveError> {
        let mut parts: Scan<PartColumns> = self.archive.scan(&self.selection()).await?;
        let mut last = None;
        while let Some(row) = parts.next().await? {
            let [did, _, collections] = row.part();
            let has = |collections: Collections| collections.has(self.collection);
            if did == self.did && collections.parse().is_ok_and(has) {
                last = Some(row);
            }
        }
        Ok(last)
    }

    async fn of_part(&self, part: &Row<PartColumns>) -> Result<Option<Vec<u8>>, ArchiveError> {
        let mut slices = PartSlices::open(self.archive, &self.selection()).await?;
        let Ok(slice) = slices.of(part).await? else { return Ok(None) };
        let Ok(repository) = Repository::read(&slice.archive, &car::Options::default()) else {
            return Ok(None);
        };
        let data = repository.commit().data;
        let Ok(found) = canonical::search(data, &repository, self.key().as_bytes()) else {
            return Ok(None);
        };
        let nodes: Vec<(Cid, Vec<u8>)> =
            found.nodes.iter().map(|(cid, node)| (*cid, node.to_vec())).collect();
        let value = found.value.and_then(|value| value.to_cid());
        let record = value.as_ref().map(|cid| (cid, repository.block(cid)));
        Ok(write_slice(&repository.root(), repository.commit_block(), &nodes, record).ok())
    }

    fn of_frame(&self, event: &EventRow) -> Option<Vec<u8>> {
        let frame = event.event().frame;
        let mut decoder = Decoder::new(Options::default());
        let Ok(Event::Commit(commit)) = decoder.decode(frame) else { return None };
        let blocks = commit.blocks.iter();
        let blocks: HashMap<Cid, &[u8]> = blocks
            .filter_map(|block| Some((Cid::from_bytes(block.cid.as_bytes())?, block.data)))
            .collect();
        let block = *blocks.get(&commit.commit)?;
        let data = Commit::parse(block).ok()?.data;
        let mut tree = Tree::load_partial(data, &blocks);
        let record = |cid: &Cid| blocks.get(cid).copied();
        self.slice(&commit.commit, block, &mut tree, record).ok()?
    }

    async fn of_chain(&self, event: &EventRow) -> Result<Option<Vec<u8>>, ArchiveError> {
        let mut ops = OpsOfCommits::open(self.archive, &self.selection()).await?;
        let mut trees = RecordTrees::open(self.archive, &self.selection()).await?;
        let mut chains = Chains::default();
        let mut events: Scan<EventColumns> = self.archive.scan(&self.selection()).await?;
        events.skip_to(&self.place(i64::MIN)).await?;
        let last = event.event().arrival;
        let mut record = None;
        while let Some(row) = events.next_before(&self.place(last.saturating_add(1))).await? {
            let row = EventRow(row);
            let Some(commit) = row.commit().filter(|_| row.form() == COMPACT) else { continue };
            let rows = ops.at(commit.did, row.event().arrival).await?;
            if let Some(op) = rows.iter().rfind(|op| op.path() == (self.collection, self.rkey)) {
                record = op.record().1.map(<[u8]>::to_vec);
            }
            let Ok(ops) = ops_of_rows(&rows) else { return Ok(None) };
            let did = commit.did;
            let rev = commit.rev;
            let since = row.since();
            let chained = ChainCommit { did, rev, since, ops };
            let Ok(data) = trees.apply(&mut chains, chained).await? else { return Ok(None) };
            if row.event().arrival == last {
                let Some(tree) = chains.tree() else { return Ok(None) };
                return Ok(self.stored_slice(&commit, data, tree, record.as_deref()));
            }
        }
        Ok(None)
    }

    async fn of_snapshot(
        &self,
        snapshot: &Row<SnapshotColumns>,
    ) -> Result<Option<Vec<u8>>, ArchiveError> {
        let commit = snapshot.commit();
        let mut trees = RecordTrees::open(self.archive, &self.selection()).await?;
        let tree = match trees.tree_at(commit.did, commit.rev).await? {
            Some(tree) => Some(tree),
            None => (snapshot.records() == 0).then(Tree::empty),
        };
        let Some(mut tree) = tree else { return Ok(None) };
        let mut records: Scan<RecordColumns> = self.archive.scan(&self.selection()).await?;
        records.skip_to(&place(commit.did, commit.rev)).await?;
        let mut record = None;
        while let Some(row) = records.next().await? {
            if row.revision() != (commit.did, commit.rev) || record.is_some() {
                break;
            }
            if row.path() == (self.collection, self.rkey) {
                record = Some(row.bytes().to_vec());
            }
        }
        let data = tree.root();
        Ok(self.stored_slice(&commit, data, &mut tree, record.as_deref()))
    }

    /// The slice of a commit that is stored by its fields; `None` if they differ from the signed commit.
    fn stored_slice(
        &self,
        commit: &StoredCommit<'_>,
        data: Cid,
        tree: &mut Tree,
        record: Option<&[u8]>,
    ) -> Option<Vec<u8>> {
        let block = commit.to_block(data)?;
        let cid = Cid::from_digest(Codec::DagCbor, &sha256::digest(&block));
        self.slice(&cid, &block, tree, |_| record).ok()?
    }

    fn slice<'t, 'r, S: BlockSource<'t>>(
        &self,
        commit: &Cid,
        block: &[u8],
        tree: &mut Tree<S>,
        record: impl FnOnce(&Cid) -> Option<&'r [u8]>,
    ) -> Result<Option<Vec<u8>>, TreeError> {
        let key = self.key();
        let nodes = tree.record_proof(key.as_bytes())?;
        let value = tree.get(key.as_bytes())?.map(AnyCid::from);
        let value = value.and_then(|cid| Cid::from_bytes(cid.as_bytes()));
        let record = value.as_ref().map(|cid| (cid, record(cid)));
        let written = write_slice(commit, block, &nodes, record);
        // A vector takes every write.
        Ok(written.ok())
    }
}

fn write_slice(
    commit: &Cid,
    block: &[u8],
    nodes: &[(Cid, Vec<u8>)],
    record: Option<(&Cid, Option<&[u8]>)>,
) -> io::Result<Vec<u8>> {
    let mut writer = car::Writer::new(Vec::new(), std::slice::from_ref(commit))?;
    writer.block(commit, block)?;
    for (cid, node) in nodes {
        writer.block(cid, node)?;
    }
    if let Some((cid, Some(record))) = record {
        writer.block(cid, record)?;
    }
    Ok(writer.into_inner())
}
