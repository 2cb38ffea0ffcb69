//! The wireproof command.

#![forbid(unsafe_code)]

fn main() {}
