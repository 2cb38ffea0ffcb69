//! The tables of strfry: their names, the order of their keys, and the entries of an event in its indexes.

use std::cmp::Ordering;

use heed::types::Bytes;
use heed::{
    CommitOrAbort, Comparator, Database, DatabaseFlags, DefaultComparator, Env, IntegerComparator,
    RwTxn, WithoutTls,
};
use kernels::{hex, sha256};
use nostr_formats::packed_event::{Expiration, PackedEvent};

use crate::error::DatabaseError;

/// A table of keys in an order.
pub(crate) type Table<C = DefaultComparator> = Database<'static, Bytes, Bytes, C>;

/// An index with keys in an order, with the numbers of their events.
pub(crate) type EventIndex<C = DefaultComparator> =
    Database<'static, Bytes, Bytes, C, IntegerComparator>;

pub(crate) const PAYLOADS: &str = "rasgueadb_defaultDb__EventPayload";
pub(crate) const DICTIONARIES: &str = "rasgueadb_defaultDb__CompressionDictionary";
pub(crate) const SUMMARIES: &str = "rasgueadb_defaultDb__Event";
pub(crate) const META: &str = "rasgueadb_defaultDb__Meta";
pub(crate) const FILTERS: &str = "rasgueadb_defaultDb__NegentropyFilter";
pub(crate) const TREES: &str = "negentropy";

/// Version of a database whose rows are summaries.
pub(crate) const VERSION: u64 = 3;

/// An index of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    CreatedAt,
    Id,
    Pubkey,
    Kind,
    PubkeyKind,
    Tag,
    Deletion,
    Expiration,
    Replace,
    ReplaceDeletion,
}

/// All indexes, in the order of [`Index`].
pub(crate) const INDEXES: [Index; 10] = [
    Index::CreatedAt,
    Index::Id,
    Index::Pubkey,
    Index::Kind,
    Index::PubkeyKind,
    Index::Tag,
    Index::Deletion,
    Index::Expiration,
    Index::Replace,
    Index::ReplaceDeletion,
];

impl Index {
    /// The name of its table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CreatedAt => "rasgueadb_defaultDb__Event__created_at",
            Self::Id => "rasgueadb_defaultDb__Event__id",
            Self::Pubkey => "rasgueadb_defaultDb__Event__pubkey",
            Self::Kind => "rasgueadb_defaultDb__Event__kind",
            Self::PubkeyKind => "rasgueadb_defaultDb__Event__pubkeyKind",
            Self::Tag => "rasgueadb_defaultDb__Event__tag",
            Self::Deletion => "rasgueadb_defaultDb__Event__deletion",
            Self::Expiration => "rasgueadb_defaultDb__Event__expiration",
            Self::Replace => "rasgueadb_defaultDb__Event__replace",
            Self::ReplaceDeletion => "rasgueadb_defaultDb__Event__replaceDeletion",
        }
    }
}

/// The tables of a new database.
pub(crate) struct Tables {
    pub(crate) payloads: Table<IntegerComparator>,
    pub(crate) summaries: Table<IntegerComparator>,
    pub(crate) meta: Table<IntegerComparator>,
    /// By id and time.
    pub(crate) ids: EventIndex<IntegersLast<1>>,
    /// By author, `d` and kind.
    pub(crate) replace: EventIndex,
    /// In the order of [`Index`].
    indexes: [Box<dyn IndexTable>; 10],
}

impl Tables {
    pub(crate) fn create(env: &Env<WithoutTls>) -> heed::Result<Self> {
        for name in [DICTIONARIES, FILTERS] {
            create::<IntegerComparator, DefaultComparator>(env, name, DatabaseFlags::empty())?;
        }
        create::<DefaultComparator, DefaultComparator>(env, TREES, DatabaseFlags::REVERSE_KEY)?;
        let ids = index(env, Index::Id)?;
        let replace: EventIndex = index(env, Index::Replace)?;
        Ok(Self {
            payloads: create(env, PAYLOADS, DatabaseFlags::empty())?,
            summaries: create(env, SUMMARIES, DatabaseFlags::empty())?,
            meta: create(env, META, DatabaseFlags::empty())?,
            ids,
            replace,
            indexes: [
                Box::new(index::<IntegerComparator>(env, Index::CreatedAt)?),
                Box::new(ids),
                Box::new(index::<IntegersLast<1>>(env, Index::Pubkey)?),
                Box::new(index::<IntegersLast<2>>(env, Index::Kind)?),
                Box::new(index::<IntegersLast<2>>(env, Index::PubkeyKind)?),
                Box::new(index::<IntegersLast<1>>(env, Index::Tag)?),
                Box::new(index::<DefaultComparator>(env, Index::Deletion)?),
                Box::new(index::<IntegerComparator>(env, Index::Expiration)?),
                Box::new(replace),
                Box::new(index::<DefaultComparator>(env, Index::ReplaceDeletion)?),
            ],
        })
    }

    pub(crate) fn index(&self, index: Index) -> &dyn IndexTable {
        &*self.indexes[index as usize]
    }
}

/// An index, whatever the order of its keys. A key has the numbers of all its events.
pub(crate) trait IndexTable {
    fn insert(&self, txn: &mut RwTxn<'_>, key: &[u8], number: u64) -> heed::Result<()>;

    fn remove(&self, txn: &mut RwTxn<'_>, key: &[u8], number: u64) -> heed::Result<()>;

    /// The keys in order, with their numbers.
    #[cfg(test)]
    fn entries(&self, txn: &heed::RoTxn<'_>) -> Result<Vec<(Vec<u8>, u64)>, DatabaseError>;
}

impl<C: Comparator + 'static> IndexTable for EventIndex<C> {
    fn insert(&self, txn: &mut RwTxn<'_>, key: &[u8], number: u64) -> heed::Result<()> {
        self.put(txn, key, &number.to_ne_bytes())
    }

    fn remove(&self, txn: &mut RwTxn<'_>, key: &[u8], number: u64) -> heed::Result<()> {
        self.delete_one_duplicate(txn, key, &number.to_ne_bytes()).map(drop)
    }

    #[cfg(test)]
    fn entries(&self, txn: &heed::RoTxn<'_>) -> Result<Vec<(Vec<u8>, u64)>, DatabaseError> {
        let entry = |entry: heed::Result<(&[u8], &[u8])>| {
            let (key, number) = entry?;
            Ok((key.to_vec(), number_of(number)?))
        };
        self.iter(txn)?.map(entry).collect()
    }
}

fn index<C: Comparator + 'static>(
    env: &Env<WithoutTls>,
    index: Index,
) -> heed::Result<EventIndex<C>> {
    let flags = DatabaseFlags::DUP_SORT | DatabaseFlags::DUP_FIXED;
    create(env, index.name(), flags)
}

fn create<C: Comparator + 'static, D: Comparator + 'static>(
    env: &Env<WithoutTls>,
    name: &str,
    flags: DatabaseFlags,
) -> heed::Result<Database<'static, Bytes, Bytes, C, D>> {
    let created = env.create_databases_and_commit(env.write_txn()?, |opener, txn| {
        let options = opener.database_options().types::<Bytes, Bytes>();
        let mut options = options.key_comparator::<C>().dup_sort_comparator::<D>();
        options.name(name).flags(flags);
        options.create(txn).map(CommitOrAbort::<_, ()>::Commit)
    })?;
    Ok(created.unwrap_commit())
}

/// Order of keys that end in this number of integers: by the bytes before, then by the integers.
pub(crate) struct IntegersLast<const N: usize>;

impl<const N: usize> Comparator for IntegersLast<N> {
    fn compare(one: &[u8], other: &[u8]) -> Ordering {
        let parts = |key: &[u8]| key.len().saturating_sub(8 * N);
        let (one, one_integers) = one.split_at(parts(one));
        let (other, other_integers) = other.split_at(parts(other));
        one.cmp(other).then_with(|| integers(one_integers).cmp(integers(other_integers)))
    }
}

fn integers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes))
}

/// The number of an event that an index or a table has.
pub(crate) fn number_of(bytes: &[u8]) -> Result<u64, DatabaseError> {
    let corrupted = |_| heed::Error::Mdb(heed::MdbError::Corrupted).into();
    bytes.try_into().map(u64::from_ne_bytes).map_err(corrupted)
}

/// A key of bytes, then integers.
pub(crate) fn key(parts: &[&[u8]], integers: &[u64]) -> Vec<u8> {
    let mut key = parts.concat();
    integers.iter().for_each(|integer| key.extend_from_slice(&integer.to_ne_bytes()));
    key
}

/// The entries of an event in the indexes.
pub(crate) fn entries(event: &PackedEvent<'_>) -> Vec<(Index, Vec<u8>)> {
    let (time, kind) = (event.created_at() as u64, u64::from(event.kind()));
    let mut entries = vec![
        (Index::CreatedAt, key(&[], &[time])),
        (Index::Id, key(&[event.id()], &[time])),
        (Index::Pubkey, key(&[event.pubkey()], &[time])),
        (Index::Kind, key(&[], &[kind, time])),
        (Index::PubkeyKind, key(&[event.pubkey()], &[kind, time])),
    ];
    for tag in event.tags() {
        entries.push((Index::Tag, key(&[&[tag.name], tag.value], &[time])));
        match tag.name {
            b'e' if kind == DELETION => {
                entries.push((Index::Deletion, key(&[tag.value, event.pubkey()], &[])));
            }
            b'a' if kind == DELETION
                && Address::of(tag.value, event).is_some_and(|it| it.is_addressable()) =>
            {
                let hash = sha256::digest(tag.value);
                entries.push((Index::ReplaceDeletion, key(&[&hash], &[time])));
            }
            _ => {}
        }
    }
    if let Some(d) = first_d(event) {
        entries.push((Index::Replace, key(&[event.pubkey(), d], &[kind])));
    }
    match event.expiration() {
        Expiration::Never => {}
        Expiration::Ephemeral => entries.push((Index::Expiration, key(&[], &[1]))),
        Expiration::At(at) => entries.push((Index::Expiration, key(&[], &[at]))),
    }
    entries
}

/// The value of the first tag `d`.
pub(crate) fn first_d<'a>(event: &PackedEvent<'a>) -> Option<&'a [u8]> {
    event.tags().find(|tag| tag.name == b'd').map(|tag| tag.value)
}

/// The target of a tag `a` of a deletion: an addressable or replaceable event of the author of the
/// deletion.
pub(crate) struct Address<'a> {
    pub(crate) kind: u16,
    pub(crate) d: &'a [u8],
}

impl<'a> Address<'a> {
    /// The address in the value of a tag of `deletion`; `None` if it is no address, or one of another
    /// author.
    pub(crate) fn of(value: &'a [u8], deletion: &PackedEvent<'_>) -> Option<Self> {
        let mut parts = value.splitn(3, |byte| *byte == b':');
        let kind = parts.next()?;
        let pubkey = parts.next()?;
        let d = parts.next()?;
        let kind: u16 = str::from_utf8(kind).ok()?.parse().ok()?;
        let is_own = pubkey.eq_ignore_ascii_case(hex::encode(deletion.pubkey()).as_bytes());
        let address = Self { kind, d };
        let is_replaceable = matches!(kind, 0 | 3 | 41 | 10_000..20_000) && d.is_empty();
        (is_own && (is_replaceable || address.is_addressable())).then_some(address)
    }

    /// Whether its `d` tells it from others of its kind. strfry deletes by such addresses alone.
    pub(crate) fn is_addressable(&self) -> bool {
        (30_000..40_000).contains(&self.kind)
    }
}

/// The kind of deletions (NIP-09).
pub(crate) const DELETION: u64 = 5;
