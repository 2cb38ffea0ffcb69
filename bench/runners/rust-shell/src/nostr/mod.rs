//! The tasks `nostr-…`: a unit is a Nostr event in one of the formats that it travels in.

mod batch;
mod corpus;
mod decode;
mod encode;
#[cfg(feature = "experiments")]
pub mod experiments;
mod fields;
pub mod framed;
#[cfg(feature = "nostr-line")]
pub mod line;
mod tally;
#[cfg(test)]
mod tests;
mod validate;

pub use tally::Tally;

use crate::{Refusal, Task, Variant};

/// A library's way to write and read the events of one format.
pub trait Codec: 'static {
    /// The format's name, as in all results.
    const FORMAT: &'static str;

    /// The checks that [`decode`](Self::decode) makes.
    const CHECKS: &'static [&'static str];

    /// An event as the library's users hold it, ready to be written.
    type Event: 'static;

    /// What an event's bytes become. It may borrow from them.
    type Decoded<'a>;

    /// Reads a line of NIP-01's JSON.
    ///
    /// # Errors
    ///
    /// When it holds no event, or none that the library can hold.
    fn parse(line: &str) -> Result<Self::Event, Refusal>;

    /// Writes an event into `out`, which is empty and may have room from the event before.
    ///
    /// # Errors
    ///
    /// When the library refuses to.
    fn encode(event: &Self::Event, out: &mut Vec<u8>) -> Result<(), Refusal>;

    /// Reads an event to a value whose every field can be read.
    ///
    /// # Errors
    ///
    /// When the library refuses the bytes.
    fn decode(bytes: &[u8]) -> Result<Self::Decoded<'_>, Refusal>;

    /// Walks all of an event.
    fn tell(event: &Self::Decoded<'_>, tally: &mut Tally);

    /// Writes many events into `out`, which is empty, as the format's own list or [`framed`].
    ///
    /// # Errors
    ///
    /// When the library refuses to.
    fn encode_batch(events: &[Self::Event], out: &mut Vec<u8>) -> Result<(), Refusal>;

    /// Reads such a list.
    ///
    /// # Errors
    ///
    /// When the library refuses the bytes.
    fn decode_batch(bytes: &[u8]) -> Result<Vec<Self::Decoded<'_>>, Refusal>;
}

/// A library that can also say whether an event is its author's.
pub trait Validate: Codec {
    /// The checks that [`validate`](Self::validate) makes.
    const CHECKS: &'static [&'static str];

    /// Whether the event's id is its hash and its signature that of its author over the id.
    ///
    /// # Errors
    ///
    /// When the bytes, the key or the signature cannot be read.
    fn validate(bytes: &[u8]) -> Result<bool, Refusal>;
}

/// A library that can also read single fields without the rest.
pub trait Fields: Codec {
    /// # Errors
    ///
    /// When the library refuses what it reads, or the kind is none.
    fn kind(bytes: &[u8]) -> Result<u16, Refusal>;

    /// # Errors
    ///
    /// When the library refuses what it reads.
    fn pubkey(bytes: &[u8]) -> Result<[u8; 32], Refusal>;

    /// # Errors
    ///
    /// When the library refuses what it reads.
    fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), Refusal>;
}

/// The tasks that every codec can do.
pub fn tasks<C: Codec>() -> Vec<Task> {
    let written = one_variant(C::FORMAT, &[]);
    let read = one_variant(C::FORMAT, C::CHECKS);
    vec![
        Task { name: "nostr-serialize", variants: written, load: encode::load::<C> },
        Task { name: "nostr-deserialize", variants: read, load: decode::load::<C> },
        Task { name: "nostr-by-kind", variants: read, load: decode::load_groups::<C> },
        Task { name: "nostr-by-category", variants: read, load: decode::load_groups::<C> },
        Task { name: "nostr-batch", variants: read, load: batch::load::<C> },
    ]
}

/// The task `nostr-validated`.
pub fn validated<V: Validate>() -> Task {
    let variants = one_variant(V::FORMAT, <V as Validate>::CHECKS);
    Task { name: "nostr-validated", variants, load: validate::load::<V> }
}

/// The task `nostr-fields`.
pub fn fields<F: Fields>() -> Task {
    let variants = fields::NAMES.map(|field| Variant {
        name: format!("{}/{field}", F::FORMAT).leak(),
        checks: if field == "pubkey" { &[] } else { &["kind-range"] },
    });
    Task { name: "nostr-fields", variants: variants.to_vec().leak(), load: fields::load::<F> }
}

fn one_variant(name: &'static str, checks: &'static [&'static str]) -> &'static [Variant] {
    vec![Variant { name, checks }].leak()
}

/// As many events have a time of their own, so that slow ones are seen.
const CHUNK: usize = 20;
