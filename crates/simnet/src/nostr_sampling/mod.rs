//! Which of many events are measured, and how are they written down?
//!
//! | item | question it answers |
//! |---|---|
//! | [`SizeClass`], [`TagClass`] | how large is an event, by the published thresholds? |
//! | [`Sampler`] | which of these events, drawn so that they are the same every time? |
//! | [`json_lines`], [`grouped_lines`] | how do events stand in a file of lines? |
//!
//! All of it works on events that are owned or borrowed ([`EventShape`]).

mod category;
mod sampler;
#[cfg(test)]
mod tests;
mod text;
mod traits;

pub use category::{SizeClass, TagClass};
pub use sampler::{EventGroup, KINDS, Sampler};
pub use text::{grouped_lines, json_lines};
pub use traits::EventShape;
