//! DID documents: which handle does an account claim, which key signs for it, and where is it hosted?
//!
//! | asked for | where it stands |
//! |---|---|
//! | DID | `id` |
//! | handle | the first of `alsoKnownAs` that is `at://` and a handle |
//! | signing key | the first of `verificationMethod` with the id `#atproto`, controlled by the DID itself |
//! | host | the first of `service` with the id `#atproto_pds` and the type `AtprotoPersonalDataServer` |
//!
//! An id may have the DID before its `#`. What is of another shape or for another purpose is passed by;
//! but a document that says one of these things twice, at its top level, is refused: readers would
//! differ.
//!
//! The handle is a claim until it resolves to the DID, and the key is text here: whether it is one is
//! for those to say who know curves.

mod endpoint;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::syntax::{Did, DidBuf, Handle, HandleBuf};

pub(crate) use endpoint::is_host;

/// What the AT Protocol reads from a DID document.
///
/// ```
/// use wireproof_atproto::did_document::{DidDocument, Options};
/// let json = br##"{
///     "id": "did:web:example.com",
///     "alsoKnownAs": ["at://Alice.example.com"],
///     "verificationMethod": [{
///         "id": "#atproto", "type": "Multikey", "controller": "did:web:example.com",
///         "publicKeyMultibase": "zDnaembgSGUhZULN2Caob4HLJPaxBh92N7rtH21TErzqf8HQo"
///     }]
/// }"##;
/// let document = DidDocument::parse(json, &Options::default())?;
/// assert_eq!(document.handle().unwrap(), "Alice.example.com");
/// assert_eq!(document.signing_key().unwrap().kind, "Multikey");
/// assert_eq!(document.host(), None);
/// # Ok::<(), wireproof_atproto::did_document::DidDocumentError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DidDocument {
    did: DidBuf,
    handle: Option<HandleBuf>,
    signing_key: Option<SigningKey>,
    host: Option<Box<str>>,
}

/// The key of a verification method, as it is spelled there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SigningKey {
    /// The method's type: `Multikey`, `EcdsaSecp256k1VerificationKey2019` or
    /// `EcdsaSecp256r1VerificationKey2019`.
    pub kind: String,
    /// The text of `publicKeyMultibase`.
    pub multibase: String,
}

/// Limits of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most bytes that are read. 256 KiB.
    pub max_bytes: usize,
    /// Whether `http://` and `localhost`, `127.0.0.1` or a name under `.test` is a host too, as on
    /// the machine of somebody who tries things out. No.
    pub allow_development_hosts: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_bytes: 256 << 10, allow_development_hosts: false }
    }
}

/// Why a text is no DID document, or not the one that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DidDocumentError {
    /// More bytes than the limit.
    #[error("a DID document of {0} bytes is beyond the limit")]
    TooLong(usize),
    /// Not JSON, or not an object with one `id` that is text, one `alsoKnownAs` and so on.
    #[error("not the JSON of a DID document, at line {line}, column {column}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// `id` is not a DID.
    #[error("the `id` of the document is not a DID")]
    Id,
    /// `id` is another DID than the one that the document should be of.
    #[error("the document is of another DID")]
    OtherDid,
}

impl DidDocument {
    /// Reads a document.
    ///
    /// # Errors
    /// If it is too long, no JSON, or of no DID. What else is wrong with it makes a part absent.
    pub fn parse(json: &[u8], options: &Options) -> Result<Self, DidDocumentError> {
        if json.len() > options.max_bytes {
            return Err(DidDocumentError::TooLong(json.len()));
        }
        let fields: Fields = serde_json::from_slice(json).map_err(|error| {
            DidDocumentError::Json { line: error.line(), column: error.column() }
        })?;
        let did: DidBuf = fields.id.parse().map_err(|_| DidDocumentError::Id)?;
        Ok(Self {
            handle: first_handle(fields.also_known_as.items()).map(Handle::to_buf),
            signing_key: signing_key(did.as_did(), fields.verification_method),
            host: host(did.as_did(), fields.service, options),
            did,
        })
    }

    /// Reads the document of `did`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), or if the document is of another DID.
    pub fn parse_for(
        did: Did<'_>,
        json: &[u8],
        options: &Options,
    ) -> Result<Self, DidDocumentError> {
        let document = Self::parse(json, options)?;
        if document.did() != did {
            return Err(DidDocumentError::OtherDid);
        }
        Ok(document)
    }

    /// The DID.
    pub fn did(&self) -> Did<'_> {
        self.did.as_did()
    }

    /// The handle that the account claims, as it is spelled.
    pub fn handle(&self) -> Option<Handle<'_>> {
        self.handle.as_ref().map(HandleBuf::as_handle)
    }

    /// The key that signs the account's repository. Without one, the document is of no account.
    pub fn signing_key(&self) -> Option<&SigningKey> {
        self.signing_key.as_ref()
    }

    /// Where the account is hosted: `https://`, a name and perhaps a port; or what
    /// [`Options::allow_development_hosts`] allows.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }
}

/// The first handle among names of which those of handles start with `at://`.
pub(crate) fn first_handle<'a>(mut names: impl Iterator<Item = &'a String>) -> Option<Handle<'a>> {
    names.find_map(|name| Handle::parse(name.strip_prefix("at://")?).ok())
}

/// The first key for repositories that the DID has itself decides, whatever follows.
fn signing_key(did: Did<'_>, methods: Loose<Vec<Loose<Method>>>) -> Option<SigningKey> {
    let is_ours = |method: &Method| is_id(&method.id, did, "#atproto") && did == *method.controller;
    let method = methods.into_items().find(is_ours)?;
    KEY_TYPES
        .contains(&&*method.kind)
        .then_some(SigningKey { kind: method.kind, multibase: method.public_key_multibase })
}

fn host(did: Did<'_>, services: Loose<Vec<Loose<Service>>>, options: &Options) -> Option<Box<str>> {
    let is_host_entry =
        |service: &Service| is_id(&service.id, did, "#atproto_pds") && service.kind == HOST_TYPE;
    let endpoint = services.into_items().find(is_host_entry)?.service_endpoint;
    let is_development =
        || options.allow_development_hosts && endpoint::is_development_host(&endpoint);
    (is_host(&endpoint) || is_development()).then(|| endpoint.into())
}

/// Whether `id` is the fragment, alone or behind the DID.
fn is_id(id: &str, did: Did<'_>, fragment: &str) -> bool {
    id.strip_suffix(fragment).is_some_and(|base| base.is_empty() || did == base)
}

/// The type of the service that hosts an account.
pub(crate) const HOST_TYPE: &str = "AtprotoPersonalDataServer";

const KEY_TYPES: [&str; 3] =
    ["Multikey", "EcdsaSecp256k1VerificationKey2019", "EcdsaSecp256r1VerificationKey2019"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    id: String,
    #[serde(default)]
    also_known_as: Loose<Vec<Loose<String>>>,
    #[serde(default)]
    verification_method: Loose<Vec<Loose<Method>>>,
    #[serde(default)]
    service: Loose<Vec<Loose<Service>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Method {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    controller: String,
    public_key_multibase: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Service {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    service_endpoint: String,
}

/// A value of the shape that we read, or any other.
#[derive(Deserialize)]
#[serde(untagged)]
enum Loose<T> {
    Read(T),
    Other(IgnoredAny),
}

impl<T> Loose<T> {
    fn into_read(self) -> Option<T> {
        if let Self::Read(read) = self { Some(read) } else { None }
    }

    fn as_read(&self) -> Option<&T> {
        if let Self::Read(read) = self { Some(read) } else { None }
    }
}

impl<T> Default for Loose<T> {
    fn default() -> Self {
        Self::Other(IgnoredAny)
    }
}

impl<T> Loose<Vec<Loose<T>>> {
    fn items(&self) -> impl Iterator<Item = &T> {
        self.as_read().into_iter().flatten().filter_map(Loose::as_read)
    }

    fn into_items(self) -> impl Iterator<Item = T> {
        self.into_read().into_iter().flatten().filter_map(Loose::into_read)
    }
}
