//! `cbor-schemaless`: a map whose keys are the names. minicbor's derive does not support it, so its decoder
//! and its encoder are called directly, as documented.

use minicbor::decode::{self, Decoder};
use minicbor::encode::{self, Encoder, Write};
use minicbor::{Decode, Encode};
use runner_shell::BoxError;
use runner_shell::nostr::{Codec, EventCounts, Fields, line};

pub(crate) struct Schemaless;

/// No value of a tag is compacted here.
pub(crate) struct Event<'b> {
    id: [u8; 32],
    pubkey: [u8; 32],
    created_at: i64,
    kind: u16,
    tags: Vec<Vec<&'b str>>,
    content: &'b str,
    sig: [u8; 64],
}

impl<C> Encode<C> for Event<'_> {
    fn encode<W: Write>(
        &self,
        out: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        out.map(7)?.str("id")?.bytes(&self.id)?.str("pubkey")?.bytes(&self.pubkey)?;
        out.str("created_at")?.i64(self.created_at)?.str("kind")?.u16(self.kind)?;
        out.str("tags")?.encode_with(&self.tags, context)?;
        out.str("content")?.str(self.content)?.str("sig")?.bytes(&self.sig)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Event<'b> {
    fn decode(input: &mut Decoder<'b>, context: &mut C) -> Result<Self, decode::Error> {
        let (mut id, mut pubkey, mut created_at, mut kind) = (None, None, None, None);
        let (mut tags, mut content, mut sig) = (None, None, None);
        let entries =
            input.map()?.ok_or_else(|| decode::Error::message("a map without a length"))?;
        for _ in 0..entries {
            match input.str()? {
                "id" => id = Some(array(input)?),
                "pubkey" => pubkey = Some(array(input)?),
                "created_at" => created_at = Some(input.i64()?),
                "kind" => kind = Some(input.u16()?),
                "tags" => tags = Some(input.decode_with(context)?),
                "content" => content = Some(input.str()?),
                "sig" => sig = Some(array(input)?),
                _ => input.skip()?,
            }
        }
        let missing = || decode::Error::message("a field is missing");
        Ok(Event {
            id: id.ok_or_else(missing)?,
            pubkey: pubkey.ok_or_else(missing)?,
            created_at: created_at.ok_or_else(missing)?,
            kind: kind.ok_or_else(missing)?,
            tags: tags.ok_or_else(missing)?,
            content: content.ok_or_else(missing)?,
            sig: sig.ok_or_else(missing)?,
        })
    }
}

fn array<const N: usize>(input: &mut Decoder<'_>) -> Result<[u8; N], decode::Error> {
    input.bytes()?.try_into().map_err(|_| decode::Error::message("bytes of a wrong length"))
}

impl Codec for Schemaless {
    const FORMAT: &'static str = "cbor-schemaless";
    const CHECKS: &'static [&'static str] = &["utf8", "kind-range"];

    type Event = Event<'static>;
    type Decoded<'a> = Event<'a>;

    /// The corpus stays until the end, and so its texts may.
    fn parse(line: &str) -> Result<Event<'static>, BoxError> {
        let event: line::Event<'_> = serde_json::from_str(line)?;
        let value = |text: line::Text<'_>| &*text.0.into_owned().leak();
        let tag = |tag: Vec<_>| tag.into_iter().map(value).collect();
        Ok(Event {
            id: event.id,
            pubkey: event.pubkey,
            created_at: event.created_at,
            kind: event.kind,
            tags: event.tags.into_iter().map(tag).collect(),
            content: event.content.into_owned().leak(),
            sig: event.sig,
        })
    }

    fn encode(event: &Event<'static>, out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(minicbor::encode(event, out)?)
    }

    fn decode(bytes: &[u8]) -> Result<Event<'_>, BoxError> {
        Ok(minicbor::decode(bytes)?)
    }

    fn count(event: &Event<'_>, counts: &mut EventCounts) {
        counts.event(event.kind, event.created_at, event.content);
        event.tags.iter().for_each(|tag| counts.texts(tag));
    }

    fn encode_batch(events: &[Event<'static>], out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(minicbor::encode(events, out)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Event<'_>>, BoxError> {
        Ok(minicbor::decode(bytes)?)
    }
}

impl Fields for Schemaless {
    fn kind(bytes: &[u8]) -> Result<u16, BoxError> {
        Ok(at(bytes, "kind")?.u16()?)
    }

    fn pubkey(bytes: &[u8]) -> Result<[u8; 32], BoxError> {
        Ok(at(bytes, "pubkey")?.bytes()?.try_into()?)
    }

    fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), BoxError> {
        Ok((Schemaless::kind(bytes)?, Schemaless::pubkey(bytes)?))
    }
}

/// A decoder positioned before the field of that name.
fn at<'b>(bytes: &'b [u8], name: &str) -> Result<Decoder<'b>, BoxError> {
    let mut decoder = Decoder::new(bytes);
    for _ in 0..decoder.map()?.ok_or("a map without a length")? {
        if decoder.str()? == name {
            return Ok(decoder);
        }
        decoder.skip()?;
    }
    Err("a field is missing".into())
}
