//! Events of NIP-01: content, id and signature.
//!
//! The id is the SHA-256 of `[0,pubkey,created_at,kind,tags,content]` as JSON without spaces, in which
//! seven characters are escaped as NIP-01 defines, and other control characters as the clients in use do.

use k256::schnorr::SigningKey;
use k256::schnorr::signature::hazmat::PrehashSigner;
use kernels::hex;
use kernels::sha256::{self, Digest};

use crate::random::Random;

/// A signed event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedEvent {
    /// The id: the SHA-256 of the serialized event.
    pub id: Digest,
    /// The author's x-only public key.
    pub pubkey: [u8; 32],
    /// The fields that the author writes.
    pub unsigned: UnsignedEvent,
    /// The BIP-340 signature over the id.
    pub sig: [u8; 64],
}

/// The fields of an event that its author writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsignedEvent {
    /// Seconds since 1970.
    pub created_at: u64,
    /// The kind.
    pub kind: u16,
    /// The tags: lists of a name and its values.
    pub tags: Vec<Vec<String>>,
    /// The content.
    pub content: String,
}

impl SignedEvent {
    /// The event as a JSON object without spaces, on one line.
    pub fn to_json(&self) -> String {
        let UnsignedEvent { created_at, kind, tags, content } = &self.unsigned;
        let [id, pubkey, sig] =
            [hex::encode(&self.id), hex::encode(&self.pubkey), hex::encode(&self.sig)];
        let (tags, content) = (tags_to_json(tags), to_json(content));
        format!(
            r#"{{"id":"{id}","pubkey":"{pubkey}","created_at":{created_at},"kind":{kind},"tags":{tags},"content":{content},"sig":"{sig}"}}"#
        )
    }
}

impl UnsignedEvent {
    /// The id of the event by the owner of `pubkey`.
    fn id(&self, pubkey: &[u8; 32]) -> Digest {
        let Self { created_at, kind, tags, content } = self;
        let pubkey = hex::encode(pubkey);
        let tags = tags_to_json(tags);
        let content = to_json(content);
        let message = format!(r#"[0,"{pubkey}",{created_at},{kind},{tags},{content}]"#);
        sha256::digest(message.as_bytes())
    }
}

fn tags_to_json(tags: &[Vec<String>]) -> String {
    list(tags.iter().map(|tag| list(tag.iter().map(|value| to_json(value)))))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// `text` in quotes, with the seven escapes of NIP-01, and `\u00XX` for other control characters.
pub(crate) fn to_json(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for character in text.chars() {
        match character {
            '\n' => json.push_str("\\n"),
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            control @ ..'\u{20}' => json.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => json.push(other),
        }
    }
    json.push('"');
    json
}

/// An author and the key of its events.
#[derive(Clone, Debug)]
pub struct Author {
    key: SigningKey,
    pubkey: [u8; 32],
}

impl Author {
    /// Draws an author.
    pub fn generate(random: &mut Random) -> Self {
        // One draw in 2¹²⁷ is out of range.
        loop {
            if let Ok(key) = SigningKey::from_slice(&random.bytes32()) {
                let pubkey = key.verifying_key().to_bytes().into();
                return Self { key, pubkey };
            }
        }
    }

    /// The x-only public key.
    pub fn pubkey(&self) -> [u8; 32] {
        self.pubkey
    }

    /// Signs an event, without auxiliary randomness: an author and an event have one signature.
    ///
    /// # Panics
    /// If the nonce is 0, which has a negligible probability.
    pub fn sign(&self, unsigned: UnsignedEvent) -> SignedEvent {
        let (pubkey, id) = (self.pubkey, unsigned.id(&self.pubkey));
        let signature = self.key.sign_prehash(&id).expect("a nonce that is not 0");
        SignedEvent { id, pubkey, unsigned, sig: signature.to_bytes() }
    }
}
