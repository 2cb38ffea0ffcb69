//! Which records go into the tree, and which are looked up?
//!
//! | bytes | what |
//! |---|---|
//! | 4 | number of records, big-endian |
//! | 2, …, 36 | length of the key, the key, its CID; in ascending order |
//! | 4, 4 × that | number of indices, and the records in shuffled order |
//! | 4, 4 × that | number of indices, and the records to look up |

use crate::files::{cut_piece, cut_u32, read};

/// The records of one file.
pub(super) struct Corpus {
    pub(super) records: Vec<(String, [u8; 36])>,
    // Indices of `records`, both.
    pub(super) shuffled: Vec<usize>,
    pub(super) asked: Vec<usize>,
}

impl Corpus {
    pub(super) fn read(files: &[&str]) -> Result<Self, String> {
        let [path] = files else { return Err("the records are one file".into()) };
        split(&read(path)?).ok_or_else(|| format!("{path}: not a file of records"))
    }
}

fn split(mut file: &[u8]) -> Option<Corpus> {
    let rest = &mut file;
    let mut records = Vec::new();
    for _ in 0..cut_u32(rest)? {
        let key = str::from_utf8(cut_piece(rest)?).ok()?.to_owned();
        records.push((key, rest.split_off(..36)?.try_into().ok()?));
    }
    let shuffled = indices(rest, records.len())?;
    let asked = indices(rest, records.len())?;
    (rest.is_empty() && shuffled.len() == records.len()).then_some(Corpus {
        records,
        shuffled,
        asked,
    })
}

/// A list of indices below `bound`.
fn indices(rest: &mut &[u8], bound: usize) -> Option<Vec<usize>> {
    let count = cut_u32(rest)?;
    let below = |index: &usize| *index < bound;
    (0..count).map(|_| usize::try_from(cut_u32(rest)?).ok().filter(below)).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two records, `b` and then `a` in the shuffled order, and three lookups.
    pub(crate) fn two_records() -> Vec<u8> {
        let cid = |digest: u8| [[1, 0x71, 0x12, 0x20].as_slice(), &[digest; 32]].concat();
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let (orders, count): (Vec<u8>, Vec<u8>) = (words(&[2, 1, 0, 3, 1, 1, 0]), words(&[2]));
        [&count, b"\0\x01a".as_slice(), &cid(5), b"\0\x01b", &cid(0xff), &orders].concat()
    }

    #[test]
    fn records_are_split_by_their_lengths_and_no_cut_or_tail_is_taken() {
        let file = two_records();
        let corpus = split(&file).unwrap();
        assert_eq!(corpus.records[1].0, "b");
        assert_eq!(corpus.records[1].1[4..], [0xff; 32]);
        assert_eq!((corpus.shuffled, corpus.asked), (vec![1, 0], vec![1, 1, 0]));
        assert!((0..file.len()).all(|len| split(&file[..len]).is_none()));
        assert!(split(&[file.as_slice(), &[0]].concat()).is_none());
    }

    #[test]
    fn an_index_of_no_record_is_refused() {
        let mut file = two_records();
        *file.last_mut().unwrap() = 2;
        assert!(split(&file).is_none());
    }
}
