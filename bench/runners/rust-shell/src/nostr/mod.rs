//! The tasks `nostr-…`: a unit is a Nostr event in one of its formats.

#[cfg(feature = "claims")]
pub mod claims;
mod corpus;
pub mod framed;
#[cfg(feature = "nostr-line")]
pub mod line;
#[cfg(test)]
mod tests;
mod work;

use protocol::{BoxError, EventField};

use crate::{Task, Variant};

pub use protocol::EventCounts;

/// A library's encoder and decoder of one format.
pub trait Codec: 'static {
    /// The format's name, as in all results.
    const FORMAT: &'static str;

    /// The checks that [`decode`](Self::decode) makes.
    const CHECKS: &'static [&'static str];

    /// An event as the library's users represent it, ready to be encoded.
    type Event: 'static;

    /// A decoded event. It may borrow from the bytes.
    type Decoded<'a>;

    /// Parses a line of NIP-01's JSON.
    ///
    /// # Errors
    ///
    /// When it is not an event that the library can represent.
    fn parse(line: &str) -> Result<Self::Event, BoxError>;

    /// Encodes an event into `out`, which is empty and may have capacity from the event before.
    ///
    /// # Errors
    ///
    /// When the library fails.
    fn encode(event: &Self::Event, out: &mut Vec<u8>) -> Result<(), BoxError>;

    /// Decodes an event into a value whose every field can be read.
    ///
    /// # Errors
    ///
    /// When the library rejects the bytes.
    fn decode(bytes: &[u8]) -> Result<Self::Decoded<'_>, BoxError>;

    /// Counts all of an event.
    fn count(event: &Self::Decoded<'_>, counts: &mut EventCounts);

    /// Encodes many events into `out`, which is empty, as the format's own list or [`framed`].
    ///
    /// # Errors
    ///
    /// When the library fails.
    fn encode_batch(events: &[Self::Event], out: &mut Vec<u8>) -> Result<(), BoxError>;

    /// Decodes such a list.
    ///
    /// # Errors
    ///
    /// When the library rejects the bytes.
    fn decode_batch(bytes: &[u8]) -> Result<Vec<Self::Decoded<'_>>, BoxError>;
}

/// A library that can also verify events.
pub trait Validate: Codec {
    /// The checks that [`validate`](Self::validate) makes.
    const CHECKS: &'static [&'static str];

    /// Whether the event's id is its hash, and its author signed the id.
    ///
    /// # Errors
    ///
    /// When the bytes, the key or the signature cannot be read.
    fn validate(bytes: &[u8]) -> Result<bool, BoxError>;
}

/// A library that can also read single fields without the rest.
pub trait Fields: Codec {
    /// # Errors
    ///
    /// When the library rejects the bytes, or the kind is out of range.
    fn kind(bytes: &[u8]) -> Result<u16, BoxError>;

    /// # Errors
    ///
    /// When the library rejects the bytes.
    fn pubkey(bytes: &[u8]) -> Result<[u8; 32], BoxError>;

    /// # Errors
    ///
    /// When the library rejects the bytes.
    fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), BoxError>;
}

/// The tasks that every codec can do.
pub fn tasks<C: Codec>() -> Vec<Task> {
    let encoders = one_variant(C::FORMAT, &[]);
    let decoders = one_variant(C::FORMAT, C::CHECKS);
    vec![
        Task { name: "nostr-serialize", variants: encoders, load: work::load_encode::<C> },
        Task { name: "nostr-deserialize", variants: decoders, load: work::load_decode::<C> },
        Task { name: "nostr-by-kind", variants: decoders, load: work::load_groups::<C> },
        Task { name: "nostr-by-category", variants: decoders, load: work::load_groups::<C> },
        Task { name: "nostr-batch", variants: decoders, load: work::load_batches::<C> },
    ]
}

/// The task `nostr-validated`.
pub fn validated<V: Validate>() -> Task {
    let variants = one_variant(V::FORMAT, <V as Validate>::CHECKS);
    Task { name: "nostr-validated", variants, load: work::load_validate::<V> }
}

/// The task `nostr-fields`.
pub fn fields<F: Fields>() -> Task {
    let variants = EventField::ALL.map(|field| Variant {
        name: format!("{}/{}", F::FORMAT, field.name()).leak(),
        checks: if field == EventField::Pubkey { &[] } else { &["kind-range"] },
    });
    Task { name: "nostr-fields", variants: variants.to_vec().leak(), load: work::load_fields::<F> }
}

fn one_variant(name: &'static str, checks: &'static [&'static str]) -> &'static [Variant] {
    vec![Variant { name, checks }].leak()
}
