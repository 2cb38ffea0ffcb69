//! The claims of an event of the protocol, as its line has them.

use atproto::event::Event;

use crate::line::{AccountClaims, Claims, CommitClaims, IdentityClaims, MessageClaims, SyncClaims};
use crate::text::Text;
use crate::words::Kind;

impl<'a> From<&Event<'a>> for Claims<'a> {
    fn from(event: &Event<'a>) -> Self {
        match event {
            Event::Commit(commit) => Self::Commit(Some(CommitClaims {
                time: Some(commit.time.into()),
                rev: commit.rev.into(),
                commit: Some(commit.commit.to_string().into()),
            })),
            Event::Sync(sync) => {
                Self::Sync(Some(SyncClaims { time: Some(sync.time.into()), rev: sync.rev.into() }))
            }
            Event::Identity(identity) => Self::Identity(Some(IdentityClaims {
                time: Some(identity.time.into()),
                handle: identity.handle.map(Text::from),
            })),
            Event::Account(account) => Self::Account(Some(AccountClaims {
                time: Some(account.time.into()),
                active: account.active,
                status: account.status.map(Text::from),
            })),
            Event::Info(info) => Self::Info(Some(MessageClaims {
                name: info.name.into(),
                message: info.message.map(Text::from),
            })),
            Event::Error(error) => Self::Error(Some(MessageClaims {
                name: error.error.into(),
                message: error.message.map(Text::from),
            })),
            Event::Unknown(unknown) => Self::Unknown(unknown.header.kind.map(Text::from)),
        }
    }
}

impl Claims<'_> {
    /// The claims of an event of this kind that cannot be decoded. A kind without events is undecodable.
    pub fn undecoded(kind: Kind) -> Self {
        match kind {
            Kind::Commit => Self::Commit(None),
            Kind::Sync => Self::Sync(None),
            Kind::Identity => Self::Identity(None),
            Kind::Account => Self::Account(None),
            Kind::Info => Self::Info(None),
            Kind::Error => Self::Error(None),
            Kind::Unknown => Self::Unknown(None),
            _ => Self::Undecodable,
        }
    }
}
