//! A seeded, deterministic network.

#![forbid(unsafe_code)]
