//! Why a block is refused as a node, and where.

use codec::cbor::{DecodeError, Reason};

use crate::mst::Limit;

/// Why a block is refused as a node, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} of the node: {fault}")]
pub struct NodeError {
    /// Bytes from the start of the block to the part that broke the rule.
    pub offset: usize,
    /// The rule.
    pub fault: NodeFault,
}

/// A rule of nodes, or of DAG-CBOR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeFault {
    /// The block is not canonical DAG-CBOR.
    #[error("{0}")]
    Cbor(Reason),
    /// The maps are not exactly {e, l} and {k, p, t, v}, each field of its kind.
    #[error("a node is a map of e and l, and an entry one of k, p, t and v")]
    Shape,
    /// A link to a child names something other than DAG-CBOR under SHA-256.
    #[error("a child must be DAG-CBOR under SHA-256")]
    Link,
    /// The stated prefix is not the whole of what the key shares with the one before it.
    #[error("the prefix must be all that the key shares with the one before it")]
    Prefix,
    /// Nothing follows the prefix.
    #[error("nothing of the key follows its prefix")]
    EmptyKey,
    /// A key is not greater than the one before it.
    #[error("a key out of order")]
    Order,
    /// A bound is exceeded.
    #[error("{0}")]
    Limit(Limit),
}

impl NodeFault {
    /// The rule's stable name, such as `tree/prefix`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Cbor(_) => "tree/cbor",
            Self::Shape => "tree/shape",
            Self::Link => "tree/link",
            Self::Prefix => "tree/prefix",
            Self::EmptyKey => "tree/empty-key",
            Self::Order => "tree/order",
            Self::Limit(_) => "tree/limit",
        }
    }
}

/// The fault of what starts at `rest`, in a block of `len` bytes.
#[cold]
#[inline(never)]
pub(super) fn fail<T>(len: usize, rest: &[u8], fault: NodeFault) -> Result<T, NodeError> {
    Err(NodeError { offset: len - rest.len(), fault })
}

impl From<DecodeError> for NodeError {
    #[cold]
    fn from(error: DecodeError) -> Self {
        let fault = match error.reason {
            Reason::Expected(_) => NodeFault::Shape,
            reason => NodeFault::Cbor(reason),
        };
        Self { offset: error.offset, fault }
    }
}
