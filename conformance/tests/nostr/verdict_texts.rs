//! The events of the table of verdicts in `docs/formats/nostr/json.md`: per row texts whose hash and signature are right,
//! after the name of the unusual field.

use crypto::schnorr::SecretKey;
use kernels::{hex, sha256};

/// A row of the table: its event, and texts of such events by field.
pub(crate) type Row = (&'static str, Vec<(&'static str, String)>);

/// The rows of the table.
pub(crate) fn rows() -> Vec<Row> {
    let plain = Fields::default();
    let signed = |field, fields: Fields| vec![(field, fields.signed().0)];
    let upper = |field| (field, plain.signed().with(field, str::to_uppercase));
    let with = |field, value: &str| (field, plain.signed().with(field, |_| value.to_owned()));
    let twice = |field| {
        let text = plain.signed();
        let member = format!("\"{field}\":{}", text.value(field));
        (field, text.0.replacen('{', &format!("{{{member},"), 1))
    };
    let escaped = Fields::of_content("\"a\\u0001\"");
    let verbatim = Fields { hashed_content: "\"a\u{1}\"", ..escaped };
    let names = ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"];
    vec![
        ("control characters, id of the escaped form", signed("id", escaped)),
        ("control characters, id of the verbatim form", signed("id", verbatim)),
        ("an empty tag, `\"tags\":[[]]`", signed("tags", Fields { tags: "[[]]", ..plain })),
        ("a negative `created_at`", signed("created_at", Fields { created_at: "-1", ..plain })),
        (
            "`id`, `pubkey` or `sig` in upper-case digits",
            ["id", "pubkey", "sig"].map(upper).to_vec(),
        ),
        (
            "`1e0`, `1700000000.0` as a number",
            vec![with("kind", "1e0"), with("created_at", "1700000000.0")],
        ),
        ("a `kind` above 65,535", signed("kind", Fields { kind: "65536", ..plain })),
        ("a field twice", names.map(twice).to_vec()),
    ]
}

/// The signed fields of an event as JSON.
#[derive(Clone, Copy)]
struct Fields {
    created_at: &'static str,
    kind: &'static str,
    tags: &'static str,
    content: &'static str,
    /// The content in the hashed text.
    hashed_content: &'static str,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            created_at: "1700000000",
            kind: "1",
            tags: "[[\"t\",\"gm\"]]",
            ..Self::of_content("\"gm\"")
        }
    }
}

/// The text of an event.
struct Text(String);

impl Fields {
    fn of_content(content: &'static str) -> Self {
        Self { created_at: "1700000000", kind: "1", tags: "[]", content, hashed_content: content }
    }

    fn signed(&self) -> Text {
        let Self { created_at, kind, tags, content, hashed_content } = self;
        let key = SecretKey::from_bytes(&[7; 32]).expect("a key");
        let pubkey = hex::encode(&key.public_key().to_bytes());
        let hashed = format!("[0,\"{pubkey}\",{created_at},{kind},{tags},{hashed_content}]");
        let id = sha256::digest(hashed.as_bytes());
        let (sig, id) = (hex::encode(&key.sign(&id, &[0; 32])), hex::encode(&id));
        Text(format!(
            "{{\"id\":\"{id}\",\"pubkey\":\"{pubkey}\",\"created_at\":{created_at},\"kind\":{kind},\"tags\":{tags},\
             \"content\":{content},\"sig\":\"{sig}\"}}"
        ))
    }
}

impl Text {
    /// The value of a field as JSON. No value has the name of a field in it, and those with a comma are arrays.
    fn value(&self, field: &str) -> &str {
        let (_, rest) = self.0.split_once(&format!("\"{field}\":")).expect("a field");
        let end = if rest.starts_with('[') {
            rest.rfind(']').map(|at| at + 1)
        } else {
            rest.find([',', '}'])
        };
        &rest[..end.expect("an end")]
    }

    /// The text with another value of a field.
    fn with(&self, field: &str, change: impl Fn(&str) -> String) -> String {
        let value = self.value(field);
        let member = |value: &str| format!("\"{field}\":{value}");
        self.0.replacen(&member(value), &member(&change(value)), 1)
    }
}
