//! Tests of the directory as a whole: against recorded answers of the reference server, and over sockets.

mod bundles;
mod follow;
mod made;
mod reference;
mod sockets;
mod support;
mod trees;
