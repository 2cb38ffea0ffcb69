//! The benchmark harness.

#![forbid(unsafe_code)]
