//! Identifiers and other small texts: checking them and splitting them into parts.
//!
//! | borrowed | owned | meaning |
//! |---|---|---|
//! | [`Did`] | [`DidBuf`] | an account: `did:plc:…`, `did:web:…` |
//! | [`Handle`] | [`HandleBuf`] | a domain name that names an account |
//! | [`AtIdentifier`] | [`AtIdentifierBuf`] | a DID or a handle |
//! | [`Nsid`] | [`NsidBuf`] | a collection or another schema: `app.bsky.feed.post` |
//! | [`CollectionPattern`] | [`CollectionPatternBuf`] | a collection, or all below a name: `app.bsky.feed.*` |
//! | [`RecordKey`] | [`RecordKeyBuf`] | a record within its collection |
//! | [`RepoPath`] | [`RepoPathBuf`] | a record within its repository: `<nsid>/<record key>` |
//! | [`AtUri`] | [`AtUriBuf`] | an account, a collection or a record: `at://…` |
//! | [`Datetime`] | [`DatetimeBuf`] | a date and a time of day, with its offset from UTC |
//! | [`Language`] | [`LanguageBuf`] | a language tag of BCP 47 |
//! | [`CidText`] | [`CidTextBuf`] | a CID as text, of any kind |
//! | [`Uri`] | [`UriBuf`] | any URI |
//! | [`Tid`] | the same | a revision or record key with a time in it; [`tid::TidClock`] generates them |
//!
//! A value of one of these types is well formed, so it is checked once. The borrowed forms are `Copy` and
//! come from `parse`, which reads every byte once; the owned forms come from `str::parse`, from a
//! `String`, or from `to_buf`. All display, compare, sort and hash as their text does (a [`Tid`], whose
//! order is the same, as its number), and `serde` writes and reads them as text.
//!
//! Nothing is trimmed, and letters keep their case: where the specification defines a normal form there is
//! a `to_normalized`. The error is a [`SyntaxError`]: the kind of text, the rule, the byte.
//!
//! Source: the specifications of the AT Protocol's identifiers, and its interoperability tests.
//!
//! ```
//! use wireproof::atproto::syntax::{Did, DidBuf, RepoPath, SyntaxRule};
//!
//! let did = Did::parse("did:plc:ewvi7nxzyoun6zhxrhs64oiz")?;
//! assert_eq!((did.method(), did.is_plc()), ("plc", true));
//!
//! let path = RepoPath::parse("app.bsky.feed.post/3jt5tqkl6pb2x")?;
//! assert_eq!(path.collection().name(), "post");
//!
//! let error = "did:plc:no spaces".parse::<DidBuf>().unwrap_err();
//! assert_eq!((error.rule, error.offset), (SyntaxRule::Symbol, 10));
//! # Ok::<(), wireproof::atproto::syntax::SyntaxError>(())
//! ```

mod account;
mod at_uri;
mod collection_pattern;
mod datetime;
mod error;
mod language;
mod repo_path;
#[cfg(test)]
mod tests;
mod text;
pub mod tid;
mod uri;

pub use account::{AtIdentifier, AtIdentifierBuf, Did, DidBuf, Handle, HandleBuf};
pub use at_uri::{AtUri, AtUriBuf};
pub use collection_pattern::{CollectionPattern, CollectionPatternBuf};
pub use datetime::{Datetime, DatetimeBuf};
pub use error::{SyntaxError, SyntaxKind, SyntaxRule};
pub use language::{Language, LanguageBuf};
pub use repo_path::{
    Nsid, NsidBuf, RecordKey, RecordKeyBuf, RepoPath, RepoPathBuf, RepoPathChecker,
};
pub use tid::Tid;
pub use uri::{CidText, CidTextBuf, Uri, UriBuf};
