//! CBOR, three ways. Hand-written.
//!
//! | module | an event is | in bytes |
//! |---|---|---|
//! | [`schemaless`] | a map with the names of NIP-01, all values of tags as text | most |
//! | [`intkey`] | a map with numbers for names | |
//! | [`packed`] | an array, in one way only: the deterministic profile | fewest |
//!
//! Definite lengths, heads as short as they can be, and nothing behind the event: other CBOR is
//! refused.

mod draft;
mod fields;
mod head;
pub mod intkey;
mod items;
mod map;
pub mod packed;
pub mod schemaless;
mod skip;
#[cfg(test)]
mod tests;
