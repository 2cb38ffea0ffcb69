//! The entries of a node, stored in columns.
//!
//! A search compares words, then follows one child, and reads a record only where words are equal. So
//! words, children and records have their own columns: together with the rest of a node, the first six
//! entries fill two cache lines, and a search reads nothing else in four nodes of five. The others have
//! more entries, stored elsewhere.

use super::{Child, RecordRef};

/// A key of a node, with its record and the child after it.
#[derive(Clone, Copy, Debug)]
pub(in crate::mst) struct Entry {
    /// Eight bytes of the key, as a number: see [`super::find`].
    pub(super) word: u64,
    pub(super) record: RecordRef,
    pub(in crate::mst) right: Child,
}

impl Entry {
    #[inline]
    pub(in crate::mst) fn record(&self) -> RecordRef {
        self.record
    }
}

/// Entries, increasing by key, and the children around them.
#[derive(Clone, Debug)]
#[repr(C)]
pub(in crate::mst) struct Entries {
    /// `u64::MAX` after the last entry.
    words: [u64; FRONT],
    /// The number of entries, `more` included.
    len: u16,
    /// Bytes that all keys share; the words are the eight bytes after them.
    pub(super) skip: u16,
    /// By slot: before the first key, then after every key.
    children: [Child; FRONT + 1],
    records: [RecordRef; FRONT],
    // len > FRONT if there are more
    #[expect(clippy::box_collection, reason = "a pointer, so that a node fits two cache lines")]
    more: Option<Box<Vec<Entry>>>,
}

const FRONT: usize = 6;

impl Entries {
    pub(super) const fn new() -> Self {
        Self {
            words: [u64::MAX; FRONT],
            len: 0,
            skip: 0,
            children: [None; FRONT + 1],
            records: [RecordRef(0); FRONT],
            more: None,
        }
    }

    #[inline(always)]
    pub(in crate::mst) fn len(&self) -> usize {
        usize::from(self.len)
    }

    #[inline(always)]
    pub(in crate::mst) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry at `index`, if it is below the length.
    #[inline(always)]
    pub(in crate::mst) fn get(&self, index: usize) -> Option<Entry> {
        if index >= self.len() {
            return None;
        }
        match self.words.get(index) {
            Some(word) => {
                let (record, right) = (self.records[index], self.children[index + 1]);
                Some(Entry { word: *word, record, right })
            }
            None => self.more().get(index - FRONT).copied(),
        }
    }

    pub(in crate::mst) fn first(&self) -> Option<Entry> {
        self.get(0)
    }

    pub(in crate::mst) fn last(&self) -> Option<Entry> {
        self.get(self.len().wrapping_sub(1))
    }

    #[inline]
    pub(in crate::mst) fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = Entry> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| self.get(index).expect("below the length"))
    }

    /// The child in a slot: slot 0 is before the first key, slot `i` after key `i - 1`.
    #[inline(always)]
    pub(super) fn child(&self, slot: usize) -> Child {
        match self.children.get(slot) {
            Some(child) => *child,
            None => self.more()[slot - 1 - FRONT].right,
        }
    }

    /// The child before the first key.
    #[inline(always)]
    pub(super) fn left(&self) -> Child {
        self.children[0]
    }

    pub(super) fn set_child(&mut self, slot: usize, child: Child) {
        match self.children.get_mut(slot) {
            Some(position) => *position = child,
            None => self.more_mut()[slot - 1 - FRONT].right = child,
        }
    }

    pub(super) fn set_record(&mut self, index: usize, record: RecordRef) {
        match self.records.get_mut(index) {
            Some(position) => *position = record,
            None => self.more_mut()[index - FRONT].record = record,
        }
    }

    /// Recomputes the words of all entries.
    #[inline]
    pub(super) fn set_words(&mut self, word: impl Fn(RecordRef) -> u64) {
        let in_front = self.len().min(FRONT);
        for (position, record) in self.words[..in_front].iter_mut().zip(&self.records) {
            *position = word(*record);
        }
        if self.len() > FRONT {
            self.more_mut().iter_mut().for_each(|entry| entry.word = word(entry.record));
        }
    }

    /// The index of the first entry whose word is not less than this one.
    #[inline(always)]
    pub(super) fn first_not_below(&self, word: u64) -> usize {
        // All of them, without a branch: where a loop would stop is unpredictable.
        let in_front = self.words.iter().map(|other| usize::from(*other < word)).sum();
        if in_front < FRONT || self.len() <= FRONT {
            return in_front;
        }
        FRONT + self.more().partition_point(|entry| entry.word < word)
    }

    /// Whether the entry at `index`, if there is one, has another word.
    #[inline(always)]
    pub(super) fn has_other_word(&self, index: usize, word: u64) -> bool {
        match self.words.get(index) {
            Some(other) => *other != word,
            None => self.more().get(index - FRONT).is_none_or(|entry| entry.word != word),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        let index = self.len();
        if index < FRONT {
            self.set(index, entry);
        } else {
            self.more_mut().push(entry);
        }
        self.len += 1;
    }

    #[inline]
    pub(super) fn insert(&mut self, index: usize, entry: Entry) {
        if index >= FRONT {
            self.more_mut().insert(index - FRONT, entry);
        } else {
            if let Some(last) = self.get(FRONT - 1) {
                self.more_mut().insert(0, last);
            }
            // Over all indices, so that the length of the move is a constant.
            for to in (1..FRONT).rev() {
                if to > index {
                    self.words[to] = self.words[to - 1];
                    self.children[to + 1] = self.children[to];
                    self.records[to] = self.records[to - 1];
                }
            }
            self.set(index, entry);
        }
        self.len += 1;
    }

    pub(super) fn remove(&mut self, index: usize) -> Entry {
        let removed = self.get(index).expect("the caller found the entry");
        let len = self.len();
        if index >= FRONT {
            self.more_mut().remove(index - FRONT);
        } else {
            for at in index..len.min(FRONT) - 1 {
                self.set(at, self.get(at + 1).expect("below the length"));
            }
            let next = if len > FRONT { self.more_mut().remove(0) } else { NO_ENTRY };
            self.set(len.min(FRONT) - 1, next);
        }
        self.len -= 1;
        removed
    }

    /// Moves the entries from `index` to the end of `to`.
    pub(super) fn split_off(&mut self, index: usize, to: &mut Self) {
        (index..self.len()).filter_map(|index| self.get(index)).for_each(|entry| to.push(entry));
        self.truncate(index);
    }

    /// Moves all entries of `from` to the end.
    pub(super) fn append(&mut self, from: &mut Self) {
        from.split_off(0, self);
    }

    /// Removes all entries and all children.
    pub(super) fn clear(&mut self) {
        self.truncate(0);
        self.children[0] = None;
    }

    #[inline]
    fn truncate(&mut self, len: usize) {
        for index in len..self.len().min(FRONT) {
            self.set(index, NO_ENTRY);
        }
        if self.len() > FRONT {
            self.more_mut().truncate(len.saturating_sub(FRONT));
        }
        self.len = len as u16;
    }

    #[inline(always)]
    fn set(&mut self, index: usize, Entry { word, record, right }: Entry) {
        self.words[index] = word;
        self.records[index] = record;
        self.children[index + 1] = right;
    }

    fn more(&self) -> &[Entry] {
        self.more.as_ref().map_or(&[], |more| more)
    }

    fn more_mut(&mut self) -> &mut Vec<Entry> {
        self.more.get_or_insert_default()
    }
}

/// The columns after the last entry.
const NO_ENTRY: Entry = Entry { word: u64::MAX, record: RecordRef(0), right: None };
