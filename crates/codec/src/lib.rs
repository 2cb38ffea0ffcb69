//! The content-addressed formats: CID, DAG-CBOR and CAR v1. Bytes are decoded to borrowed values and
//! values are encoded to bytes; input that is not canonical is rejected with the rule and the offset.
//!
//! | module | content |
//! |---|---|
//! | [`cid`] | content identifiers |
//! | [`cbor`] | canonical DAG-CBOR: validation, values, typed records through serde |
//! | [`json`] | the JSON form of DAG-CBOR values |
//! | [`printable`] | untrusted text with its invisible characters escaped |
//! | [`wrapping`] | byte order marks and compression, named in errors |
//! | [`car`] | archives of blocks, checked against their CIDs |
//!
//! ```
//! use wireproof::codec::cid::{Cid, Codec};
//! use wireproof::codec::{car, cbor};
//!
//! let block = b"\xa1\x65hello\x65world";
//! let cid = Cid::of(Codec::DagCbor, block);
//! let mut writer = car::Writer::new(Vec::new(), &[cid])?;
//! writer.block(&cid, block)?;
//! let archive = writer.into_inner();
//!
//! let read = car::read(&archive, &car::Options::default())?;
//! assert_eq!(read.blocks[0].data, block);
//! assert_eq!(cbor::validate(read.blocks[0].data), Ok(()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate implements no protocol and does no input or output. No input makes it panic, recurse past a
//! stated bound, or allocate out of proportion to the input's length.

#![forbid(unsafe_code)]

pub mod car;
pub mod cbor;
pub mod cid;
pub mod json;
pub mod printable;
pub mod wrapping;

pub use cid::{AnyCid, Cid, CidRef};

/// Errors can be boxed, sent to other threads, and kept.
#[cfg(test)]
const _: () = {
    const fn assert_error<E: std::error::Error + Send + Sync + 'static>() {}
    assert_error::<cbor::DecodeError>();
    assert_error::<cbor::EncodeError>();
    assert_error::<cbor::SerdeError>();
    assert_error::<json::JsonError>();
    assert_error::<car::CarError>();
    assert_error::<wrapping::Wrapping>();
    assert_error::<car::StreamError>();
    assert_error::<cid::CidTextError>();
};
