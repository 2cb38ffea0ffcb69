//! Operations of `did:plc` and the logs of them, as a directory gives them.
//!
//! | item | question it answers |
//! |---|---|
//! | [`Operation`] | what does this operation say, what did its author sign, and what is its CID? |
//! | [`AccountData`] | what is true of an account after it? |
//! | [`Log`] | which operations are in this file, and when are they said to have come? |
//! | [`Limits`] | how much may there be? |
//!
//! Operations travel as JSON and are signed, hashed and named as DAG-CBOR, all of whose fields are
//! known: a field that is not, or that comes twice, is refused. Whose signature it is, and which
//! operation may follow which, is not asked here.
//!
//! Source: the specification of did:plc, version 0.1.

mod encode;
mod error;
mod json;
mod limits;
mod log;
mod operation;
#[cfg(test)]
mod tests;

pub use error::{LogError, OperationFault};
pub use limits::Limits;
pub use log::{AuditEntry, Log};
pub use operation::{AccountData, LegacyCreate, Operation, Service, UnsignedOperation, Update};
