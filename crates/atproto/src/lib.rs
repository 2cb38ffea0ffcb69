//! The AT Protocol's nouns, parsed so that what is wrong cannot be held.
//!
//! | module | question it answers |
//! |---|---|
//! | [`commit`] | what does this commit object say, and which of its bytes were signed? |
//! | [`event`] | what does this firehose frame say? |
//! | [`corpus`] | which frames are in this file of frames? |
//!
//! No verdicts here (who signed, does the chain hold), no clock, no network.

#![forbid(unsafe_code)]

pub mod commit;
pub mod corpus;
pub mod event;
