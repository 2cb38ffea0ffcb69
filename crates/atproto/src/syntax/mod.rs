//! Identifiers and other small texts: is this one, and what are its parts?
//!
//! | borrowed | owned | what it is |
//! |---|---|---|
//! | [`Did`] | [`DidBuf`] | an account: `did:plc:…`, `did:web:…` |
//! | [`Handle`] | [`HandleBuf`] | a domain name that stands for an account |
//! | [`AtIdentifier`] | [`AtIdentifierBuf`] | a DID or a handle |
//! | [`Nsid`] | [`NsidBuf`] | a collection or another schema: `app.bsky.feed.post` |
//! | [`RecordKey`] | [`RecordKeyBuf`] | a record within its collection |
//! | [`RepoPath`] | [`RepoPathBuf`] | a record within its repository: `<nsid>/<record key>` |
//! | [`AtUri`] | [`AtUriBuf`] | an account, a collection or a record: `at://…` |
//! | [`Datetime`] | [`DatetimeBuf`] | a date and a time of day, with its distance from UTC |
//! | [`Language`] | [`LanguageBuf`] | a language tag of BCP 47 |
//! | [`CidText`] | [`CidTextBuf`] | a CID as records spell it, blessed or not |
//! | [`Uri`] | [`UriBuf`] | any URI |
//! | [`Tid`] | the same | a revision or record key that tells a time; [`tid::TidClock`] makes them |
//!
//! Whoever holds one of these holds a text that keeps its rules; nobody checks twice. The borrowed
//! forms are `Copy` and come from `parse`, which costs one look at each byte; the owned forms come
//! from `str::parse`, from a `String`, or from `to_buf`. All show, compare, sort and hash as their
//! text does (a [`Tid`], whose order is the same, as its number), and `serde` writes and reads them as
//! text.
//!
//! Nothing is trimmed, and letters keep their case: where the specification knows a normal form there
//! is a `to_normalized`. A refusal is a [`SyntaxError`]: which kind, which rule, which byte.
//!
//! Source: the specifications of the AT Protocol's identifiers, and its interoperability tests.
//!
//! ```
//! use wireproof_atproto::syntax::{Did, DidBuf, RepoPath, SyntaxRule};
//!
//! let did = Did::parse("did:plc:ewvi7nxzyoun6zhxrhs64oiz")?;
//! assert_eq!((did.method(), did.is_plc()), ("plc", true));
//!
//! let path = RepoPath::parse("app.bsky.feed.post/3jt5tqkl6pb2x")?;
//! assert_eq!(path.collection().name(), "post");
//!
//! let error = "did:plc:no spaces".parse::<DidBuf>().unwrap_err();
//! assert_eq!((error.rule, error.offset), (SyntaxRule::Symbol, 10));
//! # Ok::<(), wireproof_atproto::syntax::SyntaxError>(())
//! ```

mod text;

mod at_identifier;
mod at_uri;
mod calendar;
mod cid_text;
mod datetime;
mod did;
mod error;
mod handle;
mod label;
mod language;
mod nsid;
mod record_key;
mod repo_path;
mod symbols;
#[cfg(test)]
mod tests;
pub mod tid;
mod uri;

pub use at_identifier::{AtIdentifier, AtIdentifierBuf};
pub use at_uri::{AtUri, AtUriBuf};
pub use cid_text::{CidText, CidTextBuf};
pub use datetime::{Datetime, DatetimeBuf};
pub use did::{Did, DidBuf};
pub use error::{SyntaxError, SyntaxKind, SyntaxRule};
pub use handle::{Handle, HandleBuf};
pub use language::{Language, LanguageBuf};
pub use nsid::{Nsid, NsidBuf};
pub use record_key::{RecordKey, RecordKeyBuf};
pub use repo_path::{RepoPath, RepoPathBuf};
pub use tid::Tid;
pub use uri::{Uri, UriBuf};
