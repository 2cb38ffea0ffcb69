//! Every Rust example of the README, the guide, the reference and the rustdoc pages, compiled and run with `wireproof` as
//! the only crate of the project: `cargo test --doc`.

/// The README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/embed-the-crate.md")]
struct Guide;

/// The reference.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/library.md")]
struct Reference;

/// The examples of all crates' documentation, collected by `build.rs`.
#[cfg(doctest)]
#[doc = include_str!(concat!(env!("OUT_DIR"), "/examples.md"))]
struct Rustdoc;
