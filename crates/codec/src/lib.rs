//! The content-addressed formats: CID, DAG-CBOR and CAR v1. Bytes become borrowed values and values
//! become bytes; what is not canonical is refused with the rule and the place.
//!
//! | module | question it answers |
//! |---|---|
//! | [`cid`] | which block does this identifier name? |
//! | [`cbor`] | what do these DAG-CBOR bytes say, if they are canonical? |
//! | [`json`] | how does that read as JSON, and back? |
//! | [`car`] | which blocks are in this archive, and is each what its CID claims? |
//!
//! ```
//! use wireproof_codec::cid::{Cid, Codec};
//! use wireproof_codec::{car, cbor};
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
//! No protocol is known here, nothing is read from a file or a clock, and no input can make the code
//! panic, recurse past a stated bound, or take memory out of proportion to its length.

#![forbid(unsafe_code)]

pub mod car;
pub mod cbor;
pub mod cid;
pub mod json;

pub use cid::{AnyCid, Cid, CidRef};
