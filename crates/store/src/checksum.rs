//! Checksums of rows. SQLite has none: with one flipped bit, a stored cursor or revision is another valid one.

/// The checksum of some fields: FNV-1a of 64 bits.
///
/// Every step is a bijection, so the change of any one byte is always detected, and other faults of a disk almost
/// always. It does not protect from a person who writes to the file.
#[derive(Clone, Copy, Debug)]
pub struct Checksum(u64);

impl Checksum {
    /// The checksum of a row of this table, without fields.
    pub fn of(table: &str) -> Self {
        Self(OFFSET_BASIS).bytes(Some(table.as_bytes()))
    }

    /// Adds a field; `None` differs from an empty one.
    pub fn bytes(self, field: Option<&[u8]>) -> Self {
        let len = field.map_or(u64::MAX, |bytes| bytes.len() as u64);
        self.number(len).add(field.unwrap_or_default())
    }

    /// Adds a number.
    pub fn number(self, number: u64) -> Self {
        self.add(&number.to_be_bytes())
    }

    /// The checksum as an integer of SQLite.
    pub fn to_integer(self) -> i64 {
        self.0.cast_signed()
    }

    fn add(self, bytes: &[u8]) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        Self(bytes.iter().fold(self.0, step))
    }
}

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        let hash = |text: &str| Checksum(OFFSET_BASIS).add(text.as_bytes()).0;
        assert_eq!((hash("a"), hash("foobar")), (0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8));
    }

    #[test]
    fn fields_are_kept_apart() {
        let pair =
            |a: Option<&[u8]>, b: Option<&[u8]>| Checksum::of("t").bytes(a).bytes(b).to_integer();
        let sums = [
            pair(Some(b"ab"), Some(b"c")),
            pair(Some(b"a"), Some(b"bc")),
            pair(Some(b"abc"), Some(b"")),
            pair(Some(b"abc"), None),
            Checksum::of("u").bytes(Some(b"ab")).bytes(Some(b"c")).to_integer(),
        ];
        let distinct: std::collections::BTreeSet<i64> = sums.into_iter().collect();
        assert_eq!(distinct.len(), sums.len());
    }
}
