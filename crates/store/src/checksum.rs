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

/// The bytes that a checksum covers. Each step of a checksum waits for the one before, so several are computed in turn: four
/// take little more time than one.
#[derive(Debug, Default)]
pub(crate) struct CoveredBytes(Vec<u8>);

impl CoveredBytes {
    /// Begins with a row of this table, without fields.
    pub(crate) fn begin(&mut self, table: &str) -> &mut Self {
        self.0.clear();
        self.bytes(table.as_bytes())
    }

    /// Adds a field.
    pub(crate) fn bytes(&mut self, field: &[u8]) -> &mut Self {
        self.number(field.len() as u64);
        self.0.extend_from_slice(field);
        self
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// The checksum as an integer of SQLite.
    pub(crate) fn checksum(&self) -> i64 {
        Checksum(OFFSET_BASIS).add(&self.0).to_integer()
    }

    /// The same of several rows.
    pub(crate) fn checksums<const N: usize>(covered: &[Self; N]) -> [i64; N] {
        let common = covered.iter().map(|of| of.0.len()).min().unwrap_or(0);
        let begins: [&[u8]; N] = std::array::from_fn(|lane| &covered[lane].0[..common]);
        let mut hashes = [OFFSET_BASIS; N];
        for at in 0..common {
            for (hash, bytes) in hashes.iter_mut().zip(&begins) {
                *hash = (*hash ^ u64::from(bytes[at])).wrapping_mul(PRIME);
            }
        }
        std::array::from_fn(|lane| {
            Checksum(hashes[lane]).add(&covered[lane].0[common..]).to_integer()
        })
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
    fn checksums_that_are_computed_in_turn_are_those_of_one_row() {
        let texts: [&[u8]; 4] = [b"", b"a", b"operation", &[7; 300]];
        let mut covered: [CoveredBytes; 4] = Default::default();
        for (covered, text) in covered.iter_mut().zip(texts) {
            covered.begin("other").bytes(b"earlier");
            covered.begin("t").bytes(text).number(5);
        }
        let alone = texts.map(|text| Checksum::of("t").bytes(Some(text)).number(5).to_integer());
        assert_eq!(CoveredBytes::checksums(&covered), alone);
        assert_eq!(covered.each_ref().map(CoveredBytes::checksum), alone);
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
