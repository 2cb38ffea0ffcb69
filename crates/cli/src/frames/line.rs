//! A verified line of `follow`, read strictly: no key twice, none that lines do not have, and none missing.

use std::rc::Rc;

use codec::cbor::{self, Arena, MAX_DEPTH};
use codec::json as codec_json;
use events::{self, Action, Code, Kind, Verdict};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::strict_json;

/// A line with its members, of which the account and the verdict are read.
pub(super) struct UnreadLine {
    pub(super) did: Option<String>,
    pub(super) rev: Option<String>,
    verdict: Verdict,
    members: Members,
}

/// A verified line.
pub(super) struct VerifiedLine {
    pub(super) kind: Kind,
    pub(super) did: String,
    pub(super) rev: String,
    pub(super) id: Option<String>,
    pub(super) seq: Option<i64>,
    pub(super) time: Option<String>,
    pub(super) commit: Option<String>,
    /// The did:key under which an archived event was verified.
    pub(super) key: Option<String>,
    /// Number of the line among the lines of its repository.
    pub(super) piece: Option<u64>,
    pub(super) ops: Vec<Op>,
    pub(super) proof: Option<Rc<Proof>>,
    /// The keys that have no effect on the proof.
    pub(super) uncompared: Vec<&'static str>,
}

/// The proof of a line.
pub(super) enum Proof {
    Frame(Vec<u8>),
    Blocks(Vec<u8>),
}

/// An operation.
pub(super) struct Op {
    /// `None` for a word that is not an action.
    pub(super) action: Option<Action>,
    pub(super) path: String,
    pub(super) cid: Option<String>,
    pub(super) record: Option<Value>,
    pub(super) invalid: Option<Invalid>,
    pub(super) is_filtered: bool,
}

/// A record without a value: the broken rule, and its bytes.
pub(super) struct Invalid {
    pub(super) code: String,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

/// Why a text is not a line.
#[derive(Debug)]
pub(super) struct Malformed(pub(super) String);

impl UnreadLine {
    /// # Errors
    /// If the text is no JSON object with a verdict, or has a key twice.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Malformed> {
        let value =
            strict_json::read(text, MAX_LINE_DEPTH).map_err(|why| Malformed(why.to_string()))?;
        let mut members = Members::of(value, "a line")?;
        Ok(Self {
            did: members.get("did")?,
            rev: members.get("rev")?,
            verdict: members.required("verdict")?,
            members,
        })
    }

    /// Whether the line claims verified records.
    pub(super) fn is_verified(&self) -> bool {
        self.verdict == Verdict::Verified
    }

    /// Reads the rest of a verified line.
    ///
    /// # Errors
    /// If a key is missing or unknown, or a value has another form.
    pub(super) fn read(self) -> Result<VerifiedLine, Malformed> {
        let Self { did, rev, mut members, .. } = self;
        if members.required::<u64>("v")? != events::Line::VERSION {
            let version = events::Line::VERSION;
            return Err(Malformed(format!("it has another version than {version}")));
        }
        let code: String = members.required("code")?;
        if !Code::from(&*code).is_verified() {
            return Err(Malformed(format!("the code {code:?} of a verified line")));
        }
        let kind: Kind = members.required("kind")?;
        let line = VerifiedLine {
            ops: members.ops(kind)?,
            did: did.ok_or_else(|| missing("did"))?,
            rev: rev.ok_or_else(|| missing("rev"))?,
            id: members.get("id")?,
            seq: members.get("seq")?,
            time: members.get("time")?,
            commit: members.get("commit")?,
            key: members.get("key")?,
            piece: members.get("piece")?,
            proof: members.get("proof")?.map(Proof::read).transpose()?.map(Rc::new),
            uncompared: members.take_uncompared(kind)?,
            kind,
        };
        members.finish()?;
        Ok(line)
    }
}

impl Proof {
    fn read(json: Value) -> Result<Self, Malformed> {
        let mut members = Members::of(json, "a proof")?;
        let proof = match (members.bytes("frame")?, members.bytes("blocks")?) {
            (Some(frame), None) => Self::Frame(frame),
            (None, Some(blocks)) => Self::Blocks(blocks),
            _ => return Err(Malformed("a proof is a frame or blocks".to_owned())),
        };
        members.finish()?;
        Ok(proof)
    }
}

impl Invalid {
    fn read(json: Value) -> Result<Self, Malformed> {
        let mut members = Members::of(json, "an invalid record")?;
        let invalid = Self {
            code: members.required("code")?,
            offset: members.required("offset")?,
            bytes: members.bytes("bytes")?.ok_or_else(|| missing("bytes"))?,
        };
        members.required::<String>("message")?;
        members.finish()?;
        Ok(invalid)
    }
}

/// The members of an object that are not read yet.
struct Members(Map<String, Value>);

impl Members {
    fn of(json: Value, what: &str) -> Result<Self, Malformed> {
        match json {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(Malformed(format!("{what} is an object"))),
        }
    }

    fn get<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, Malformed> {
        let value = self.0.remove(key).map(serde_json::from_value);
        value.transpose().map_err(|why| Malformed(format!("{key}: {why}")))
    }

    fn required<T: DeserializeOwned>(&mut self, key: &str) -> Result<T, Malformed> {
        self.get(key)?.ok_or_else(|| missing(key))
    }

    fn bytes(&mut self, key: &str) -> Result<Option<Vec<u8>>, Malformed> {
        let Some(json) = self.0.remove(key) else { return Ok(None) };
        let arena = Arena::new();
        match codec_json::decode(&json.to_string(), &arena) {
            Ok(cbor::Value::Bytes(bytes)) => Ok(Some(bytes.to_vec())),
            _ => Err(Malformed(format!("{key}: bytes have the form {{\"$bytes\": …}}"))),
        }
    }

    /// The operations of a line of this kind.
    fn ops(&mut self, kind: Kind) -> Result<Vec<Op>, Malformed> {
        match kind {
            Kind::Operation => Ok(vec![self.op()?]),
            Kind::Commit | Kind::Resync => {
                let ops = self.required::<Vec<Value>>("ops")?;
                ops.into_iter().map(|op| Self::of(op, "an operation")?.into_op()).collect()
            }
            _ => Ok(Vec::new()),
        }
    }

    fn into_op(mut self) -> Result<Op, Malformed> {
        let op = self.op()?;
        self.finish()?;
        Ok(op)
    }

    fn op(&mut self) -> Result<Op, Malformed> {
        let collection: String = self.required("collection")?;
        let rkey: String = self.required("rkey")?;
        Ok(Op {
            action: Action::parse(&self.required::<String>("action")?),
            path: format!("{collection}/{rkey}"),
            cid: self.get("cid")?,
            record: self.0.remove("record"),
            invalid: self.get("invalid")?.map(Invalid::read).transpose()?,
            is_filtered: self.get("filtered")?.unwrap_or_default(),
        })
    }

    /// Takes the members of a line of this kind with which no proof is compared, and returns their keys.
    fn take_uncompared(&mut self, kind: Kind) -> Result<Vec<&'static str>, Malformed> {
        let keys = UNCOMPARED.iter().filter(|(_, kinds)| kinds.is_empty() || kinds.contains(&kind));
        let mut taken = Vec::new();
        for (key, _) in keys {
            match self.0.remove(*key) {
                None => {}
                Some(Value::Object(_) | Value::Array(_) | Value::Null) => {
                    return Err(Malformed(format!("{key}: a text, a number or a boolean")));
                }
                Some(_) => taken.push(*key),
            }
        }
        Ok(taken)
    }

    /// Refuses members that were not read.
    fn finish(self) -> Result<(), Malformed> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((key, _)) => Err(Malformed(format!("unknown key {key:?}"))),
        }
    }
}

fn missing(key: &str) -> Malformed {
    Malformed(format!("no key {key:?}"))
}

/// The keys with which no proof is compared, and the kinds of lines that have them if not all.
const UNCOMPARED: [(&str, &[Kind]); 12] = [
    ("live", &[]),
    ("host", &[]),
    ("arrival", &[]),
    ("repeated", &[]),
    ("verified_against", &[]),
    ("message", &[]),
    ("whole", OF_REPOSITORIES),
    ("last", OF_REPOSITORIES),
    ("index", &[Kind::Operation]),
    ("records", &[Kind::Resync]),
    ("invalid_records", &[Kind::Resync]),
    ("bytes", &[Kind::Resync]),
];

const OF_REPOSITORIES: &[Kind] = &[Kind::Resync, Kind::Operation];

/// A record, and the containers around it; links and bytes are objects too.
pub(super) const MAX_LINE_DEPTH: usize = MAX_DEPTH as usize + 4;
