//! A repository with nothing wrong, taken to pieces.

use codec::Cid;

use super::forge::archive::{Archive, Section};
use crate::account::Account;
use crate::tree::{Tree, Visit};

/// An archive in streamable order, and which of its blocks is what.
#[derive(Clone, Debug)]
pub(crate) struct Healthy {
    pub(crate) archive: Archive,
    /// The nodes, parents before children, from left to right.
    pub(crate) nodes: Vec<Cid>,
    /// The records, in the order of their keys.
    pub(crate) records: Vec<Cid>,
}

impl Healthy {
    /// What `account` has.
    pub(crate) fn of(account: &Account) -> Self {
        let repository = account.open_repository();
        let mut sections = Vec::new();
        repository.for_each_block(&mut |_, data| sections.push(Section::of(data.to_vec())));
        let (nodes, records) = contents(repository.tree());
        Self { archive: Archive::new(sections), nodes, records }
    }

    pub(crate) fn commit(&self) -> Cid {
        self.archive.sections[0].name()
    }

    /// The root of the tree.
    pub(crate) fn root(&self) -> Cid {
        self.nodes[0]
    }

    /// The last node before the first record: what a walk of the keys meets first.
    pub(crate) fn leading_node(&self) -> Cid {
        let first_record = self.place(&self.records[0]);
        self.archive.sections[first_record - 1].name()
    }

    /// Where a block stands in the archive.
    pub(crate) fn place(&self, cid: &Cid) -> usize {
        let mut sections = self.archive.sections.iter();
        sections.position(|section| section.cid == cid.as_bytes()).expect("a block of the archive")
    }

    /// The archive after `change`.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Archive)) -> Archive {
        let mut archive = self.archive.clone();
        change(&mut archive);
        archive
    }
}

fn contents(tree: &Tree) -> (Vec<Cid>, Vec<Cid>) {
    let (mut nodes, mut records) = (Vec::new(), Vec::new());
    tree.walk(&mut |visit| match visit {
        Visit::Node(node) => nodes.push(node.cid),
        Visit::Record(entry) => records.push(entry.value),
    });
    (nodes, records)
}
