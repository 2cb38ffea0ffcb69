//! What must come of the records to insert and look up? The units of the task `mst`.

use simnet::tree::reference;
use simnet::tree_records::TreeRecords;
use wireproof::codec::Cid;

use crate::counts::Counts;

/// What every peer must find: the root by the plain reference, the lookups by the file itself. `None`
/// if a key is no text.
pub(crate) fn counts(file: &TreeRecords<'_>) -> Option<Counts> {
    let (records, lookups) = (file.records.len() as u64, file.lookups.len() as u64);
    let checksum = checksum(file.lookups.iter().map(|at| file.records[*at as usize].1));
    let counts = [("records", records), ("lookups", lookups), ("found", lookups)];
    let entries: Vec<(&str, Cid)> =
        file.records.iter().map(|(key, cid)| Some((text(key)?, *cid))).collect::<Option<_>>()?;
    let root = reference::build(&entries).root().to_string();
    Some(Counts::from_iter(counts).with("lookup_checksum", checksum).with("root", root))
}

fn text(key: &[u8]) -> Option<&str> {
    str::from_utf8(key).ok()
}

/// The sum of the first four bytes of each digest found, modulo 2³².
pub(crate) fn checksum(found: impl Iterator<Item = Cid>) -> u64 {
    let head = |cid: Cid| u32::from_be_bytes(*cid.digest().first_chunk().expect("32 bytes"));
    u64::from(found.map(head).fold(0, u32::wrapping_add))
}
