//! Owned identifiers of any kind: what keeps a foreign link byte for byte.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::{Cid, CidRef};

/// A well-formed content identifier, owned. Records of the AT Protocol may carry foreign ones, which
/// are kept as they came.
///
/// ```
/// use wireproof_codec::cid::{AnyCid, CidRef};
/// let identity = CidRef::from_bytes(&[0x01, 0x55, 0x00, 0x01, 7]).unwrap();
/// let kept = AnyCid::from(identity);
/// assert_eq!(kept.as_cid_ref(), identity);
/// assert_eq!(kept.to_cid(), None);
/// ```
#[derive(Clone)]
pub struct AnyCid(Form);

#[derive(Clone)]
enum Form {
    Blessed(Cid),
    /// Well-formed and not blessed.
    Foreign(Box<[u8]>),
}

impl AnyCid {
    /// The same identifier, borrowed.
    #[inline]
    pub fn as_cid_ref(&self) -> CidRef<'_> {
        match &self.0 {
            Form::Blessed(cid) => cid.as_cid_ref(),
            Form::Foreign(bytes) => CidRef::well_formed_unchecked(bytes),
        }
    }

    /// The binary form.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.as_cid_ref().as_bytes()
    }

    /// The blessed form, if this identifier is one.
    #[inline]
    pub fn to_cid(&self) -> Option<Cid> {
        match self.0 {
            Form::Blessed(cid) => Some(cid),
            Form::Foreign(_) => None,
        }
    }
}

impl From<Cid> for AnyCid {
    #[inline]
    fn from(cid: Cid) -> Self {
        Self(Form::Blessed(cid))
    }
}

impl From<CidRef<'_>> for AnyCid {
    #[inline]
    fn from(cid: CidRef<'_>) -> Self {
        match cid.to_cid() {
            Some(cid) => cid.into(),
            None => Self(Form::Foreign(cid.as_bytes().into())),
        }
    }
}

impl PartialEq for AnyCid {
    fn eq(&self, other: &Self) -> bool {
        self.as_cid_ref() == other.as_cid_ref()
    }
}

impl Eq for AnyCid {}

impl PartialOrd for AnyCid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AnyCid {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_cid_ref().cmp(&other.as_cid_ref())
    }
}

impl Hash for AnyCid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_cid_ref().hash(state);
    }
}

impl fmt::Display for AnyCid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_cid_ref().fmt(f)
    }
}

impl fmt::Debug for AnyCid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyCid({self})")
    }
}

const _: () = assert!(size_of::<AnyCid>() <= 40);
