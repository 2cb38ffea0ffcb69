//! The fields of a label as columns, and its bytes from them.

use atproto::syntax::Did;
use codec::cbor::{DecodeError, Encoder, KeyOrder, Reader};

/// The fields of a label as far as it has them, with the types that they should have. `null`, other types and long texts are left
/// out: then the fields do not give the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelFields<'a> {
    pub(crate) src: Option<&'a str>,
    pub(crate) uri: Option<&'a str>,
    pub(crate) cid: Option<&'a str>,
    pub(crate) val: Option<&'a str>,
    pub(crate) neg: Option<bool>,
    pub(crate) cts: Option<&'a str>,
    pub(crate) exp: Option<&'a str>,
    pub(crate) ver: Option<i64>,
    pub(crate) sig: Option<&'a [u8]>,
}

impl<'a> LabelFields<'a> {
    /// The fields of a label as it was received.
    pub(crate) fn of(label: &'a [u8]) -> Self {
        let mut fields = Self::default();
        // What follows a fault is unknown.
        let _ = fields.read(label);
        fields
    }

    fn read(&mut self, label: &'a [u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(label);
        let mut keys = KeyOrder::new();
        for _ in 0..reader.map()? {
            let key = reader.key(&mut keys)?;
            let start = reader.offset();
            reader.skip()?;
            let value = || Reader::new(&label[start..reader.offset()]);
            let text = || value().text().ok().filter(|text| text.len() <= MAX_FIELD_BYTES);
            match key {
                "cid" => self.cid = text(),
                "cts" => self.cts = text(),
                "exp" => self.exp = text(),
                "neg" => self.neg = value().boolean().ok(),
                "sig" => self.sig = value().bytes().ok().filter(|sig| sig.len() <= MAX_FIELD_BYTES),
                "src" => self.src = text(),
                "uri" => self.uri = text(),
                "val" => self.val = text(),
                "ver" => self.ver = value().integer().ok(),
                _ => {}
            }
        }
        Ok(())
    }

    /// The canonical bytes of a label with these fields, and no others.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let Self { src, uri, cid, val, neg, cts, exp, ver, sig } = self;
        let texts = [src, uri, cid, val, cts, exp].iter().flatten().count();
        let others = [neg.is_some(), ver.is_some(), sig.is_some()];
        let mut out = Encoder::new();
        out.map(texts + others.into_iter().filter(|is_present| *is_present).count());
        let text = |out: &mut Encoder, key: &str, value: Option<&str>| {
            if let Some(value) = value {
                out.text(key).text(value);
            }
        };
        text(&mut out, "cid", cid);
        text(&mut out, "cts", cts);
        text(&mut out, "exp", exp);
        if let Some(neg) = neg {
            out.text("neg").boolean(neg);
        }
        if let Some(sig) = sig {
            out.text("sig").bytes(sig);
        }
        text(&mut out, "src", src);
        text(&mut out, "uri", uri);
        text(&mut out, "val", val);
        if let Some(ver) = ver {
            out.text("ver").integer(ver);
        }
        out.into_bytes()
    }

    /// The account that the label is about.
    pub(crate) fn account(&self) -> Option<&'a str> {
        self.uri.and_then(account_of)
    }
}

/// The account of a subject: the authority of an `at://` URI, or the DID.
fn account_of(uri: &str) -> Option<&str> {
    let is_at = uri.get(..AT.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(AT));
    let rest = if is_at { &uri[AT.len()..] } else { uri };
    let account = rest.split(['/', '?', '#']).next()?;
    Did::parse(account).ok().map(|_| account)
}

const AT: &str = "at://";

/// Maximum length of a field in a column. A verified label has no longer one.
const MAX_FIELD_BYTES: usize = 8_192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_of_a_subject_is_its_authority_or_the_did() {
        for (uri, account) in [
            ("did:plc:abc", Some("did:plc:abc")),
            ("at://did:plc:abc", Some("did:plc:abc")),
            ("at://did:plc:abc/app.bsky.feed.post/1", Some("did:plc:abc")),
            ("AT://did:web:a.test?x", Some("did:web:a.test")),
            ("did:plc:abc#part", Some("did:plc:abc")),
            ("at://alice.test/app.bsky.feed.post/1", None),
            ("https://did:plc:abc/", None),
            ("at:/", None),
            ("", None),
        ] {
            assert_eq!(account_of(uri), account, "{uri}");
        }
    }

    #[test]
    fn fields_give_the_bytes_unless_something_else_is_in_the_label() {
        let fields = LabelFields {
            src: Some("did:web:l.test"),
            neg: Some(false),
            ver: Some(2),
            sig: Some(&[1, 2]),
            ..LabelFields::default()
        };
        let bytes = fields.to_bytes();
        assert_eq!(LabelFields::of(&bytes), fields);
        for label in [&b"\xa1\x63val\xf6"[..], b"\xa1\x63val\x01", b"\x01", b"", b"\xa1\x63xyz\x01"]
        {
            assert_eq!(LabelFields::of(label), LabelFields::default());
        }
        let long = "x".repeat(MAX_FIELD_BYTES + 1);
        let fields = LabelFields { uri: Some(&long), ..fields };
        assert_eq!(LabelFields::of(&fields.to_bytes()).uri, None);
        assert_eq!(LabelFields::default().to_bytes(), b"\xa0");
    }
}
