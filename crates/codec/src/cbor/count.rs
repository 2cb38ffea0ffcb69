//! Counts items by kind. With the counts, decoders in benchmarks prove that they did the same work.

use std::cell::Cell;

use super::error::DecodeError;
use super::item::ItemError;
use super::scan::{self, Entries, Sink};
use super::value::{Value, WideInteger};
use crate::cid::CidRef;

/// The numbers of items by kind in an item and everything inside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemCounts {
    /// Maps.
    pub maps: u64,
    /// Entries in these maps.
    pub map_entries: u64,
    /// Arrays.
    pub arrays: u64,
    /// Items in these arrays.
    pub array_items: u64,
    /// Bytes of UTF-8 in text values and in map keys.
    pub text_bytes: u64,
    /// Bytes in byte strings.
    pub byte_string_bytes: u64,
    /// CID links.
    pub links: u64,
    /// Integers of any size.
    pub integers: u64,
    /// Floats.
    pub floats: u64,
    /// Booleans.
    pub booleans: u64,
    /// Nulls.
    pub nulls: u64,
}

impl ItemCounts {
    /// Adds the items of `value`.
    pub fn add(&mut self, value: &Value<'_>) {
        match value {
            Value::Null => self.nulls += 1,
            Value::Boolean(_) => self.booleans += 1,
            Value::Integer(_) | Value::WideInteger(_) => self.integers += 1,
            Value::Float(_) => self.floats += 1,
            Value::Text(text) => self.text_bytes += text.len() as u64,
            Value::Bytes(bytes) => self.byte_string_bytes += bytes.len() as u64,
            Value::Link(_) => self.links += 1,
            Value::Array(items) => {
                self.arrays += 1;
                self.array_items += items.len() as u64;
                items.iter().for_each(|item| self.add(item));
            }
            Value::Map(map) => {
                self.maps += 1;
                self.map_entries += map.len() as u64;
                for (key, value) in map.iter() {
                    self.text_bytes += key.len() as u64;
                    self.add(value);
                }
            }
        }
    }
}

/// Checks that `input` is exactly one canonical item and adds its items to `counts`.
///
/// # Errors
/// If it is not; `counts` is then unchanged.
pub fn count(input: &[u8], counts: &mut ItemCounts) -> Result<(), DecodeError> {
    let cell = Cell::new(*counts);
    scan::build(input, Counting(&cell), &mut ())?;
    *counts = cell.get();
    Ok(())
}

#[derive(Clone, Copy)]
struct Counting<'c>(&'c Cell<ItemCounts>);

impl Counting<'_> {
    #[inline]
    fn update(self, change: impl FnOnce(&mut ItemCounts)) {
        let mut counts = self.0.get();
        change(&mut counts);
        self.0.set(counts);
    }
}

impl<'a> Sink<'a> for Counting<'_> {
    type Slot = ();
    fn integer(self, _: &mut (), _: i64) {
        self.update(|counts| counts.integers += 1);
    }
    fn wide_integer(self, _: &mut (), _: WideInteger) {
        self.update(|counts| counts.integers += 1);
    }
    fn float(self, _: &mut (), _: f64) {
        self.update(|counts| counts.floats += 1);
    }
    fn boolean(self, _: &mut (), _: bool) {
        self.update(|counts| counts.booleans += 1);
    }
    fn null(self, _: &mut ()) {
        self.update(|counts| counts.nulls += 1);
    }
    fn text(self, _: &mut (), text: &'a str) {
        self.update(|counts| counts.text_bytes += text.len() as u64);
    }
    fn bytes(self, _: &mut (), bytes: &'a [u8]) {
        self.update(|counts| counts.byte_string_bytes += bytes.len() as u64);
    }
    fn link(self, _: &mut (), _: CidRef<'a>) {
        self.update(|counts| counts.links += 1);
    }
    fn array(
        self,
        slot: &mut (),
        count: usize,
        mut read: impl FnMut(usize, &mut ()) -> Result<(), ItemError>,
    ) -> Result<(), ItemError> {
        self.update(|counts| {
            counts.arrays += 1;
            counts.array_items += count as u64;
        });
        (0..count).try_for_each(|at| read(at, slot))
    }
    fn map(
        self,
        slot: &mut (),
        count: usize,
        entries: &mut Entries<'a, Self>,
    ) -> Result<(), ItemError> {
        self.update(|counts| {
            counts.maps += 1;
            counts.map_entries += count as u64;
        });
        (0..count).try_for_each(|_| {
            let key = entries.next(slot)?;
            self.update(|counts| counts.text_bytes += key.len() as u64);
            Ok(())
        })
    }
}
