//! Trees against the reference, the specification's examples and forged nodes.

mod diffs;
mod edits;
mod faults;
mod forger;
mod proofs;
mod reads;
mod records;
mod splices;
mod support;

pub(super) use support::{Records, build, value, value_of_any_length};
