//! CBOR as its author pleases: canonical until told otherwise.

use codec::Cid;
use codec::cbor::Encoder;

/// A CBOR item that can be changed before it is written.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Null,
    Bool(bool),
    Int(i64),
    Bytes(Vec<u8>),
    Text(String),
    /// A link with these bytes for a CID, whatever they are.
    Link(Vec<u8>),
    Array(Vec<Item>),
    /// Entries are written in the order in which they stand.
    Map(Vec<(String, Item)>),
    /// Bytes that stand for themselves.
    Raw(Vec<u8>),
}

impl Item {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn link(cid: &Cid) -> Self {
        Self::Link(cid.as_bytes().to_vec())
    }

    pub(crate) fn link_or_null(cid: Option<&Cid>) -> Self {
        cid.map_or(Self::Null, Self::link)
    }

    /// A number below 256 in two bytes, where one may do.
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

    /// The same container without a stated length, which DAG-CBOR does not have.
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

    /// What stands at `key` of this map.
    pub(crate) fn get(&mut self, key: &str) -> &mut Self {
        let entries = self.entries().iter_mut();
        &mut entries.into_iter().find(|(other, _)| other == key).expect("an entry of the map").1
    }

    /// Item `index` of this array.
    pub(crate) fn at(&mut self, index: usize) -> &mut Self {
        &mut self.items()[index]
    }

    /// Puts `item` at `key` of this map; a new key goes where it belongs.
    pub(crate) fn set(&mut self, key: &str, item: Self) {
        let entries = self.entries();
        let order = |key: &str| (key.len(), key.to_owned());
        match entries.binary_search_by_key(&order(key), |(other, _)| order(other)) {
            Ok(at) => entries[at].1 = item,
            Err(at) => entries.insert(at, (key.to_owned(), item)),
        }
    }

    /// Takes the entry at `key` out of this map.
    pub(crate) fn remove(&mut self, key: &str) {
        self.entries().retain(|(other, _)| other != key);
    }

    /// The items of this array.
    pub(crate) fn items(&mut self) -> &mut Vec<Self> {
        match self {
            Self::Array(items) => items,
            _ => unreachable!("an array is asked for its items"),
        }
    }

    /// The entries of this map.
    pub(crate) fn entries(&mut self) -> &mut Vec<(String, Self)> {
        match self {
            Self::Map(entries) => entries,
            _ => unreachable!("a map is asked for its entries"),
        }
    }
}

/// A map of these entries, in this order.
pub(crate) fn map<const N: usize>(entries: [(&str, Item); N]) -> Item {
    Item::Map(entries.into_iter().map(|(key, item)| (key.to_owned(), item)).collect())
}
