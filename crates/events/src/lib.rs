//! The line of JSON of an event, as a type: `wireproof follow` prints it, and sinks and other programs read it.
//!
//! [`Line`] is a line by its kind. [`Line::parse`] borrows from the text and copies no record; [`Line::append`] writes the
//! same bytes again, and [`LineWriter`] writes them from records in memory. [`NostrEvent`] is an event as `wireproof nostr follow` delivers it, [`LabelLine`] a line of `wireproof labels`. `docs/formats/follow-lines.md` lists
//! the keys, and `docs/formats/schemas/follow` has a JSON Schema of every kind, generated from these types.
//!
//! A text that is no line is a [`LineError`], with the place and the key. Keys that are not known are skipped, as later
//! versions may add some; a kind, a verdict or a version that is not known is an error.
//!
//! ```
//! use wireproof::events::{Code, Line};
//!
//! let text = r#"{"v":1,"host":"https://relay.example","seq":7,"kind":"identity","did":"did:web:a.example",
//!     "handle":"a.example","verdict":"unchecked","code":"unchecked"}"#;
//! let line = Line::parse(text.as_bytes())?;
//! assert_eq!((line.did(), line.code), ("did:web:a.example", Code::Unchecked));
//! assert!(Line::parse(br#"{"v":1,"kind":"identity"}"#).is_err());
//! # Ok::<(), wireproof::events::LineError>(())
//! ```

#![forbid(unsafe_code)]

mod claims;
mod code;
mod error;
mod fields;
mod label;
mod line;
mod nostr;
mod operation;
mod operations;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod tests;
mod text;
mod words;
mod write;
mod writer;

pub use atproto::event::Action;
pub use code::Code;
pub use error::{LineError, LineFault};
pub use label::LabelLine;
pub use line::{
    AccountClaims, Body, Claims, CommitClaims, EventBody, IdentityClaims, Line, MessageClaims,
    Operation, Proof, Resync, Status, SyncClaims,
};
pub use nostr::{NostrEvent, RelayLine};
pub use operation::{Content, Op};
pub use text::{Bytes, Json, Text};
pub use words::{Kind, ProvedLevel, Verdict};
pub use writer::{InvalidContent, LineWriter, NewContent, NewOp};
