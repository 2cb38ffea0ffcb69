//! A map of bounded size that evicts entries in two generations, the least recently used first.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A map of at most `capacity` entries, half of them per generation. When the young generation is full it
/// becomes the old one, and the entries of the old one are evicted unless they were used since.
#[derive(Debug)]
pub struct BoundedMap<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    max_generation: usize,
}

impl<K: Hash + Eq, V> BoundedMap<K, V> {
    pub fn new(capacity: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), max_generation: (capacity / 2).max(1) }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// The value of a key, which does not count as used.
    pub fn peek<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// The value of a key, which counts as used.
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some((key, value)) = self.old.remove_entry(key) {
            self.insert(key, value);
        }
        self.young.get_mut(key)
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        if self.young.len() >= self.max_generation && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub fn remove<Q>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.young.remove(key);
        self.old.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_entries_is_bounded_and_used_entries_stay() {
        let mut map = BoundedMap::new(10);
        for number in 0..1_000 {
            map.insert(number, number);
            assert_eq!(map.get_mut(&0), Some(&mut 0), "used all the time");
            assert!(map.len() <= 10);
        }
        assert!(map.peek(&500).is_none() && map.get_mut(&999).is_some());
    }

    #[test]
    fn a_key_has_one_value_in_either_generation() {
        let mut map = BoundedMap::new(2);
        map.insert("a", 1);
        map.insert("b", 2);
        map.insert("a", 3);
        assert_eq!((map.peek("a"), map.len()), (Some(&3), 2));
        map.remove("a");
        assert_eq!((map.peek("a"), map.peek("b")), (None, Some(&2)));
    }
}
