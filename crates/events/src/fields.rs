//! How a line is read: all keys of all kinds at once, then the keys of its kind.
//!
//! The kind is not the first key of a line, and values are borrowed from the text: so the keys are read into one flat
//! structure, in one pass.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::code::Code;
use crate::error::{LineError, LineFault};
use crate::line::{
    AccountClaims, Body, Claims, CommitClaims, EventBody, IdentityClaims, Line, MessageClaims,
    Operation, Proof, Resync, Status, SyncClaims,
};
use crate::operation::{ActionWord, Op, content};
use crate::text::{Bytes, Json, Text};
use crate::words::{Kind, ProvedLevel, Verdict};

/// The keys of all kinds.
#[derive(Deserialize)]
#[serde(expecting = "a line")]
struct Fields<'l> {
    v: u64,
    #[serde(borrow)]
    id: Option<Text<'l>>,
    live: Option<bool>,
    arrival: Option<i64>,
    #[serde(borrow)]
    host: Option<Text<'l>>,
    seq: Option<i64>,
    #[serde(default)]
    repeated: bool,
    kind: Kind,
    #[serde(borrow)]
    did: Option<Text<'l>>,
    #[serde(borrow)]
    time: Option<Text<'l>>,
    #[serde(borrow)]
    rev: Option<Text<'l>>,
    #[serde(borrow)]
    commit: Option<Text<'l>>,
    #[serde(borrow)]
    handle: Option<Text<'l>>,
    active: Option<bool>,
    #[serde(borrow)]
    status: Option<Text<'l>>,
    #[serde(borrow)]
    name: Option<Text<'l>>,
    #[serde(borrow, rename = "type")]
    message_type: Option<Text<'l>>,
    verdict: Verdict,
    #[serde(borrow)]
    code: Code<'l>,
    #[serde(borrow)]
    key: Option<Text<'l>>,
    #[serde(borrow)]
    message: Option<Text<'l>>,
    verified_against: Option<ProvedLevel>,
    #[serde(borrow)]
    collections: Option<Vec<Text<'l>>>,
    #[serde(borrow)]
    complete: Option<Vec<Text<'l>>>,
    records: Option<u64>,
    invalid_records: Option<u64>,
    bytes: Option<u64>,
    piece: Option<u64>,
    whole: Option<bool>,
    #[serde(borrow)]
    ops: Option<Vec<Op<'l>>>,
    index: Option<u64>,
    last: Option<bool>,
    action: Option<ActionWord>,
    #[serde(borrow)]
    collection: Option<Text<'l>>,
    #[serde(borrow)]
    rkey: Option<Text<'l>>,
    #[serde(borrow)]
    cid: Option<Text<'l>>,
    #[serde(borrow)]
    record: Option<Json<'l>>,
    #[serde(borrow)]
    invalid: Option<Json<'l>>,
    #[serde(default)]
    filtered: bool,
    #[serde(borrow)]
    proof: Option<Proof<'l>>,
    #[serde(borrow)]
    frame: Option<Bytes<'l>>,
}

impl<'l> Line<'l> {
    /// Reads a line.
    ///
    /// # Errors
    /// If the text is no line of this version, or lacks a key of its kind.
    pub fn parse(json: &'l [u8]) -> Result<Self, LineError> {
        // Checked at once, no text is checked again.
        let text = str::from_utf8(json).map_err(LineError::of_utf8)?;
        let fields: Fields<'l> =
            serde_json::from_str(text).map_err(|error| LineError::of_json(&error, json))?;
        fields.line().map_err(|fault| LineError { offset: json.len(), fault })
    }
}

impl<'de: 'l, 'l> Deserialize<'de> for Line<'l> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Fields::deserialize(deserializer)?.line().map_err(D::Error::custom)
    }
}

impl<'l> Fields<'l> {
    fn line(self) -> Result<Line<'l>, LineFault> {
        if self.v != Line::VERSION {
            return Err(LineFault::Version(self.v));
        }
        let Self { live, verdict, .. } = self;
        let mut fields = self;
        let id = fields.id.take();
        let code = std::mem::replace(&mut fields.code, Code::Message);
        let body = match fields.kind {
            Kind::Resync => Body::Resync(fields.resync()?),
            Kind::Status => Body::Status(fields.status()?),
            Kind::History => Body::History { did: fields.did()?, complete: fields.complete.take() },
            Kind::Operation => Body::Operation(Box::new(fields.operation()?)),
            _ => Body::Event(fields.event()?),
        };
        Ok(Line { id, live, verdict, code, body })
    }

    /// A value that every line of the kind has.
    fn of_kind<T>(
        &mut self,
        key: &'static str,
        take: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Result<T, LineFault> {
        take(self).ok_or(LineFault::Missing { kind: self.kind, key })
    }

    fn host(&mut self) -> Result<Text<'l>, LineFault> {
        self.of_kind("host", |of| of.host.take())
    }

    fn did(&mut self) -> Result<Text<'l>, LineFault> {
        self.of_kind("did", |of| of.did.take())
    }

    fn rev(&mut self) -> Result<Text<'l>, LineFault> {
        self.of_kind("rev", |of| of.rev.take())
    }

    fn event(mut self) -> Result<EventBody<'l>, LineFault> {
        let is_of_account =
            matches!(self.kind, Kind::Commit | Kind::Sync | Kind::Identity | Kind::Account);
        let did = if is_of_account { Some(self.did()?) } else { self.did.take() };
        let claims = self.claims()?;
        let is_verified = self.verdict == Verdict::Verified;
        if self.kind == Kind::Commit && is_verified && self.ops.is_none() {
            return Err(LineFault::Missing { kind: self.kind, key: "ops" });
        }
        Ok(EventBody {
            arrival: self.arrival,
            host: self.host()?,
            seq: self.seq,
            repeated: self.repeated,
            did,
            claims,
            key: self.key,
            message: self.message,
            verified_against: self.verified_against,
            ops: self.ops.filter(|_| self.kind == Kind::Commit),
            proof: self.proof,
            frame: self.frame,
        })
    }

    /// The claims of an event; of a refused one only if it could be decoded.
    fn claims(&mut self) -> Result<Claims<'l>, LineFault> {
        Ok(match self.kind {
            Kind::Commit => Claims::Commit(self.decoded("rev", |of| {
                let rev = of.rev.take()?;
                Some(CommitClaims { time: of.time.take(), rev, commit: of.commit.take() })
            })?),
            Kind::Sync => Claims::Sync(self.decoded("rev", |of| {
                Some(SyncClaims { rev: of.rev.take()?, time: of.time.take() })
            })?),
            Kind::Identity if self.is_undecoded() => Claims::Identity(None),
            Kind::Identity => {
                let (time, handle) = (self.time.take(), self.handle.take());
                Claims::Identity(Some(IdentityClaims { time, handle }))
            }
            Kind::Account => Claims::Account(self.decoded("active", |of| {
                let active = of.active?;
                Some(AccountClaims { time: of.time.take(), active, status: of.status.take() })
            })?),
            Kind::Info => Claims::Info(self.decoded("name", Self::message_claims)?),
            Kind::Error => Claims::Error(self.decoded("name", Self::message_claims)?),
            Kind::Unknown => Claims::Unknown(self.message_type.take()),
            _ => Claims::Undecodable,
        })
    }

    /// The claims of an event with `key`, which only a refused one may lack.
    fn decoded<T>(
        &mut self,
        key: &'static str,
        take: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Result<Option<T>, LineFault> {
        match take(self) {
            None if self.verdict != Verdict::Refused => {
                Err(LineFault::Missing { kind: self.kind, key })
            }
            claims => Ok(claims),
        }
    }

    fn is_undecoded(&self) -> bool {
        self.verdict == Verdict::Refused && self.time.is_none() && self.handle.is_none()
    }

    /// The message of a host. The text of one without a name explains the verdict.
    fn message_claims(&mut self) -> Option<MessageClaims<'l>> {
        Some(MessageClaims { name: self.name.take()?, message: self.message.take() })
    }

    fn resync(mut self) -> Result<Resync<'l>, LineFault> {
        Ok(Resync {
            host: self.host()?,
            did: self.did()?,
            rev: self.rev()?,
            commit: self.of_kind("commit", |of| of.commit.take())?,
            collections: self.collections.take(),
            complete: self.complete.take(),
            records: self.of_kind("records", |of| of.records)?,
            invalid_records: self.of_kind("invalid_records", |of| of.invalid_records)?,
            bytes: self.of_kind("bytes", |of| of.bytes)?,
            piece: self.of_kind("piece", |of| of.piece)?,
            whole: self.of_kind("whole", |of| of.whole)?,
            ops: self.of_kind("ops", |of| of.ops.take())?,
            last: self.of_kind("last", |of| of.last)?,
            time: self.time,
            proof: self.proof,
        })
    }

    fn status(mut self) -> Result<Status<'l>, LineFault> {
        Ok(Status {
            did: self.did()?,
            active: self.of_kind("active", |of| of.active)?,
            status: self.status,
        })
    }

    fn operation(mut self) -> Result<Operation<'l>, LineFault> {
        let ActionWord(action) = self.of_kind("action", |of| of.action)?;
        let content = content(action, self.record.take(), self.invalid.take());
        Ok(Operation {
            op: Op {
                action,
                collection: self.of_kind("collection", |of| of.collection.take())?,
                rkey: self.of_kind("rkey", |of| of.rkey.take())?,
                cid: self.cid.take(),
                content: content.map_err(|rule| LineFault::Value(rule.into()))?,
                filtered: self.filtered,
            },
            host: self.host()?,
            did: self.did()?,
            rev: self.rev()?,
            index: self.of_kind("index", |of| of.index)?,
            last: self.of_kind("last", |of| of.last)?,
            seq: self.seq,
            repeated: self.repeated,
            time: self.time,
            commit: self.commit,
            verified_against: self.verified_against,
            message: self.message,
            piece: self.piece,
            whole: self.whole,
            proof: self.proof,
        })
    }
}
