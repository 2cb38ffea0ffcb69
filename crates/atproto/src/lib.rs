//! The AT Protocol's nouns, parsed so that what is wrong cannot be held.
//!
//! | module | question it answers |
//! |---|---|
//! | [`commit`] | what does this commit object say, and which of its bytes were signed? |
//! | [`data_model`] | does this record hold only what the data model allows? |
//! | [`did_document`] | which handle, key and host does this DID document give its account? |
//! | [`event`] | what does this firehose frame say? |
//! | [`mst`] | which records does a repository hold, under one hash? |
//! | [`repo`] | what is in this export of a repository? |
//! | [`corpus`] | which frames are in this file of frames? |
//! | [`plc`] | what does this operation of `did:plc` say, and what did its author sign? |
//! | [`syntax`] | is this text a DID, a handle, an NSID, a record's path …? |
//!
//! ```
//! use wireproof_atproto::event::{Decoder, Event, Options};
//! use wireproof_atproto::syntax::{AtUri, Handle};
//!
//! let mut decoder = Decoder::new(Options::default());
//! let frame = b"\xa1\x62op\x20\xa1\x65error\x6cFutureCursor";
//! assert!(matches!(decoder.decode(frame)?, Event::Error(error) if error.error == "FutureCursor"));
//!
//! assert!(Handle::parse("ada.example.com").is_ok());
//! assert!(AtUri::parse("at://ada.example.com/app.bsky.feed.post/3k").is_ok());
//! assert!(Handle::parse("ada..example.com").is_err());
//! # Ok::<(), wireproof_atproto::event::FrameError>(())
//! ```
//!
//! No verdicts here (who signed, does the chain hold), no clock, no network.

#![forbid(unsafe_code)]

pub mod commit;
pub mod corpus;
pub mod data_model;
pub mod did_document;
pub mod event;
pub mod mst;
pub mod plc;
pub mod repo;
pub mod syntax;
