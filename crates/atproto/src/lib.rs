//! The AT Protocol's nouns, parsed so that what is wrong cannot be held.
//!
//! | module | question it answers |
//! |---|---|
//! | [`commit`] | what does this commit object say, and which of its bytes were signed? |
//! | [`did_document`] | which handle, key and host does this DID document give its account? |
//! | [`event`] | what does this firehose frame say? |
//! | [`mst`] | which records does a repository hold, under one hash? |
//! | [`repo`] | what is in this export of a repository? |
//! | [`corpus`] | which frames are in this file of frames? |
//! | [`plc`] | what does this operation of `did:plc` say, and what did its author sign? |
//! | [`syntax`] | is this text a DID, a handle, an NSID, a record's path …? |
//!
//! No verdicts here (who signed, does the chain hold), no clock, no network.

#![forbid(unsafe_code)]

pub mod commit;
pub mod corpus;
pub mod did_document;
pub mod event;
pub mod mst;
pub mod plc;
pub mod repo;
pub mod syntax;
