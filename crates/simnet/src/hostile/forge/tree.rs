//! Trees as their author pleases: nodes put together by hand, then hashed and signed.

use codec::Cid;
use codec::cid::Codec;

use super::archive::{Archive, Section};
use super::item::{Item, map};
use crate::hostile::scene::Scene;
use crate::tree::shared_prefix_len;

/// A record and the key that it stands under.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) key: String,
    pub(crate) record: Vec<u8>,
    /// What the record's CID says that it is.
    pub(crate) codec: Codec,
}

impl Leaf {
    pub(crate) fn cid(&self) -> Cid {
        Cid::of(self.codec, &self.record)
    }

    /// The record's block.
    pub(crate) fn section(&self) -> Section {
        Section { cid: self.cid().as_bytes().to_vec(), data: self.record.clone() }
    }
}

/// A key of a node, and the child to the right of it.
pub(crate) type Place<'l> = (&'l Leaf, Option<Cid>);

/// A repository that is being put together.
pub(crate) struct Forge<'s> {
    scene: &'s Scene,
    sections: Vec<Section>,
}

impl<'s> Forge<'s> {
    pub(crate) fn new(scene: &'s Scene) -> Self {
        Self { scene, sections: Vec::new() }
    }

    /// Adds a node as it should be written, and the records of its keys.
    pub(crate) fn node(&mut self, left: Option<Cid>, places: &[Place<'_>]) -> Cid {
        self.odd_node(left, places, |_| ())
    }

    /// Adds a node that `change` has been at before it was hashed, and the records of its keys.
    pub(crate) fn odd_node(
        &mut self,
        left: Option<Cid>,
        places: &[Place<'_>],
        change: impl FnOnce(&mut Item),
    ) -> Cid {
        for (leaf, _) in places {
            self.add(leaf.section());
        }
        let mut node = node(left, places);
        change(&mut node);
        self.block(node.encode())
    }

    /// Adds any block.
    pub(crate) fn block(&mut self, data: Vec<u8>) -> Cid {
        let section = Section::of(data);
        let name = section.name();
        self.add(section);
        name
    }

    fn add(&mut self, section: Section) {
        if self.sections.iter().all(|other| other.cid != section.cid) {
            self.sections.push(section);
        }
    }

    /// The archive with this root for its tree, under a commit that the account has signed.
    pub(crate) fn signed(self, data: Cid) -> Archive {
        let commit = self.scene.commit(&data);
        self.committed(commit)
    }

    /// The archive with this for its commit.
    pub(crate) fn committed(self, commit: Item) -> Archive {
        let mut sections = vec![Section::of(commit.encode())];
        sections.extend(self.sections);
        Archive::new(sections)
    }

    /// The archive of a tree of one node.
    pub(crate) fn one_node(scene: &'s Scene, leaves: &[Leaf]) -> Archive {
        Self::one_odd_node(scene, leaves, |_| ())
    }

    /// The same, when `change` has been at the node.
    pub(crate) fn one_odd_node(
        scene: &'s Scene,
        leaves: &[Leaf],
        change: impl FnOnce(&mut Item),
    ) -> Archive {
        let mut forge = Self::new(scene);
        let places: Vec<Place<'_>> = leaves.iter().map(|leaf| (leaf, None)).collect();
        let root = forge.odd_node(None, &places, change);
        forge.signed(root)
    }
}

/// A node as it should be written.
pub(crate) fn node(left: Option<Cid>, places: &[Place<'_>]) -> Item {
    let mut previous = "";
    let mut entries = Vec::new();
    for (leaf, right) in places {
        let prefix = shared_prefix_len(previous, &leaf.key);
        entries.push(map([
            ("k", Item::Bytes(leaf.key.as_bytes()[prefix..].to_vec())),
            ("p", Item::Int(prefix as i64)),
            ("t", Item::link_or_null(right.as_ref())),
            ("v", Item::link(&leaf.cid())),
        ]));
        previous = &leaf.key;
    }
    map([("e", Item::Array(entries)), ("l", Item::link_or_null(left.as_ref()))])
}
