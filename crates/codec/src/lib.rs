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
//! No protocol is known here, nothing is read from a file or a clock, and no input can make the code
//! panic, recurse past a stated bound, or take memory out of proportion to its length.

#![forbid(unsafe_code)]

pub mod car;
pub mod cbor;
pub mod cid;
pub mod json;

pub use cid::{AnyCid, Cid, CidRef};
