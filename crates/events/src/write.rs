//! How a line is written: the keys of its kind, in the order of all lines.
//!
//! The order is here alone. `serde` and the [writer](crate::LineWriter) of lines from values in memory both take it from
//! here: the keys before the operations, the operations, the keys after them.

use codec::printable::escape_json;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::line::{Body, Claims, EventBody, Line, MessageClaims, Operation, Resync};
use crate::operation::Op;
use crate::text::Text;

impl Line<'_> {
    /// Appends the line with a line feed, as the command prints it: the invisible characters of its texts are escaped.
    pub fn append(&self, lines: &mut Vec<u8>) {
        let start = lines.len();
        serde_json::to_writer(&mut *lines, self).expect("text and numbers have a JSON form");
        escape_json(lines, start);
        lines.push(b'\n');
    }

    /// Writes the keys before the operations.
    pub(crate) fn write_head<K: WriteKeys>(&self, keys: &mut K) -> Result<(), K::Error> {
        keys.put("v", &Self::VERSION)?;
        keys.optional_text("id", self.id.as_ref())?;
        keys.optional("live", self.live.as_ref())?;
        match &self.body {
            Body::Event(event) => event.write_head(self, keys),
            Body::Resync(resync) => resync.write_head(self, keys),
            Body::Status(status) => {
                keys.kind(self)?;
                keys.put("active", &status.active)?;
                keys.optional_text("status", status.status.as_ref())?;
                keys.verdict(self)
            }
            Body::History { complete, .. } => {
                keys.kind(self)?;
                keys.verdict(self)?;
                keys.optional("complete", complete.as_ref())
            }
            Body::Operation(operation) => operation.write_head(self, keys),
        }
    }

    /// Writes the keys after the operations.
    pub(crate) fn write_tail<K: WriteKeys>(&self, keys: &mut K) -> Result<(), K::Error> {
        match &self.body {
            Body::Event(event) => {
                keys.optional("proof", event.proof.as_ref())?;
                keys.optional("frame", event.frame.as_ref())
            }
            Body::Resync(resync) => {
                keys.put("last", &resync.last)?;
                keys.optional("proof", resync.proof.as_ref())
            }
            Body::Operation(operation) => keys.optional("proof", operation.proof.as_ref()),
            Body::Status(_) | Body::History { .. } => Ok(()),
        }
    }

    /// The operations of an event or a repository.
    fn ops(&self) -> Option<&[Op<'_>]> {
        match &self.body {
            Body::Event(event) => event.ops.as_deref(),
            Body::Resync(resync) => Some(&resync.ops),
            Body::Status(_) | Body::History { .. } | Body::Operation(_) => None,
        }
    }
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut keys = MapKeys(serializer.serialize_map(None)?);
        self.write_head(&mut keys)?;
        keys.optional("ops", self.ops().as_ref())?;
        self.write_tail(&mut keys)?;
        keys.0.end()
    }
}

/// An object that is being written, key by key.
pub(crate) trait WriteKeys {
    /// Why it cannot be written.
    type Error;

    fn put(
        &mut self,
        key: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Self::Error>;

    fn text(&mut self, key: &'static str, text: &str) -> Result<(), Self::Error> {
        self.put(key, text)
    }

    fn optional(
        &mut self,
        key: &'static str,
        value: Option<&impl Serialize>,
    ) -> Result<(), Self::Error> {
        value.map_or(Ok(()), |value| self.put(key, value))
    }

    fn optional_text(
        &mut self,
        key: &'static str,
        text: Option<&Text<'_>>,
    ) -> Result<(), Self::Error> {
        text.map_or(Ok(()), |text| self.text(key, text))
    }

    /// The kind, and the account of a line that is about one.
    fn kind(&mut self, line: &Line<'_>) -> Result<(), Self::Error> {
        self.text("kind", line.kind().as_str())?;
        match line.account() {
            Some(did) => self.text("did", did),
            None => Ok(()),
        }
    }

    fn verdict(&mut self, line: &Line<'_>) -> Result<(), Self::Error> {
        self.text("verdict", line.verdict.as_str())?;
        self.text("code", line.code.as_str())
    }

    /// Where a message is from.
    fn source(
        &mut self,
        host: &Text<'_>,
        seq: Option<i64>,
        repeated: bool,
    ) -> Result<(), Self::Error> {
        self.text("host", host)?;
        self.optional("seq", seq.as_ref())?;
        self.optional("repeated", repeated.then_some(&true))
    }
}

/// An object of a serializer.
struct MapKeys<M>(M);

impl<M: SerializeMap> WriteKeys for MapKeys<M> {
    type Error = M::Error;

    fn put(
        &mut self,
        key: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), M::Error> {
        self.0.serialize_entry(key, value)
    }
}

impl EventBody<'_> {
    fn write_head<K: WriteKeys>(&self, line: &Line<'_>, keys: &mut K) -> Result<(), K::Error> {
        keys.optional("arrival", self.arrival.as_ref())?;
        keys.source(&self.host, self.seq, self.repeated)?;
        keys.kind(line)?;
        self.claims.write(keys)?;
        keys.verdict(line)?;
        keys.optional_text("key", self.key.as_ref())?;
        keys.optional_text("message", self.message.as_ref())?;
        keys.optional("verified_against", self.verified_against.as_ref())
    }
}

impl Claims<'_> {
    fn write<K: WriteKeys>(&self, keys: &mut K) -> Result<(), K::Error> {
        match self {
            Self::Commit(Some(commit)) => {
                keys.optional_text("time", commit.time.as_ref())?;
                keys.text("rev", &commit.rev)?;
                keys.optional_text("commit", commit.commit.as_ref())
            }
            Self::Sync(Some(sync)) => {
                keys.optional_text("time", sync.time.as_ref())?;
                keys.text("rev", &sync.rev)
            }
            Self::Identity(Some(identity)) => {
                keys.optional_text("time", identity.time.as_ref())?;
                keys.optional_text("handle", identity.handle.as_ref())
            }
            Self::Account(Some(account)) => {
                keys.optional_text("time", account.time.as_ref())?;
                keys.put("active", &account.active)?;
                keys.optional_text("status", account.status.as_ref())
            }
            Self::Info(Some(MessageClaims { name, message }))
            | Self::Error(Some(MessageClaims { name, message })) => {
                keys.text("name", name)?;
                keys.optional_text("message", message.as_ref())
            }
            Self::Unknown(message_type) => keys.optional_text("type", message_type.as_ref()),
            _ => Ok(()),
        }
    }
}

impl Resync<'_> {
    fn write_head<K: WriteKeys>(&self, line: &Line<'_>, keys: &mut K) -> Result<(), K::Error> {
        keys.optional_text("time", self.time.as_ref())?;
        keys.text("host", &self.host)?;
        keys.kind(line)?;
        keys.text("rev", &self.rev)?;
        keys.text("commit", &self.commit)?;
        keys.verdict(line)?;
        keys.optional("collections", self.collections.as_ref())?;
        keys.optional("complete", self.complete.as_ref())?;
        keys.put("records", &self.records)?;
        keys.put("invalid_records", &self.invalid_records)?;
        keys.put("bytes", &self.bytes)?;
        keys.put("piece", &self.piece)?;
        keys.put("whole", &self.whole)
    }
}

impl Operation<'_> {
    fn write_head<K: WriteKeys>(&self, line: &Line<'_>, keys: &mut K) -> Result<(), K::Error> {
        keys.source(&self.host, self.seq, self.repeated)?;
        keys.kind(line)?;
        keys.optional_text("time", self.time.as_ref())?;
        keys.text("rev", &self.rev)?;
        keys.optional_text("commit", self.commit.as_ref())?;
        keys.verdict(line)?;
        keys.optional("verified_against", self.verified_against.as_ref())?;
        keys.optional_text("message", self.message.as_ref())?;
        keys.optional("piece", self.piece.as_ref())?;
        keys.optional("whole", self.whole.as_ref())?;
        keys.put("index", &self.index)?;
        keys.put("last", &self.last)?;
        let op = &self.op;
        keys.text("action", op.action.as_str())?;
        keys.text("collection", &op.collection)?;
        keys.text("rkey", &op.rkey)?;
        keys.optional_text("cid", op.cid.as_ref())?;
        keys.optional("record", op.record())?;
        keys.optional("invalid", op.invalid())?;
        keys.optional("filtered", op.filtered.then_some(&true))
    }
}
