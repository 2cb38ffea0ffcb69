//! The reasons for refusing a label.

use atproto::event::{FrameError, FrameFault};
use atproto::label::{LabelError, LabelFault};
use atproto::syntax::SyntaxError;
use codec::cbor::Reason;
use crypto::SignatureFault;

use crate::commit::signature_code;

/// Why a label is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelRejection<'a> {
    /// The bytes are no signed label of version 1.
    #[error(transparent)]
    Object(LabelError),
    /// A field has another syntax than it must have.
    #[error("field `{field}`: {error}")]
    Syntax {
        /// The field.
        field: &'static str,
        /// The syntax error.
        error: SyntaxError,
    },
    /// The value is empty or too long; its length in bytes.
    #[error("a value of {0} bytes: it has 1 to 128")]
    Value(usize),
    /// The source has no usable key for labels.
    #[error("{0} has no key for labels")]
    NoKey(&'a str),
    /// The signature is malformed, malleable, or not the key's.
    #[error("signature of the label: {0}")]
    Signature(SignatureFault),
    /// Another service than its source sent the label, and it does not prove.
    #[error("the label of {0} comes from another service, and is not signed by its source")]
    Source(&'a str),
    /// A key that the source had before has signed the label.
    #[error("signed by an earlier key of the source")]
    EarlierKey,
}

impl LabelRejection<'_> {
    /// The stable code of the broken rule.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Object(error) => object_code(error),
            Self::Syntax { .. } => "label/field",
            Self::Value(_) => "label/value",
            Self::NoKey(_) => "signature/no-key",
            Self::Signature(fault) => signature_code(*fault),
            Self::Source(_) => "label/source",
            Self::EarlierKey => "label/earlier-key",
        }
    }
}

fn object_code(error: &LabelError) -> &'static str {
    match error.fault {
        LabelFault::Cbor(Reason::Expected(_)) => "label/field",
        LabelFault::Missing(VERSION) | LabelFault::Version(_) => "label/version",
        LabelFault::Missing(_) => "label/missing",
        LabelFault::Unsigned => "label/unsigned",
        LabelFault::SignatureLength(_) => "label/signature-length",
        _ => "label/cbor",
    }
}

/// The stable code of a message of a stream of labels that cannot be read.
pub fn message_code(error: &FrameError) -> &'static str {
    match error.fault {
        FrameFault::Missing(_) | FrameFault::Field(_) | FrameFault::Cbor(Reason::Expected(_)) => {
            "frame/field"
        }
        FrameFault::FrameLimit(_) | FrameFault::LabelsLimit(_) => "frame/limit",
        _ => "frame/cbor",
    }
}

/// The field of the version.
const VERSION: &str = "ver";
