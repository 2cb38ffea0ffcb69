//! Labels that break one rule each, and valid but unusual ones, for a stream in which every label has a message of its own.

use atproto::label::{Label, UnsignedLabel};

use crate::keys::{Curve, with_high_s};
use crate::labeler::Labeler;

/// A label and the verdict that it must get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelCase {
    /// What is wrong or unusual, in a few words.
    pub name: &'static str,
    /// The bytes of the label.
    pub label: Vec<u8>,
    /// The stable code of the verdict.
    pub code: &'static str,
}

impl LabelCase {
    /// Whether the label must be accepted.
    pub fn is_valid(&self) -> bool {
        self.code.starts_with("verified")
    }
}

/// The cases for the stream of `labeler`. `other` is another labeler that can be looked up.
pub fn cases(labeler: &Labeler, other: &Labeler) -> Vec<LabelCase> {
    let fields = UnsignedLabel {
        src: labeler.did(),
        uri: "at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.feed.post/3k",
        val: "spam",
        cts: "2026-01-01T00:00:00.000Z",
        ..UnsignedLabel::default()
    };
    let (long, cid) =
        ("v".repeat(129), "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454");
    let good = labeler.sign(&fields);
    let signature = *Label::parse(&good).expect("a label that was just signed").sig;
    let of_other = UnsignedLabel { src: other.did(), ..fields };
    // A label that says something else than its signature.
    let changed = |fields: UnsignedLabel<'_>| fields.with_signature(&signature);
    let negated = Label::parse(&labeler.sign(&UnsignedLabel { neg: Some(false), ..fields }))
        .map(|label| *label.sig)
        .expect("a label that was just signed");
    let limited = labeler.sign(&UnsignedLabel { exp: Some("2026-01-02T00:00:00Z"), ..fields });
    let limited = *Label::parse(&limited).expect("a label that was just signed").sig;
    let sig_at = good.windows(4).position(|window| window == b"\x63sig").expect("a signature");
    let with_sig = |sig: &[u8]| [&good[..sig_at + 4], sig, &good[sig_at + 70..]].concat();
    let with_entry = |label: &[u8], key: &[u8], value: &[u8]| {
        [&[label[0] + 1][..], &label[1..], key, value].concat()
    };
    let typed = b"\x78\x1ccom.atproto.label.defs#label";
    let signed_type = with_entry(&fields.to_bytes(), b"\x65$type", typed);
    let ver = |version: &[u8]| [&good[..good.len() - 1], version].concat();
    let case = |name, label, code| LabelCase { name, label, code };
    vec![
        case("a label", good.clone(), "verified"),
        case(
            "a negation",
            labeler.sign(&UnsignedLabel { neg: Some(true), ..fields }),
            "verified/negation",
        ),
        case(
            "`neg` that is false, signed so",
            labeler.sign(&UnsignedLabel { neg: Some(false), ..fields }),
            "verified",
        ),
        case(
            "expired",
            labeler.sign(&UnsignedLabel { exp: Some("2026-01-02T00:00:00Z"), ..fields }),
            "verified/expired",
        ),
        case(
            "of one version of a record",
            labeler.sign(&UnsignedLabel { cid: Some(cid), ..fields }),
            "verified",
        ),
        case(
            "with `$type`, which is not signed",
            with_entry(&good, b"\x65$type", typed),
            "verified",
        ),
        case("of another source, which signed it", other.sign(&of_other), "verified"),
        case(
            "another value than the signed one",
            changed(UnsignedLabel { val: "nude", ..fields }),
            "signature/wrong",
        ),
        case(
            "another subject than the signed one",
            changed(UnsignedLabel { uri: "did:plc:ewvi7nxzyoun6zhxrhs64oiz", ..fields }),
            "signature/wrong",
        ),
        case(
            "a label made into a negation",
            changed(UnsignedLabel { neg: Some(true), ..fields }),
            "signature/wrong",
        ),
        case("the time of expiry removed", fields.with_signature(&limited), "signature/wrong"),
        case("`neg` that is false removed", fields.with_signature(&negated), "signature/wrong"),
        case("signed by another labeler", other.sign(&fields), "signature/wrong"),
        case("of another source, which did not sign it", labeler.sign(&of_other), "label/source"),
        case(
            "signed with `$type`",
            fields.with_signature(&labeler.sign_bytes(&signed_type)),
            "signature/wrong",
        ),
        case(
            "the other signature (r, n − s)",
            fields.with_signature(&with_high_s(Curve::K256, &signature)),
            "signature/high-s",
        ),
        case("a signature of zeros", fields.with_signature(&[0; 64]), "signature/range"),
        case(
            "a signature of 63 bytes",
            with_sig(&[&[0x58, 63][..], &signature[..63]].concat()),
            "label/signature-length",
        ),
        case("a signature that is a text", with_sig(b"\x64c2ln"), "label/field"),
        case("no signature", fields.to_bytes(), "label/unsigned"),
        case("version 2", ver(b"\x02"), "label/version"),
        case("an empty value", labeler.sign(&UnsignedLabel { val: "", ..fields }), "label/value"),
        case(
            "a value of 129 bytes",
            labeler.sign(&UnsignedLabel { val: &long, ..fields }),
            "label/value",
        ),
        case(
            "a subject that is no URI",
            labeler.sign(&UnsignedLabel { uri: "post", ..fields }),
            "label/field",
        ),
        case(
            "a version of the subject that is no CID",
            labeler.sign(&UnsignedLabel { cid: Some("first"), ..fields }),
            "label/field",
        ),
        case(
            "a time of creation that is none",
            labeler.sign(&UnsignedLabel { cts: "today", ..fields }),
            "label/field",
        ),
        case(
            "a time of expiry without a zone",
            labeler.sign(&UnsignedLabel { exp: Some("2030-01-01T00:00:00"), ..fields }),
            "label/field",
        ),
        case("a null for a field", with_null(&good), "label/field"),
        case("no fields", b"\xa0".to_vec(), "label/missing"),
        case("a number with more bytes than it needs", ver(b"\x18\x01"), "frame/cbor"),
        case(
            "a key twice",
            [&[good[0] + 1][..], &good[1..], b"\x63ver\x01"].concat(),
            "frame/cbor",
        ),
    ]
}

/// The label with a null as `cid`, the first key.
fn with_null(label: &[u8]) -> Vec<u8> {
    [&[label[0] + 1][..], b"\x63cid\xf6", &label[1..]].concat()
}
