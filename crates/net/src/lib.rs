//! The network: who is that account, what does its server hold, what happens now?
//!
//! | module | question it answers |
//! |---|---|
//! | [`reach`] | which hosts and addresses may be connected to at all? |
//! | [`names`] | which addresses and texts has a host name in the DNS? |
//! | [`http`] | what does this URL answer, within bounds? |
//! | [`gate`] | may this host be asked now, or did it ask us to wait? |
//! | [`turns`] | how many may ask one host at once? |
//! | [`identity`] | who is the account behind a DID or a handle? |
//! | [`xrpc`] | which repository, record or list does a server give? |
//! | [`websocket`] | how is a WebSocket opened to a host, and kept within bounds? |
//! | [`hosts`] | which of several hosts is asked next, and when? |
//! | [`cursors`] | where was each stream left? |
//! | [`firehose`] | what do relays and PDSs tell, in order and without a loss? |
//! | [`jetstream`] | what do Jetstreams tell, in either version, once? |
//!
//! Hosts are named by strangers: every address is checked when it is connected to, every answer has a
//! longest length and a longest time, and whatever goes wrong says with which host it did.

#![forbid(unsafe_code)]

pub mod cursors;
pub mod firehose;
pub mod gate;
pub mod hosts;
pub mod http;
pub mod identity;
pub mod jetstream;
mod line;
pub mod names;
pub mod reach;
pub mod turns;
pub mod websocket;
pub mod xrpc;
