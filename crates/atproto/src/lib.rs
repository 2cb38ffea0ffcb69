//! The data formats of the AT Protocol, parsed into types that cannot hold malformed values.
//!
//! | module | content |
//! |---|---|
//! | [`blob`] | the blobs that records name |
//! | [`commit`] | commit objects and their signed bytes |
//! | [`data_model`] | checking records against the data model |
//! | [`did_document`] | handle, key and host of an account in its DID document |
//! | [`event`] | frames of the firehose |
//! | [`label`] | labels and their signed bytes |
//! | [`mst`] | Merkle search trees: the records of a repository under one hash |
//! | [`repo`] | repositories: reading, writing and exporting |
//! | [`corpus`] | files of frames |
//! | [`plc`] | operations and logs of `did:plc` |
//! | [`syntax`] | identifiers: DIDs, handles, NSIDs, record keys and others |
//!
//! ```
//! use wireproof::atproto::event::{Decoder, Event, Options};
//! use wireproof::atproto::syntax::{AtUri, Handle};
//!
//! let mut decoder = Decoder::new(Options::default());
//! let frame = b"\xa1\x62op\x20\xa1\x65error\x6cFutureCursor";
//! assert!(matches!(decoder.decode(frame)?, Event::Error(error) if error.error == "FutureCursor"));
//!
//! assert!(Handle::parse("ada.example.com").is_ok());
//! assert!(AtUri::parse("at://ada.example.com/app.bsky.feed.post/3k").is_ok());
//! assert!(Handle::parse("ada..example.com").is_err());
//! # Ok::<(), wireproof::atproto::event::FrameError>(())
//! ```
//!
//! `wireproof-verify` verifies signatures and chains of commits; this crate uses no clock and no network.

#![forbid(unsafe_code)]

pub mod blob;
pub mod commit;
pub mod corpus;
pub mod data_model;
pub mod did_document;
pub mod event;
pub mod label;
pub mod mst;
mod node_shape;
pub mod plc;
pub mod repo;
pub mod syntax;

/// Every error type can be sent between threads and boxed as `dyn Error`.
const _: () = {
    const fn is_error<E: std::error::Error + Send + Sync + 'static>() {}
    is_error::<commit::CommitError>();
    is_error::<commit::CommitFault>();
    is_error::<corpus::CorpusError>();
    is_error::<data_model::DataError>();
    is_error::<data_model::DataFault>();
    is_error::<did_document::DidDocumentError>();
    is_error::<event::FrameError>();
    is_error::<event::FrameFault>();
    is_error::<label::LabelError>();
    is_error::<label::LabelFault>();
    is_error::<label::LabelPageError>();
    is_error::<mst::TreeError>();
    is_error::<mst::TreeFault>();
    is_error::<mst::Limit>();
    is_error::<mst::inversion::InversionError>();
    is_error::<mst::inversion::InversionFault>();
    is_error::<mst::node::NodeError>();
    is_error::<mst::node::NodeFault>();
    is_error::<plc::LogError>();
    is_error::<plc::OperationFault>();
    is_error::<repo::ExportError>();
    is_error::<repo::RepoError>();
    is_error::<repo::RepoFault>();
    is_error::<repo::WriteError>();
    is_error::<syntax::SyntaxError>();
};
