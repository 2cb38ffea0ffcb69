//! What is the caller told of an event, and how does it answer?

use std::sync::Arc;
use std::time::SystemTime;

use atproto::event::{Event, FrameError};
use bytes::Bytes;
use verify::sync::{Chain, Outcome, SyncEffect, SyncRejection};

use super::ack::Ack;
use super::arrival::FrameKind;
use super::keys::KeyError;
use super::notice::Notice;
use super::resync::{ResyncError, ResyncedRepo};
use crate::hosts::HostId;

/// Takes what comes.
pub trait Handler: Send + Sync + 'static {
    /// An event. Called on a worker's thread, in order for each account; who stays here for long holds
    /// up this worker's accounts and, when the bounds are reached, the server.
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack);

    /// An account's repository was fetched anew; this comes between the events before and after it.
    /// Called on a worker's thread. By itself, it is acknowledged and nothing is done.
    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        let _ = resynced;
        ack.done();
    }

    /// An account's repository could not be fetched anew: it stays out of step, and is tried again when
    /// something comes of it. Called on a worker's thread. By itself, nothing is done.
    fn resync_failed(&self, did: &str, why: &ResyncError) {
        let _ = (did, why);
    }

    /// What the connection did. Called by the task that reads, which waits. By itself, nothing is done.
    fn notice(&self, notice: &Notice) {
        let _ = notice;
    }
}

impl<H: Handler> Handler for Arc<H> {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        H::event(self, event, ack);
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        H::resynced(self, resynced, ack);
    }

    fn resync_failed(&self, did: &str, why: &ResyncError) {
        H::resync_failed(self, did, why);
    }

    fn notice(&self, notice: &Notice) {
        H::notice(self, notice);
    }
}

/// An event, as it is handed over.
#[derive(Clone, Copy, Debug)]
pub struct DeliveredEvent<'a> {
    /// Who sent it.
    pub host: HostId,
    /// Its place in the stream of that host, if it has one.
    pub seq: Option<u64>,
    /// What it is.
    pub kind: FrameKind,
    /// The account that it says it is about, as it stands.
    pub did: Option<&'a str>,
    /// The bytes as they came. A clone shares them.
    pub frame: &'a Bytes,
    /// When it came.
    pub received: SystemTime,
    /// What it says, proved or not, where it can be read at all.
    pub event: Option<&'a Event<'a>>,
    /// What is to be thought of it.
    pub verdict: Verdict<'a>,
}

/// What is to be thought of an event.
#[derive(Clone, Copy, Debug)]
pub enum Verdict<'a> {
    /// The judge's outcome: proved and how it continues what was known, ignored, refused, or a message
    /// that carries no proof. Never refused for the lack of a key.
    Judged(Outcome<'a>),
    /// The account's key could not be found out, so nothing is proved.
    UnknownKey(&'a KeyError),
    /// The caller chose not to ask.
    NotVerified,
    /// Bytes that are no frame, or whose fields are not those of its kind.
    Undecodable(FrameError),
}

impl Verdict<'_> {
    /// The stable name.
    ///
    /// | name | the event |
    /// |---|---|
    /// | `verified` | is proved, and continues what was known or begins it |
    /// | `verified/broken` | is proved, but something before it is missing |
    /// | `verified/unmended` | is proved, but something long before it is missing |
    /// | `verified/unproved` | is signed; a leniency took the rest |
    /// | `unchecked` | carries no proof |
    /// | `not-asked` | may carry one, but the caller does not want to know |
    /// | any other | breaks the rule of this name |
    pub fn code(&self) -> &'static str {
        match self {
            Self::Judged(Outcome::Commit(_, Chain::Unproved(_))) => "verified/unproved",
            Self::Judged(Outcome::Commit(_, Chain::Broken(_))) => "verified/broken",
            Self::Judged(Outcome::Commit(_, Chain::StillDesynchronized)) => "verified/unmended",
            Self::Judged(Outcome::Sync(_, SyncEffect::Desynchronized)) => "verified/broken",
            Self::Judged(Outcome::Commit(..) | Outcome::Sync(..)) => "verified",
            Self::Judged(Outcome::Ignored(why)) => why.code(),
            Self::Judged(Outcome::Rejected(why)) => why.code(),
            Self::Judged(Outcome::Unjudged(_)) => "unchecked",
            Self::UnknownKey(_) => "signature/no-key",
            Self::NotVerified => "not-asked",
            Self::Undecodable(error) => SyncRejection::Frame(*error).code(),
        }
    }

    /// Whether the event is proved to be its account's.
    pub fn is_verified(&self) -> bool {
        matches!(self, Self::Judged(outcome) if outcome.is_accepted())
    }
}
