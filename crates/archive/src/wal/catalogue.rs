//! The segments of a log that can be read, with the arrivals they begin with.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::record::{self, GROUP_HEADER_LEN, SEGMENT_HEADER_LEN, SegmentHeader};
use super::segment::{Segment, kept_segments, segments};

/// The segments by number.
#[derive(Debug, Default)]
pub(super) struct Catalogue(BTreeMap<u64, SegmentBounds>);

/// What is known of a segment without reading all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentBounds {
    /// The last arrival that an event before the segment takes.
    pub(super) before: i64,
    /// The arrival of its first event; `None` while it has none.
    pub(super) first: Option<i64>,
    /// Bytes that can be read: the header, and the groups that are on the disk.
    pub(super) len: u64,
}

impl Catalogue {
    /// Reads the start of every segment of a folder. A segment without a header has no events.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let mut catalogue = BTreeMap::new();
        for segment in kept_segments(folder)?.into_iter().chain(segments(folder)?) {
            catalogue.extend(SegmentBounds::read(&segment)?.map(|bounds| (segment.number, bounds)));
        }
        Ok(Self(catalogue))
    }

    /// Adds a segment without events.
    pub(super) fn begin(&mut self, number: u64, before: i64) {
        let len = SEGMENT_HEADER_LEN as u64;
        self.0.insert(number, SegmentBounds { before, first: None, len });
    }

    /// Sets the bytes of the open segment that are on the disk.
    pub(super) fn set_len(&mut self, number: u64, len: u64) {
        // A log that begins has one segment, after no event.
        let empty = SegmentBounds { before: 0, first: None, len };
        self.0.entry(number).or_insert(empty).len = len;
    }

    /// Records a group of the open segment, whose length is now `len`.
    pub(super) fn append(&mut self, number: u64, len: u64, records: &[u8]) {
        if let Some(bounds) = self.0.get_mut(&number) {
            bounds.len = len;
            bounds.first = bounds.first.or_else(|| record::first_arrival(records));
        }
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.0.remove(&number);
    }

    pub(super) fn get(&self, number: u64) -> Option<SegmentBounds> {
        self.0.get(&number).copied()
    }

    /// The segment that can have the first event after an arrival.
    pub(super) fn segment_after(&self, arrival: i64) -> Option<u64> {
        let earlier = self.0.iter().rev().find(|(_, bounds)| bounds.before <= arrival);
        earlier.or_else(|| self.0.iter().next()).map(|(number, _)| *number)
    }

    /// The first segment after this one.
    pub(super) fn segment_following(&self, number: u64) -> Option<u64> {
        self.0.range(number + 1..).next().map(|(number, _)| *number)
    }

    /// The arrival after which every event is there; 0 if no event was deleted.
    pub(super) fn floor(&self) -> i64 {
        self.0.values().next().map_or(0, |bounds| bounds.before)
    }

    /// The arrival of the first event.
    pub(super) fn first(&self) -> Option<i64> {
        self.0.values().find_map(|bounds| bounds.first)
    }

    /// The oldest segment that need not stay: all segments have more than `max_bytes`, or no event after `cutoff` is in it.
    pub(super) fn due(&self, max_bytes: u64, cutoff: i64) -> Option<u64> {
        let mut oldest = self.0.iter();
        let (number, _) = oldest.next()?;
        let (_, following) = oldest.next()?;
        let bytes: u64 = self.0.values().map(|bounds| bounds.len).sum();
        (bytes > max_bytes || following.before <= cutoff).then_some(*number)
    }
}

impl SegmentBounds {
    fn read(segment: &Segment) -> io::Result<Option<Self>> {
        const START_LEN: usize = SEGMENT_HEADER_LEN + GROUP_HEADER_LEN + 12;
        let mut start = Vec::with_capacity(START_LEN);
        File::open(&segment.path)?.take(START_LEN as u64).read_to_end(&mut start)?;
        let header = start.first_chunk().and_then(SegmentHeader::of_bytes);
        let Some(SegmentHeader { last_arrival, .. }) = header else { return Ok(None) };
        let records = start.get(SEGMENT_HEADER_LEN + GROUP_HEADER_LEN..);
        let first = records.and_then(record::first_arrival);
        Ok(Some(Self { before: last_arrival, first, len: segment.len()? }))
    }
}
