//! Archives as their author pleases.

use codec::Cid;
use codec::cid::Codec;
use kernels::varint;

use super::item::{Item, map};

/// A block of an archive, and the name that stands beside it, true or not.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) cid: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Section {
    /// A block of DAG-CBOR under its true name.
    pub(crate) fn of(data: Vec<u8>) -> Self {
        Self { cid: Cid::of(Codec::DagCbor, &data).as_bytes().to_vec(), data }
    }

    /// The name, of a section that has a usual one.
    pub(crate) fn name(&self) -> Cid {
        Cid::from_bytes(&self.cid).expect("a CID of the protocol")
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        delimited(&[&self.cid[..], &self.data].concat())
    }
}

/// An archive that can be changed before it is written.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    pub(crate) header: Item,
    pub(crate) sections: Vec<Section>,
}

impl Archive {
    /// The archive of these sections, with the first for its root.
    pub(crate) fn new(sections: Vec<Section>) -> Self {
        let root = Item::Link(sections[0].cid.clone());
        let header = map([("roots", Item::Array(vec![root])), ("version", Item::Int(1))]);
        Self { header, sections }
    }

    pub(crate) fn set_root(&mut self, root: &Cid) {
        *self.header.get("roots").at(0) = Item::link(root);
    }

    pub(crate) fn section(&mut self, cid: &Cid) -> &mut Section {
        let mut sections = self.sections.iter_mut();
        sections.find(|section| section.cid == cid.as_bytes()).expect("a block of the archive")
    }

    pub(crate) fn remove(&mut self, cid: &Cid) {
        self.sections.retain(|section| section.cid != cid.as_bytes());
    }

    /// The bytes of the header, and of each section.
    pub(crate) fn parts(&self) -> Vec<Vec<u8>> {
        let header = delimited(&self.header.encode());
        let sections = self.sections.iter().map(Section::to_bytes);
        [header].into_iter().chain(sections).collect()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.parts().concat()
    }
}

/// `bytes` behind their length.
pub(crate) fn delimited(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::write(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}
