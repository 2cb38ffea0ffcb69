//! Why bytes are no key, and why a signature is refused.

/// Why text or bytes are not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text does not start with `did:key:`.
    #[error("a key as a DID starts with `did:key:`")]
    DidKey,
    /// The multibase letter is not `z`.
    #[error("a key as text starts with `z` for base58")]
    Multibase,
    /// A symbol outside the base58 alphabet, or more of them than any key has.
    #[error("not base58 of the length of a key")]
    Base58,
    /// The multicodec names neither a K-256 nor a P-256 public key.
    #[error("not the multicodec of a K-256 or P-256 public key")]
    Multicodec,
    /// The type of a verification method is none that is known.
    #[error("not a known type of verification method")]
    MethodType,
    /// The point has a length that its form does not have.
    #[error("a point of {0} bytes")]
    Length(usize),
    /// The first byte of the point names no form that is read.
    #[error("a point that starts with {0:#04x}")]
    Form(u8),
    /// No point of the curve has these coordinates.
    #[error("not a point of the curve")]
    NotOnCurve,
    /// A secret key is zero, or not below the order of the curve.
    #[error("a secret key out of range")]
    SecretRange,
}

/// Why a signature is refused. What can be told from the signature alone comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureFault {
    /// The signature is not 64 bytes, as one in DER is not.
    #[error("a signature is 64 bytes long, this is {0}")]
    Length(usize),
    /// r is zero, or not below the order of the curve (for BIP-340: not below the field's size).
    #[error("r is out of range")]
    RRange,
    /// s is zero, or not below the order of the curve.
    #[error("s is out of range")]
    SRange,
    /// s is above half the order of the curve: the signature's twin, that anyone can make.
    #[error("s is in the upper half")]
    HighS,
    /// The key is no point of its curve.
    #[error("the key is not a point of its curve")]
    Key,
    /// All is well formed, but the key did not sign this message.
    #[error("not this key's signature of this message")]
    Mismatch,
}

const _: () = assert!(size_of::<SignatureFault>() <= 16, "verdicts stay in two registers");
