//! A table of multiples of a key of either curve.

use kernels::curve::{self as kernel, Key, KeyTable, P256, Secp256k1, TableSize};

use crate::compressed::CompressedKey;
use crate::curve::Curve;

/// The odd multiples of a key, for the lanes.
#[derive(Clone, Debug)]
pub(crate) enum Table {
    K256(KeyTable<Secp256k1>),
    P256(KeyTable<P256>),
}

/// A curve whose tables are stored.
pub(crate) trait StoredCurve: kernel::Curve {
    /// The table, if it is of this curve.
    fn of(table: &Table) -> Option<&KeyTable<Self>>;
}

impl StoredCurve for Secp256k1 {
    fn of(table: &Table) -> Option<&KeyTable<Self>> {
        match table {
            Table::K256(table) => Some(table),
            Table::P256(_) => None,
        }
    }
}

impl StoredCurve for P256 {
    fn of(table: &Table) -> Option<&KeyTable<Self>> {
        match table {
            Table::P256(table) => Some(table),
            Table::K256(_) => None,
        }
    }
}

impl Table {
    /// The small table of a key; `None` if the curve has no such point.
    pub(super) fn new(key: &CompressedKey) -> Option<Self> {
        let bytes = key.as_bytes();
        match key.curve() {
            Curve::K256 => KeyTable::new(Key::Compressed(bytes)).map(Self::K256),
            Curve::P256 => KeyTable::new(Key::Compressed(bytes)).map(Self::P256),
        }
    }

    /// The small tables of keys that have signed something, in lanes.
    pub(super) fn new_many(keys: &[CompressedKey]) -> Vec<(CompressedKey, Self)> {
        let of = |curve| keys.iter().copied().filter(|key| key.curve() == curve).collect();
        let mut tables = many(of(Curve::K256), Self::K256);
        tables.extend(many(of(Curve::P256), Self::P256));
        tables
    }

    /// The table of the same key in another size.
    pub(super) fn resized(&self, size: TableSize) -> Self {
        match self {
            Self::K256(table) => Self::K256(table.resized(size)),
            Self::P256(table) => Self::P256(table.resized(size)),
        }
    }

    /// How large the table is.
    pub(super) fn size(&self) -> TableSize {
        match self {
            Self::K256(table) => table.size(),
            Self::P256(table) => table.size(),
        }
    }
}

/// The tables of keys of one curve.
fn many<C: kernel::Curve>(
    keys: Vec<CompressedKey>,
    wrap: fn(KeyTable<C>) -> Table,
) -> Vec<(CompressedKey, Table)> {
    let bytes: Vec<Key<'_, C>> = keys.iter().map(|key| Key::Compressed(key.as_bytes())).collect();
    let tables = KeyTable::new_many(&bytes).into_iter();
    let tables = tables.map(|table| wrap(table.expect("a key with a valid signature is a point")));
    keys.iter().copied().zip(tables).collect()
}
