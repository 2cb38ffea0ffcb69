//! What does a payload decode to? A struct for each type of event, as in rsky's relay, but borrowing
//! from the frame what the relay copies.

use ipld_core::cid::Cid;
use ipld_core::ipld::Ipld;
use runner_shell::Refusal;
use serde::Deserialize;
use serde_ipld_dagcbor::from_slice;

#[expect(clippy::large_enum_variant, reason = "nearly all are commits, and a box would cost them")]
pub(crate) enum Payload<'a> {
    Commit(Commit<'a>),
    Sync(Sync<'a>),
    #[expect(dead_code, reason = "a user would read what is only decoded here")]
    Identity(Identity<'a>),
    #[expect(dead_code, reason = "a user would read what is only decoded here")]
    Account(Account<'a>),
    #[expect(dead_code, reason = "a user would read what is only decoded here")]
    Other(Ipld),
}

impl<'a> Payload<'a> {
    /// Decodes `bytes`, which are the payload to the last one.
    pub(crate) fn decode(event: &str, bytes: &'a [u8]) -> Result<Self, Refusal> {
        Ok(match event {
            "#commit" => Payload::Commit(from_slice(bytes)?),
            "#sync" => Payload::Sync(from_slice(bytes)?),
            "#identity" => Payload::Identity(from_slice(bytes)?),
            "#account" => Payload::Account(from_slice(bytes)?),
            _ => Payload::Other(from_slice(bytes)?),
        })
    }

    /// The CAR of a payload that has one.
    pub(crate) fn blocks(&self) -> Option<&'a [u8]> {
        match self {
            Payload::Commit(commit) => Some(commit.blocks),
            Payload::Sync(sync) => Some(sync.blocks),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "a user would read what is only decoded here")]
pub(crate) struct Commit<'a> {
    seq: i64,
    rebase: bool,
    too_big: bool,
    repo: &'a str,
    commit: Cid,
    rev: &'a str,
    since: Option<&'a str>,
    blocks: &'a [u8],
    #[serde(borrow)]
    ops: Vec<Operation<'a>>,
    blobs: Vec<Cid>,
    prev_data: Option<Cid>,
    time: &'a str,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a user would read what is only decoded here")]
struct Operation<'a> {
    action: &'a str,
    path: &'a str,
    cid: Option<Cid>,
    prev: Option<Cid>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a user would read what is only decoded here")]
pub(crate) struct Sync<'a> {
    seq: i64,
    did: &'a str,
    blocks: &'a [u8],
    rev: &'a str,
    time: &'a str,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a user would read what is only decoded here")]
pub(crate) struct Identity<'a> {
    seq: i64,
    did: &'a str,
    time: &'a str,
    handle: Option<&'a str>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a user would read what is only decoded here")]
pub(crate) struct Account<'a> {
    seq: i64,
    did: &'a str,
    time: &'a str,
    active: bool,
    status: Option<&'a str>,
}
