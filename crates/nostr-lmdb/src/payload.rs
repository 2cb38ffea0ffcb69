//! Payloads of strfry: the JSON of an event, plain or compressed with a dictionary of the database.

use std::collections::HashMap;

use heed::RoTxn;
use nostr::{DecodeError, Reason};
use nostr_formats::container::MAX_EVENT_BYTES;
use zstd::bulk::Decompressor;
use zstd::zstd_safe::get_frame_content_size;

use crate::error::DatabaseError;
use crate::flat;
use crate::tables::Table;

/// First byte of a payload.
pub(crate) const PLAIN: u8 = 0;
pub(crate) const COMPRESSED: u8 = 1;

/// Decompresses payloads.
pub(crate) struct Payloads {
    /// The table of dictionaries, if the database has one.
    table: Option<Table>,
    /// The dictionaries that were used, at most [`MAX_OPEN`].
    open: HashMap<u32, Decompressor<'static>>,
    /// The last text that was decompressed.
    text: Vec<u8>,
}

impl Payloads {
    pub(crate) fn new(table: Option<Table>) -> Self {
        Self { table, open: HashMap::new(), text: Vec::new() }
    }

    /// Appends the JSON of a payload, or says why it has none.
    pub(crate) fn read(
        &mut self,
        txn: &RoTxn<'_>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Result<(), DecodeError>, DatabaseError> {
        let fault = |at, reason| Ok(Err(DecodeError::new(at, reason)));
        match payload {
            [] => fault(0, Reason::Truncated),
            [PLAIN, json @ ..] => Ok(append(json, out)),
            [COMPRESSED, rest @ ..] => {
                let Some((number, frame)) = rest.split_first_chunk() else {
                    return fault(payload.len(), Reason::Truncated);
                };
                let number = u32::from_ne_bytes(*number);
                if !self.open(txn, number)? {
                    return fault(1, Reason::Expected(DICTIONARY));
                }
                Ok(self.decompress(number, frame, out))
            }
            _ => fault(0, Reason::Expected(TYPE)),
        }
    }

    /// Opens a dictionary; whether there is one.
    fn open(&mut self, txn: &RoTxn<'_>, number: u32) -> Result<bool, DatabaseError> {
        if self.open.contains_key(&number) {
            return Ok(true);
        }
        let Some(table) = &self.table else { return Ok(false) };
        let record = table.get(txn, &u64::from(number).to_ne_bytes())?;
        let dictionary = record.and_then(flat::bytes_of);
        let Some(dictionary) = dictionary.filter(|it| it.len() <= MAX_DICTIONARY_BYTES) else {
            return Ok(false);
        };
        let Ok(decompressor) = Decompressor::with_dictionary(dictionary) else { return Ok(false) };
        if self.open.len() == MAX_OPEN {
            self.open.clear();
        }
        self.open.insert(number, decompressor);
        Ok(true)
    }

    /// Appends the text of a frame under a dictionary that is open.
    fn decompress(
        &mut self,
        number: u32,
        frame: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        let malformed = || DecodeError::new(FRAME, Reason::Expected(FRAME_OF_DICTIONARY));
        let Some(decompressor) = self.open.get_mut(&number) else { return Err(malformed()) };
        let stated = get_frame_content_size(frame).map_err(|_| malformed())?;
        let max = match stated.map(usize::try_from) {
            Some(Ok(len)) if len <= MAX_EVENT_BYTES => len,
            Some(_) => return Err(DecodeError::new(FRAME, TOO_LONG)),
            None => MAX_EVENT_BYTES,
        };
        self.text.clear();
        // Pages of memory that are not written are not taken.
        self.text.reserve(max);
        // The capacity bounds the output.
        let read = decompressor.decompress_to_buffer(frame, &mut self.text);
        read.map_err(|_| malformed())?;
        append(&self.text, out)
    }
}

/// Appends bytes that should be an event.
pub(crate) fn append(event: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    if event.len() > MAX_EVENT_BYTES {
        return Err(DecodeError::new(0, TOO_LONG));
    }
    out.extend_from_slice(event);
    Ok(())
}

/// Offset of the frame in a payload.
const FRAME: usize = 5;
pub(crate) const TYPE: &str = "a payload of type 0 or 1";
pub(crate) const DICTIONARY: &str = "the number of a dictionary of the database";
pub(crate) const FRAME_OF_DICTIONARY: &str = "a frame of Zstandard under this dictionary";

pub(crate) const TOO_LONG: Reason = Reason::Expected("an event of at most 16 MiB");

/// Maximum length of a dictionary in bytes; strfry trains them of 100,000.
pub(crate) const MAX_DICTIONARY_BYTES: usize = 1 << 20;
/// Maximum number of dictionaries that are open; beyond it they are opened anew.
const MAX_OPEN: usize = 16;
