//! Decodes a signed commit and cuts out the bytes that were signed.
//!
//! minicbor walks the map; the signed bytes are the received ones, without the entry `sig` and with a map head of
//! one entry less. Nothing is encoded again.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use minicbor::data::{Tag, Type};
use minicbor::{Decoder, decode};

/// A commit whose text and bytes lie in the input.
#[expect(dead_code, reason = "a user would read what is only decoded here")]
pub(crate) struct Commit<'a> {
    pub(crate) did: &'a str,
    pub(crate) rev: &'a str,
    pub(crate) sig: &'a [u8; 64],
    /// The bytes of a CID.
    pub(crate) data: &'a [u8],
    pub(crate) prev: Option<&'a [u8]>,
    pub(crate) version: u8,
    signed: Signed<'a>,
}

struct Signed<'a> {
    /// The whole commit.
    commit: &'a [u8],
    /// Where the entry `sig` lies in it.
    sig_entry: Range<usize>,
}

/// The rule that a commit broke.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl<'a> Commit<'a> {
    /// Decodes a commit, which must be all of `commit`.
    pub(crate) fn decode(commit: &'a [u8]) -> Result<Self, Malformed> {
        let mut decoder = Decoder::new(commit);
        let len = decoder.map()?.filter(|len| *len < 24).ok_or(Malformed("a commit is short"))?;
        let (mut did, mut rev, mut sig, mut data) = (None, None, None, None);
        let (mut prev, mut version) = (None, None);
        for _ in 0..len {
            let start = decoder.position();
            match decoder.str()? {
                "did" => did = Some(decoder.str()?),
                "rev" => rev = Some(decoder.str()?),
                "sig" => sig = Some((decoder.bytes()?, start..decoder.position())),
                "data" => data = Some(link(&mut decoder)?),
                "prev" => prev = Some(link_or_null(&mut decoder)?),
                "version" => version = Some(decoder.u8()?),
                _ => decoder.skip()?,
            }
        }
        if decoder.position() != commit.len() {
            return Err(Malformed("nothing follows a commit"));
        }
        let (sig, sig_entry) = sig.ok_or(Malformed("a commit has a signature"))?;
        Ok(Commit {
            did: did.ok_or(Malformed("a commit has a DID"))?,
            rev: rev.ok_or(Malformed("a commit has a revision"))?,
            sig: sig.try_into().map_err(|_| Malformed("a signature has 64 bytes"))?,
            data: data.ok_or(Malformed("a commit has a root"))?,
            prev: prev.ok_or(Malformed("a commit says what was before"))?,
            version: version.ok_or(Malformed("a commit has a version"))?,
            signed: Signed { commit, sig_entry },
        })
    }

    /// The bytes that were signed.
    pub(crate) fn to_message(&self) -> Vec<u8> {
        let Signed { commit, sig_entry } = &self.signed;
        let mut message = Vec::with_capacity(commit.len());
        message.extend_from_slice(&commit[..sig_entry.start]);
        message.extend_from_slice(&commit[sig_entry.end..]);
        // A map of fewer than 24 entries: the head is one byte, and its low bits are the number.
        message[0] -= 1;
        message
    }
}

fn link_or_null<'a>(decoder: &mut Decoder<'a>) -> Result<Option<&'a [u8]>, Malformed> {
    if decoder.datatype()? == Type::Null {
        decoder.null()?;
        return Ok(None);
    }
    link(decoder).map(Some)
}

fn link<'a>(decoder: &mut Decoder<'a>) -> Result<&'a [u8], Malformed> {
    if decoder.tag()? != CID_TAG {
        return Err(Malformed("the only tag is 42"));
    }
    match decoder.bytes()? {
        [0, cid @ ..] => Ok(cid),
        _ => Err(Malformed("a link begins with a zero byte")),
    }
}

const CID_TAG: Tag = Tag::new(42);

impl From<decode::Error> for Malformed {
    #[cold]
    fn from(_: decode::Error) -> Self {
        Malformed("a commit is well-formed CBOR")
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken rule: {}", self.0)
    }
}

impl Error for Malformed {}
