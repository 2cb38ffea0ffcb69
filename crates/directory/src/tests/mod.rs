//! Tests of the directory as a whole: against recorded answers of the reference server, and over sockets.

mod follow;
mod reference;
mod sockets;
mod support;
