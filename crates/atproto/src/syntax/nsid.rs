//! Namespaced identifiers: an authority, which is a domain name written backwards, and a name.
//!
//! | part | rule |
//! |---|---|
//! | authority | two labels or more, of letters, digits and hyphens; the first starts with a letter |
//! | name | the last label: letters and digits, the first a letter |
//!
//! A label has 1 to 63 bytes and no hyphen first or last; all together are at most 317 bytes. (A domain
//! name has at most 253, but an official case with 283 in its authority is valid.) Patterns such as `app.bsky.*` and
//! references such as `app.bsky.feed.post#main` are something else.

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::label::end_of_label;
use super::symbols::LETTER;
use super::text::{borrowed, owned};

borrowed! {
    /// An NSID.
    ///
    /// ```
    /// use wireproof_atproto::syntax::Nsid;
    /// let nsid = Nsid::parse("app.bsky.feed.post")?;
    /// assert_eq!((nsid.authority(), nsid.name()), ("app.bsky.feed", "post"));
    /// # Ok::<(), wireproof_atproto::syntax::SyntaxError>(())
    /// ```
    Nsid, NsidBuf
}

owned! {
    /// An NSID, owned.
    NsidBuf, Nsid, as_nsid
}

impl<'a> Nsid<'a> {
    /// The most bytes there can be: a domain name of 253, a dot and a name of 63.
    pub const MAX_LEN: usize = 317;

    /// The domain name, as it stands: backwards.
    pub fn authority(self) -> &'a str {
        self.split().0
    }

    /// The last label.
    pub fn name(self) -> &'a str {
        self.split().1
    }

    /// The labels, in the order of the text.
    pub fn labels(self) -> impl DoubleEndedIterator<Item = &'a str> {
        self.0.split('.')
    }

    /// The same with the authority in lower case; the name keeps its case.
    pub fn to_normalized(self) -> NsidBuf {
        let (authority, name) = self.split();
        NsidBuf(format!("{}.{name}", authority.to_ascii_lowercase()).into())
    }

    fn split(self) -> (&'a str, &'a str) {
        self.0.rsplit_once('.').expect("checked when it was made")
    }
}

fn check(text: &str) -> Result<(), SyntaxError> {
    let bytes = text.as_bytes();
    if bytes.len() > Nsid::MAX_LEN {
        return fail(SyntaxKind::Nsid, SyntaxRule::TooLong, Nsid::MAX_LEN);
    }
    if let Some(first) = bytes.first()
        && first.is_ascii_digit()
    {
        return fail(SyntaxKind::Nsid, SyntaxRule::Letter, 0);
    }
    let (mut labels, mut start) = (1, 0);
    loop {
        let end = end_of_label(SyntaxKind::Nsid, bytes, start)?;
        if end == bytes.len() {
            break;
        }
        (labels, start) = (labels + 1, end + 1);
    }
    if labels < 3 {
        return fail(SyntaxKind::Nsid, SyntaxRule::FewParts, bytes.len());
    }
    check_name(bytes, start)
}

/// What a name has to keep beyond the rules of a label.
#[inline(always)]
fn check_name(bytes: &[u8], start: usize) -> Result<(), SyntaxError> {
    if !LETTER.has(bytes[start]) {
        return fail(SyntaxKind::Nsid, SyntaxRule::Letter, start);
    }
    match bytes[start..].iter().position(|byte| *byte == b'-') {
        Some(at) => fail(SyntaxKind::Nsid, SyntaxRule::Symbol, start + at),
        None => Ok(()),
    }
}
