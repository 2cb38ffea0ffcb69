//! What is in a file of frames? Our own count of it, by the strict decoder.

use wireproof::atproto::event::{Block, Decoder, Event, FrameError, Options, Values};
use wireproof::codec::cbor;

use crate::counts::Counts;

/// The counts of the task `decode` so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    frames: u64,
    errors: u64,
    blocks: u64,
    content: cbor::ItemCounts,
}

impl Tally {
    /// Counts all `frames`, every hash checked.
    pub(crate) fn of(frames: &[&[u8]]) -> Self {
        let options = Options { values: Values::ValidateOnly, ..Options::default() };
        let mut decoder = Decoder::new(options);
        let mut tally = Self::default();
        for frame in frames {
            tally.frame(decoder.decode(frame), |block, counts| {
                cbor::count(block.data, counts).expect("the decoder validated this block");
            });
        }
        tally
    }

    /// Counts one frame; `count` adds up what is in a block of DAG-CBOR.
    pub(crate) fn frame(
        &mut self,
        result: Result<Event<'_>, FrameError>,
        count: impl Fn(&Block<'_>, &mut cbor::ItemCounts),
    ) {
        self.frames += 1;
        let Ok(event) = result else {
            self.errors += 1;
            return;
        };
        for block in event.blocks() {
            self.blocks += 1;
            if block.cid.is_dag_cbor() {
                count(block, &mut self.content);
            }
        }
    }
}

impl From<Tally> for Counts {
    fn from(tally: Tally) -> Self {
        let cbor::ItemCounts {
            maps,
            map_entries,
            arrays,
            array_items,
            text_bytes,
            byte_string_bytes,
            links,
            integers,
            floats,
            booleans,
            nulls,
        } = tally.content;
        Self::from_iter([
            ("frames", tally.frames),
            ("errors", tally.errors),
            ("blocks", tally.blocks),
            ("maps", maps),
            ("map_entries", map_entries),
            ("arrays", arrays),
            ("array_items", array_items),
            ("text_bytes", text_bytes),
            ("byte_string_bytes", byte_string_bytes),
            ("links", links),
            ("integers", integers),
            ("floats", floats),
            ("booleans", booleans),
            ("nulls", nulls),
        ])
    }
}
