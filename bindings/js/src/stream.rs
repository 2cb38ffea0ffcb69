//! Archives that arrive in pieces: repositories to verify, and blocks to hand on.

use codec::car::{BlockBatch, Options, Pushed, StreamError, StreamReader};
use serde_json::json;
use verify::repository::stream::{
    FeedProgress, RepositoryFeed, StreamFailure, StreamOptions, StreamedRepository,
};

use crate::fault::Fault;
use crate::format::flags_of;
use crate::key::KeyArgument;
use crate::repository::{OptionFields, Proof};

/// A repository that arrives in pieces.
#[derive(Debug)]
pub struct RepositoryStream {
    feed: Option<RepositoryFeed>,
}

impl RepositoryStream {
    /// Begins a verification. Without a key the author is not proved. The seed places CIDs in tables, and must not be known to
    /// who sends the archive.
    ///
    /// # Errors
    /// If there is no such key.
    pub fn new(
        key: Option<KeyArgument<'_>>,
        did: Option<&str>,
        options: &OptionFields,
        seed: [u8; 16],
    ) -> Result<Self, Fault> {
        let mut limits = StreamOptions::default();
        limits.repository = options.limits();
        limits.max_held_bytes = options.max_held_bytes.unwrap_or(MAX_HELD_BYTES);
        limits.seed = Some(seed);
        let feed = match key {
            None => RepositoryFeed::without_signature(&limits),
            Some(key) => {
                let account = key.resolve(did)?;
                RepositoryFeed::new(account.did.as_deref(), &account.key, &limits)
            }
        };
        Ok(Self { feed: Some(feed) })
    }

    /// Adds the next bytes; returns how far the archive was read.
    ///
    /// # Errors
    /// At a fault of the archive.
    pub fn push(&mut self, bytes: &[u8]) -> Result<FeedProgress, Fault> {
        let Some(feed) = &mut self.feed else { return Err(ended()) };
        feed.push(bytes).map_err(fault_of)?;
        Ok(feed.progress())
    }

    /// The summary of the repository as JSON, after its last bytes.
    ///
    /// # Errors
    /// At the first broken rule.
    pub fn finish(&mut self) -> Result<String, Fault> {
        let feed = self.feed.take().ok_or_else(ended)?;
        let whole = feed.finish().map_err(fault_of)?;
        Ok(summary(&whole))
    }
}

fn summary(whole: &StreamedRepository) -> String {
    let proof = Proof {
        commit: whole.commit(),
        root: whole.root(),
        signature: whole.signature(),
        tree: whole.tree(),
        blocks: whole.blocks(),
        bytes: whole.bytes(),
        extra: whole.extra(),
        invalid: whole.invalid_records(),
    };
    proof.to_value().to_string()
}

#[cold]
fn ended() -> Fault {
    Fault::argument("source", "the stream has ended")
}

#[cold]
fn fault_of(failure: StreamFailure) -> Fault {
    match failure {
        StreamFailure::Rejected(why) => (*why).into(),
        // Nothing is spilled here: the caller can pass the archive as a whole.
        StreamFailure::Unordered => Fault::argument(
            "source",
            "the archive is not in streamable order: raise maxHeldBytes, or pass it as bytes",
        ),
        other => Fault::argument("source", other),
    }
}

/// The blocks of an archive that arrives in pieces.
#[derive(Debug, Default)]
pub struct CarStream {
    /// The first bytes, until the header is among them.
    pushed: Pushed,
    reader: Option<StreamReader<Pushed>>,
}

/// Blocks that were read together.
#[derive(Debug)]
pub struct Blocks {
    /// The CIDs and the data of the blocks, one after the other.
    pub bytes: Vec<u8>,
    /// The places of the blocks in `bytes`, as of an archive in memory.
    pub places: Vec<u32>,
    /// Where the data of each block starts in the archive.
    pub offsets: Vec<f64>,
}

impl CarStream {
    /// Adds the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.source().push(bytes);
    }

    /// Declares that there are no more.
    pub fn end(&mut self) {
        self.source().end();
    }

    fn source(&mut self) -> &mut Pushed {
        match &mut self.reader {
            Some(reader) => reader.source_mut(),
            None => &mut self.pushed,
        }
    }

    /// The roots as a JSON array of CIDs, once the header has arrived.
    ///
    /// # Errors
    /// If the header breaks a rule.
    pub fn roots(&mut self) -> Result<Option<String>, Fault> {
        let options = Options::default();
        if self.reader.is_none() {
            if !self.pushed.has_header(&options) {
                return Ok(None);
            }
            let pushed = std::mem::take(&mut self.pushed);
            self.reader = Some(StreamReader::new(pushed, &options).map_err(car_fault)?);
        }
        let Some(reader) = &self.reader else { return Ok(None) };
        let roots: Vec<&[u8]> = reader.roots().iter().map(|root| root.as_bytes()).collect();
        Ok(Some(json!(roots).to_string()))
    }

    /// The next blocks; `None` if there are none yet, or no more after the end.
    ///
    /// # Errors
    /// At the first part of the archive that breaks a rule, or does not match its hash, after the blocks before it.
    pub fn next_blocks(&mut self) -> Result<Option<Blocks>, Fault> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        match reader.next_batch() {
            Ok(batch) => Ok(batch.map(|batch| blocks_of(&batch))),
            Err(StreamError::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
                Ok(None)
            }
            Err(error) => Err(car_fault(error)),
        }
    }
}

fn blocks_of(batch: &BlockBatch) -> Blocks {
    let mut blocks = Blocks { bytes: Vec::new(), places: Vec::new(), offsets: Vec::new() };
    for block in batch.iter() {
        let (at, cid) = (blocks.bytes.len() as u32, block.cid.as_bytes());
        blocks.bytes.extend_from_slice(cid);
        blocks.bytes.extend_from_slice(block.data);
        blocks.places.extend([at, cid.len() as u32, block.data.len() as u32, flags_of(&block)]);
        blocks.offsets.push(block.data_offset() as f64);
    }
    blocks
}

#[cold]
fn car_fault(error: StreamError) -> Fault {
    match error {
        StreamError::Car(error) => error.into(),
        other => Fault::argument("source", other),
    }
}

/// Bytes of blocks that may be held until the tree names them.
const MAX_HELD_BYTES: usize = 16 << 20;
