//! Jetstreams of both versions: the JSON of events, filters, requests and compression.

pub(crate) mod dictionary;
pub(crate) mod filter;
pub(crate) mod request;
pub(crate) mod text;
