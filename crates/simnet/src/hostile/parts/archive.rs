//! CBOR items and CAR archives that can be changed, even to invalid ones, before they are encoded.

use codec::Cid;
use codec::cbor::Encoder;
use codec::cid::Codec;
use kernels::varint;

/// A block of an archive and the CID in front of it, which may be wrong.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) cid: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Section {
    /// A block of DAG-CBOR with its CID.
    pub(crate) fn of(data: Vec<u8>) -> Self {
        Self { cid: Cid::of(Codec::DagCbor, &data).as_bytes().to_vec(), data }
    }

    /// The parsed CID.
    pub(crate) fn cid(&self) -> Cid {
        Cid::from_bytes(&self.cid).expect("a CID of the protocol")
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        delimited(&[&self.cid[..], &self.data].concat())
    }
}

/// An archive that can be changed before it is encoded.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    pub(crate) header: Item,
    pub(crate) sections: Vec<Section>,
}

impl Archive {
    /// The archive of these sections with the first as its root.
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

    /// The bytes of the header and of the sections.
    pub(crate) fn parts(&self) -> Vec<Vec<u8>> {
        let header = delimited(&self.header.encode());
        let sections = self.sections.iter().map(Section::to_bytes);
        [header].into_iter().chain(sections).collect()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.parts().concat()
    }
}

/// A malformed CID: a digest of SHA-256 has 32 bytes, this one 20.
pub(crate) const SHORT_SHA_256: [u8; 24] = {
    let mut cid = [7; 24];
    (cid[0], cid[1], cid[2], cid[3]) = (1, 0x71, 0x12, 20);
    cid
};

/// `bytes` after their length.
pub(crate) fn delimited(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::write(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

/// A CBOR item that can be changed before it is encoded; the encoding is canonical unless an item says otherwise.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Null,
    Bool(bool),
    Int(i64),
    Bytes(Vec<u8>),
    Text(String),
    /// A link with these bytes as its CID, valid or not.
    Link(Vec<u8>),
    Array(Vec<Item>),
    /// Entries in encoding order.
    Map(Vec<(String, Item)>),
    /// Raw bytes.
    Raw(Vec<u8>),
}

impl Item {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn link(cid: &Cid) -> Self {
        Self::Link(cid.as_bytes().to_vec())
    }

    /// A link whose CID has a digest of 20 bytes and says that it is one of SHA-256.
    pub(crate) fn short_sha_256() -> Self {
        Self::Link(SHORT_SHA_256.to_vec())
    }

    pub(crate) fn link_or_null(cid: Option<&Cid>) -> Self {
        cid.map_or(Self::Null, Self::link)
    }

    /// A number below 256 in two bytes, even if one is enough.
    pub(crate) fn wide(number: u8) -> Self {
        Self::Raw(vec![0x18, number])
    }

    /// The bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut encoder = Encoder::new();
        match self {
            Self::Null => encoder.null(),
            Self::Bool(boolean) => encoder.boolean(*boolean),
            Self::Int(integer) => encoder.integer(*integer),
            Self::Bytes(bytes) => encoder.bytes(bytes),
            Self::Text(text) => encoder.text(text),
            Self::Link(cid) => {
                out.extend([0xd8, 0x2a]);
                encoder.bytes(&[&[0], &cid[..]].concat())
            }
            Self::Array(items) => encoder.array(items.len()),
            Self::Map(entries) => encoder.map(entries.len()),
            Self::Raw(bytes) => {
                out.extend_from_slice(bytes);
                return;
            }
        };
        out.extend(encoder.into_bytes());
        match self {
            Self::Array(items) => items.iter().for_each(|item| item.write(out)),
            Self::Map(entries) => entries.iter().for_each(|(key, item)| {
                Self::text(key).write(out);
                item.write(out);
            }),
            _ => {}
        }
    }

    /// The same string or container with indefinite length, which DAG-CBOR forbids.
    pub(crate) fn indefinite(&self) -> Self {
        let (head, inside) = match self {
            Self::Bytes(_) => (0x5f, self.encode()),
            Self::Array(items) => (0x9f, items.iter().flat_map(Self::encode).collect()),
            Self::Map(entries) => {
                let entry = |(key, item): &(String, Self)| {
                    [Self::text(key).encode(), item.encode()].concat()
                };
                (0xbf, entries.iter().flat_map(entry).collect())
            }
            _ => unreachable!("only strings and containers have lengths"),
        };
        Self::Raw([&[head], &inside[..], &[0xff]].concat())
    }

    /// The value at `key` of this map.
    pub(crate) fn get(&mut self, key: &str) -> &mut Self {
        let entries = self.entries().iter_mut();
        &mut entries.into_iter().find(|(other, _)| other == key).expect("an entry of the map").1
    }

    /// Item `index` of this array.
    pub(crate) fn at(&mut self, index: usize) -> &mut Self {
        &mut self.items()[index]
    }

    /// Sets the value at `key` of this map; a new key is inserted in canonical order.
    pub(crate) fn set(&mut self, key: &str, item: Self) {
        let entries = self.entries();
        let order = |key: &str| (key.len(), key.to_owned());
        match entries.binary_search_by_key(&order(key), |(other, _)| order(other)) {
            Ok(at) => entries[at].1 = item,
            Err(at) => entries.insert(at, (key.to_owned(), item)),
        }
    }

    /// Removes the entry at `key` of this map.
    pub(crate) fn remove(&mut self, key: &str) {
        self.entries().retain(|(other, _)| other != key);
    }

    /// The items of this array.
    pub(crate) fn items(&mut self) -> &mut Vec<Self> {
        match self {
            Self::Array(items) => items,
            _ => unreachable!("an array"),
        }
    }

    /// The entries of this map.
    pub(crate) fn entries(&mut self) -> &mut Vec<(String, Self)> {
        match self {
            Self::Map(entries) => entries,
            _ => unreachable!("a map"),
        }
    }
}

/// A map of these entries, in this order.
pub(crate) fn map<const N: usize>(entries: [(&str, Item); N]) -> Item {
    Item::Map(entries.into_iter().map(|(key, item)| (key.to_owned(), item)).collect())
}
