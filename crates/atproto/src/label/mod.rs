//! Labels, version 1: parsing, writing, and the bytes that are signed; and the messages of
//! `com.atproto.label.subscribeLabels`.
//!
//! | key | value |
//! |---|---|
//! | `cid` | text, optional: the version of the subject |
//! | `cts` | text: the time of creation |
//! | `exp` | text, optional: the time from which the label no longer applies |
//! | `neg` | boolean, optional: whether the label retracts an earlier one |
//! | `sig` | 64 bytes: the signature of the other seven and `ver` |
//! | `src` | text: the DID of the labeler |
//! | `uri` | text: the subject |
//! | `val` | text: the value |
//! | `ver` | 1 |
//!
//! Unknown entries, `$type` among them, are ignored and are not signed. Therefore the signed bytes are encoded again from
//! these keys, as they were received: an absent key stays absent, and `neg` that is false stays.
//!
//! Source: the label specification, version 1.
//!
//! ```
//! use wireproof::atproto::label::{Label, UnsignedLabel};
//!
//! let unsigned = UnsignedLabel {
//!     src: "did:web:labels.example.com",
//!     uri: "did:plc:ewvi7nxzyoun6zhxrhs64oiz",
//!     val: "spam",
//!     cts: "2026-01-01T00:00:00.000Z",
//!     ..UnsignedLabel::default()
//! };
//! let bytes = unsigned.with_signature(&[1; 64]);
//! let label = Label::parse(&bytes)?;
//! assert_eq!((label.fields.val, label.sig), ("spam", &[1; 64]));
//! assert_eq!(label.fields.to_bytes(), unsigned.to_bytes());
//! # Ok::<(), wireproof::atproto::label::LabelError>(())
//! ```

mod json;
mod message;
#[cfg(test)]
mod tests;

use codec::cbor::{DecodeError, Encoder, KeyOrder, Reader, Reason};

pub use json::{LabelPage, LabelPageError};
pub use message::{LabelMessage, Labels, MAX_LABELS, MAX_MESSAGE_BYTES};

/// The signed fields of a label, unchecked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsignedLabel<'a> {
    /// The DID of the labeler.
    pub src: &'a str,
    /// The subject: an `at://` URI of a record, the DID of an account, or another URI.
    pub uri: &'a str,
    /// The version of the subject, if the label is about one.
    pub cid: Option<&'a str>,
    /// The value.
    pub val: &'a str,
    /// Whether the label retracts an earlier one; absent means no.
    pub neg: Option<bool>,
    /// The time of creation.
    pub cts: &'a str,
    /// The time from which the label no longer applies.
    pub exp: Option<&'a str>,
}

impl UnsignedLabel<'_> {
    /// The bytes to sign.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode(None, Vec::new())
    }

    /// Appends the bytes to sign.
    pub fn append_to(&self, out: Vec<u8>) -> Vec<u8> {
        self.encode(None, out)
    }

    /// The label with this signature (r and s) of the SHA-256 of [`to_bytes`](Self::to_bytes).
    pub fn with_signature(&self, signature: &[u8; 64]) -> Vec<u8> {
        self.encode(Some(signature), Vec::new())
    }

    /// Whether the label retracts an earlier one.
    pub fn is_negation(&self) -> bool {
        self.neg == Some(true)
    }

    fn encode(&self, signature: Option<&[u8; 64]>, out: Vec<u8>) -> Vec<u8> {
        let optional =
            [self.cid.is_some(), self.exp.is_some(), self.neg.is_some(), signature.is_some()];
        let mut out = Encoder::appending_to(out);
        out.map(5 + optional.into_iter().filter(|present| *present).count());
        if let Some(cid) = self.cid {
            out.text("cid").text(cid);
        }
        out.text("cts").text(self.cts);
        if let Some(exp) = self.exp {
            out.text("exp").text(exp);
        }
        if let Some(neg) = self.neg {
            out.text("neg").boolean(neg);
        }
        if let Some(signature) = signature {
            out.text("sig").bytes(signature);
        }
        out.text("src").text(self.src);
        out.text("uri").text(self.uri);
        out.text("val").text(self.val);
        out.text("ver").integer(VERSION);
        out.into_bytes()
    }
}

/// The version of labels.
const VERSION: i64 = 1;

/// A label, borrowed from its bytes. The signature is not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// The signed fields.
    pub fields: UnsignedLabel<'a>,
    /// The signature: r and s.
    pub sig: &'a [u8; 64],
}

impl<'a> Label<'a> {
    /// Reads a label as services transfer it, with its version and its signature.
    ///
    /// # Errors
    /// If the bytes are not canonical DAG-CBOR, or not a signed label of version 1.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, LabelError> {
        let mut reader = Reader::new(bytes);
        let fields = Fields::read(&mut reader)?;
        reader.finish()?;
        fields.into_label()
    }
}

/// The fields of a label as far as they are present.
#[derive(Default)]
struct Fields<'a> {
    ver: Option<(usize, i64)>,
    src: Option<&'a str>,
    uri: Option<&'a str>,
    cid: Option<&'a str>,
    val: Option<&'a str>,
    neg: Option<bool>,
    cts: Option<&'a str>,
    exp: Option<&'a str>,
    sig: Option<(usize, &'a [u8])>,
}

impl<'a> Fields<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut fields = Self::default();
        let mut keys = KeyOrder::new();
        for _ in 0..reader.map()? {
            match reader.key(&mut keys)? {
                "cid" => fields.cid = Some(reader.text()?),
                "cts" => fields.cts = Some(reader.text()?),
                "exp" => fields.exp = Some(reader.text()?),
                "neg" => fields.neg = Some(reader.boolean()?),
                "sig" => fields.sig = Some((reader.offset(), reader.bytes()?)),
                "src" => fields.src = Some(reader.text()?),
                "uri" => fields.uri = Some(reader.text()?),
                "val" => fields.val = Some(reader.text()?),
                "ver" => fields.ver = Some((reader.offset(), reader.integer()?)),
                _ => reader.skip()?,
            }
        }
        Ok(fields)
    }

    fn into_label(self) -> Result<Label<'a>, LabelError> {
        let required = |field: Option<&'a str>, name| field.ok_or_else(|| missing(name));
        let fields = UnsignedLabel {
            src: required(self.src, "src")?,
            uri: required(self.uri, "uri")?,
            cid: self.cid,
            val: required(self.val, "val")?,
            neg: self.neg,
            cts: required(self.cts, "cts")?,
            exp: self.exp,
        };
        match self.ver {
            None => return Err(missing("ver")),
            Some((_, VERSION)) => {}
            Some((offset, other)) => {
                return Err(LabelError { offset, fault: LabelFault::Version(other) });
            }
        }
        let Some((offset, sig)) = self.sig else {
            return Err(LabelError { offset: 0, fault: LabelFault::Unsigned });
        };
        let length = |_| LabelError { offset, fault: LabelFault::SignatureLength(sig.len()) };
        Ok(Label { fields, sig: sig.try_into().map_err(length)? })
    }
}

#[cold]
fn missing(name: &'static str) -> LabelError {
    LabelError { offset: 0, fault: LabelFault::Missing(name) }
}

/// A broken rule of a label, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} of the label: {fault}")]
pub struct LabelError {
    /// Bytes from the start of the label to the part that breaks the rule.
    pub offset: usize,
    /// The broken rule.
    pub fault: LabelFault,
}

/// A rule of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelFault {
    /// The bytes are not canonical DAG-CBOR, or a field is of another kind.
    #[error("{0}")]
    Cbor(Reason),
    /// A required field is absent.
    #[error("the field {0:?} is missing")]
    Missing(&'static str),
    /// The version is not 1.
    #[error("version {0}: only version 1 is known")]
    Version(i64),
    /// There is no signature.
    #[error("the label is not signed")]
    Unsigned,
    /// The signature has another length; the length in bytes.
    #[error("a signature of {0} bytes: it has 64")]
    SignatureLength(usize),
}

impl From<DecodeError> for LabelError {
    #[cold]
    fn from(error: DecodeError) -> Self {
        Self { offset: error.offset, fault: LabelFault::Cbor(error.reason) }
    }
}
