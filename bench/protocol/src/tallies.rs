//! The running counts of tasks, one struct per task. The field names are the names of the protocol.

use serde::Serialize;

use crate::Counts;

/// Makes a struct of public sums that becomes [`Counts`] by its field names.
macro_rules! tally {
    ($(#[$about:meta])* $name:ident { $($field:ident: $number:ty, $doc:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct $name {
            $(#[doc = $doc] pub $field: $number,)*
        }

        impl From<$name> for Counts {
            fn from(tally: $name) -> Self {
                Counts::from_fields(&tally)
            }
        }
    };
}

tally! {
    /// The counts of the task `decode`, over the blocks of all frames.
    DecodeCounts {
        frames: u64, "Frames in the file.";
        errors: u64, "Frames that failed to decode; they count in nothing else but `frames`.";
        blocks: u64, "CAR blocks of any codec.";
        maps: u64, "Maps.";
        map_entries: u64, "Entries of maps.";
        arrays: u64, "Arrays.";
        array_items: u64, "Items of arrays.";
        text_bytes: u64, "UTF-8 bytes of text values and map keys.";
        byte_string_bytes: u64, "Bytes of byte strings.";
        links: u64, "CID links.";
        integers: u64, "Integers.";
        floats: u64, "Floats.";
        booleans: u64, "Booleans.";
        nulls: u64, "Nulls.";
    }
}

impl DecodeCounts {
    /// Counts a map with this number of entries; [`text`](Self::text) counts keys.
    pub fn map(&mut self, entries: usize) {
        self.maps += 1;
        self.map_entries += entries as u64;
    }

    /// Counts an array with this number of items.
    pub fn array(&mut self, items: usize) {
        self.arrays += 1;
        self.array_items += items as u64;
    }

    /// Counts a text value or a map key.
    pub fn text(&mut self, text: &str) {
        self.text_bytes += text.len() as u64;
    }

    /// Counts a byte string.
    pub fn byte_string(&mut self, bytes: &[u8]) {
        self.byte_string_bytes += bytes.len() as u64;
    }
}

/// The outcome of verifying one signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The signature is the key's.
    Valid,
    /// The signature was verified and is wrong.
    Invalid,
    /// Message, key or signature cannot be read.
    Error,
}

impl<E> From<&Result<bool, E>> for Verdict {
    fn from(outcome: &Result<bool, E>) -> Self {
        match outcome {
            Ok(true) => Self::Valid,
            Ok(false) => Self::Invalid,
            Err(_) => Self::Error,
        }
    }
}

tally! {
    /// The counts of the task `sigs`.
    SignatureCounts {
        commits: u64, "Commits in the file.";
        valid_k256: u64, "Valid signatures on K-256.";
        valid_p256: u64, "Valid signatures on P-256.";
        invalid: u64, "Wrong signatures.";
        errors: u64, "Commits, keys or signatures that cannot be read.";
    }
}

impl SignatureCounts {
    /// Counts one commit; its key is on K-256 or else on P-256.
    pub fn add(&mut self, is_k256: bool, verdict: Verdict) {
        self.commits += 1;
        *match (verdict, is_k256) {
            (Verdict::Valid, true) => &mut self.valid_k256,
            (Verdict::Valid, false) => &mut self.valid_p256,
            (Verdict::Invalid, _) => &mut self.invalid,
            (Verdict::Error, _) => &mut self.errors,
        } += 1;
    }
}

tally! {
    /// The counts of the tasks `schnorr` and `nostr-validated`.
    VerdictCounts {
        events: u64, "Events.";
        valid: u64, "Valid events.";
        invalid: u64, "Events whose id or signature is wrong.";
        errors: u64, "Events that cannot be read.";
    }
}

impl VerdictCounts {
    /// Counts one event.
    pub fn add(&mut self, verdict: Verdict) {
        self.events += 1;
        *match verdict {
            Verdict::Valid => &mut self.valid,
            Verdict::Invalid => &mut self.invalid,
            Verdict::Error => &mut self.errors,
        } += 1;
    }
}

tally! {
    /// The counts of the task `commit`.
    CommitCounts {
        frames: u64, "Frames in the file.";
        commits: u64, "Frames of type `#commit`.";
        accepted: u64, "Valid commits that continue the stored state of their account.";
        first_sighting: u64, "Valid commits of an account without stored state.";
        chain_broken: u64, "Valid commits that do not continue the stored state.";
        refused: u64, "Rejected commits.";
        ops: u64, "Operations of valid commits.";
    }
}

tally! {
    /// The counts of lookups in the task `mst`.
    LookupCounts {
        lookups: u64, "Keys looked up.";
        found: u64, "Keys found.";
        lookup_checksum: u32, "Sum of the first four digest bytes of each CID found, as u32 BE, modulo 2³².";
    }
}

impl LookupCounts {
    /// Counts a key that was found, by the digest in its CID.
    pub fn add_found(&mut self, digest: &[u8]) {
        let mut checksum = Checksum { count: self.found, sum: self.lookup_checksum };
        checksum.add(digest);
        (self.found, self.lookup_checksum) = (checksum.count, checksum.sum);
    }
}

/// A number of CIDs, and the sum of their first four digest bytes, as u32 BE, modulo 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum {
    /// The number of CIDs.
    pub count: u64,
    /// The sum.
    pub sum: u32,
}

impl Checksum {
    /// Adds a CID, by its digest.
    pub fn add(&mut self, digest: &[u8]) {
        let word = digest.first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
        self.count += 1;
        self.sum = self.sum.wrapping_add(word);
    }
}

/// The counts of interleaved operations in the task `mst`: the records that lookups found, the roots, and the last root as
/// text.
pub fn operation_counts(
    operations: usize,
    hits: Checksum,
    roots: Checksum,
    last_root: String,
) -> Counts {
    let numbers = [
        ("operations", operations as u64),
        ("root_checksum", roots.sum.into()),
        ("hits", hits.count),
        ("hit_checksum", hits.sum.into()),
    ];
    Counts::from_iter(numbers).with("last_root", last_root)
}

tally! {
    /// The counts of decoded Nostr events.
    EventCounts {
        events: u64, "Events.";
        errors: u64, "Events that cannot be read; they count in nothing else but `events`.";
        tags: u64, "Tags.";
        values: u64, "Values of tags.";
        value_bytes: u64, "UTF-8 bytes of those values, with bytes counted as hexadecimal digits.";
        content_bytes: u64, "UTF-8 bytes of contents.";
        kinds: u64, "Sum of the kinds.";
        seconds: u64, "Sum of `created_at`, modulo 2⁶⁴.";
    }
}

impl EventCounts {
    /// Counts an event without its tags.
    pub fn event(&mut self, kind: impl Into<i64>, created_at: i64, content: &str) {
        self.events += 1;
        self.kinds = self.kinds.wrapping_add_signed(kind.into());
        self.seconds = self.seconds.wrapping_add_signed(created_at);
        self.content_bytes += content.len() as u64;
    }

    /// Counts a tag without its values.
    pub fn tag(&mut self) {
        self.tags += 1;
    }

    /// Counts a value with this number of bytes as text.
    pub fn value(&mut self, text_len: usize) {
        self.values += 1;
        self.value_bytes += text_len as u64;
    }

    /// Counts a value that is text.
    pub fn text(&mut self, value: &str) {
        self.value(value.len());
    }

    /// Counts a value whose text is the digits of these bytes.
    pub fn hex(&mut self, value: &[u8]) {
        self.value(2 * value.len());
    }

    /// Counts a tag with its values, all of them text.
    pub fn texts<T: AsRef<str>>(&mut self, tag: impl IntoIterator<Item = T>) {
        self.tag();
        tag.into_iter().for_each(|value| self.text(value.as_ref()));
    }

    /// Counts events that were rejected.
    pub fn rejected(&mut self, events: u64) {
        self.events += events;
        self.errors += events;
    }
}

/// The fields of an event that a variant of the task `nostr-fields` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventField {
    /// The kind.
    Kind,
    /// The author.
    Pubkey,
    /// The kind and the author.
    Both,
    /// Whether the event is of kind 1 by an author whose key begins with a byte below 0x40.
    Filter,
}

impl EventField {
    /// All fields, in the order of the protocol.
    pub const ALL: [Self; 4] = [Self::Kind, Self::Pubkey, Self::Both, Self::Filter];

    /// The part of a variant's name after the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Pubkey => "pubkey",
            Self::Both => "both",
            Self::Filter => "filter",
        }
    }

    /// The field with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }
}

/// The fields read from one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// Its kind.
    Kind(u16),
    /// Its author.
    Pubkey([u8; 32]),
    /// Its kind and author.
    Both(u16, [u8; 32]),
    /// Whether it matches the filter.
    Filter(bool),
}

impl FieldValue {
    /// Applies the filter to an event of this kind and author.
    #[inline]
    pub fn filtered(kind: u16, pubkey: [u8; 32]) -> Self {
        Self::Filter(kind == 1 && pubkey[0] < 0x40)
    }
}

/// The counts of the task `nostr-fields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSums {
    field: EventField,
    events: u64,
    kinds: u64,
    /// The sum of the first four bytes, as u32 BE.
    pubkeys: u32,
    matched: u64,
}

impl FieldSums {
    /// Empty sums for a variant that reads `field`.
    pub fn new(field: EventField) -> Self {
        Self { field, events: 0, kinds: 0, pubkeys: 0, matched: 0 }
    }

    /// Adds one event; `None` where the field cannot be read.
    pub fn add(&mut self, value: Option<FieldValue>) {
        self.events += 1;
        match value {
            None => {}
            Some(FieldValue::Kind(kind)) => self.kinds += u64::from(kind),
            Some(FieldValue::Pubkey(pubkey)) => self.add_pubkey(pubkey),
            Some(FieldValue::Both(kind, pubkey)) => {
                self.kinds += u64::from(kind);
                self.add_pubkey(pubkey);
            }
            Some(FieldValue::Filter(is_match)) => self.matched += u64::from(is_match),
        }
    }

    fn add_pubkey(&mut self, [a, b, c, d, ..]: [u8; 32]) {
        self.pubkeys = self.pubkeys.wrapping_add(u32::from_be_bytes([a, b, c, d]));
    }
}

impl From<FieldSums> for Counts {
    fn from(FieldSums { field, events, kinds, pubkeys, matched }: FieldSums) -> Self {
        let counts = Counts::from_iter([("events", events)]);
        let pubkeys = u64::from(pubkeys);
        match field {
            EventField::Kind => counts.with("kinds", kinds),
            EventField::Pubkey => counts.with("pubkeys", pubkeys),
            EventField::Both => counts.with("kinds", kinds).with("pubkeys", pubkeys),
            EventField::Filter => counts.with("matched", matched),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_becomes_counts_by_the_names_of_its_fields() {
        let mut tally = LookupCounts { lookups: 3, ..LookupCounts::default() };
        [[0xff; 32], [0xff; 32], [5; 32]].iter().for_each(|digest| tally.add_found(digest));
        let checksum = 2_u64 * 0xffff_ffff + 0x0505_0505;
        let expected =
            [("lookups", 3), ("found", 3), ("lookup_checksum", checksum & u64::from(u32::MAX))];
        assert_eq!(Counts::from(tally), Counts::from_iter(expected));
    }

    #[test]
    fn a_filter_matches_notes_of_the_first_quarter_of_all_keys() {
        let matches = |kind, first| {
            let mut pubkey = [0xff; 32];
            pubkey[0] = first;
            FieldValue::filtered(kind, pubkey)
        };
        assert_eq!(matches(1, 0x3f), FieldValue::Filter(true));
        assert_eq!(matches(1, 0x40), FieldValue::Filter(false));
        assert_eq!(matches(7, 0), FieldValue::Filter(false));
    }
}
