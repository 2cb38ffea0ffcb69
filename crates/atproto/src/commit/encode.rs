//! Writing commits, field by field in canonical key order.

use codec::Cid;
use codec::cbor::Encoder;

/// What an account is about to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsignedCommit<'a> {
    /// The account's DID.
    pub did: &'a str,
    /// The revision, greater than the one before.
    pub rev: &'a str,
    /// The root of the tree.
    pub data: Cid,
    /// The commit before; `None` is what accounts write today.
    pub prev: Option<Cid>,
}

impl UnsignedCommit<'_> {
    /// The bytes to sign.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode(None)
    }

    /// The block of the commit with this signature, r and s, which should be over the SHA-256 of
    /// [`to_bytes`](Self::to_bytes).
    pub fn with_signature(&self, signature: &[u8; 64]) -> Vec<u8> {
        self.encode(Some(signature))
    }

    fn encode(&self, signature: Option<&[u8; 64]>) -> Vec<u8> {
        let mut out = Encoder::new();
        out.map(5 + usize::from(signature.is_some()));
        out.text("did").text(self.did).text("rev").text(self.rev);
        if let Some(signature) = signature {
            out.text("sig").bytes(signature);
        }
        out.text("data").link(self.data.as_cid_ref());
        out.text("prev").link_or_null(self.prev.as_ref().map(Cid::as_cid_ref));
        out.text("version").integer(3);
        out.into_bytes()
    }
}
