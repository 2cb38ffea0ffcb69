//! DID documents: the handle that an account claims, its signing key, and its host.
//!
//! | part | source |
//! |---|---|
//! | DID | `id` |
//! | handle | the first of `alsoKnownAs` that is `at://` and a handle |
//! | signing key | the first of `verificationMethod` with the id `#atproto`, controlled by the DID itself |
//! | host | the first of `service` with the id `#atproto_pds` and the type `AtprotoPersonalDataServer` |
//! | key of labels | as the signing key, with the id `#atproto_label` |
//! | labeler | as the host, with the id `#atproto_labeler` and the type `AtprotoLabeler` |
//!
//! An id may have the DID before its `#`. Entries of another shape or purpose are ignored; but a document
//! that repeats one of these fields at its top level is rejected, because readers would differ.
//!
//! The handle is a claim until it resolves to the DID, and the key is text here, not yet parsed.

#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::syntax::{Did, DidBuf, Handle, HandleBuf};

/// The parts of a DID document that the AT Protocol uses.
///
/// ```
/// use wireproof::atproto::did_document::{DidDocument, Options};
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
/// # Ok::<(), wireproof::atproto::did_document::DidDocumentError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DidDocument {
    did: DidBuf,
    handle: Option<HandleBuf>,
    signing_key: Option<SigningKey>,
    host: Option<Box<str>>,
    label_key: Option<SigningKey>,
    labeler: Option<Box<str>>,
}

/// The key of a verification method, as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SigningKey {
    /// The method's type: `Multikey`, `EcdsaSecp256k1VerificationKey2019` or
    /// `EcdsaSecp256r1VerificationKey2019`.
    pub kind: String,
    /// The text of `publicKeyMultibase`.
    pub multibase: String,
}

/// Options for reading a DID document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Maximum length of a document in bytes. Default: 256 KiB.
    pub max_bytes: usize,
    /// Also accepts `http://` with `localhost`, `127.0.0.1` or a name under `.test` as a host, for
    /// development. Default: false.
    pub allow_development_hosts: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_bytes: 256 << 10, allow_development_hosts: false }
    }
}

/// Why a text is not a DID document, or not the requested one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DidDocumentError {
    /// More bytes than [`Options::max_bytes`]; the length.
    #[error("a DID document of {0} bytes exceeds the limit")]
    TooLong(usize),
    /// Not JSON, or not an object with one `id` that is text, at most one `alsoKnownAs`, and so on.
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
    /// `id` is another DID than the requested one.
    #[error("the document is of another DID")]
    OtherDid,
}

impl DidDocument {
    /// Reads a document.
    ///
    /// # Errors
    /// If it is too long, not JSON, or its `id` is not a DID. Other malformed parts are absent.
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
            signing_key: key(did.as_did(), &fields.verification_method, "#atproto"),
            host: service(did.as_did(), &fields.service, "#atproto_pds", HOST_TYPE, options),
            label_key: key(did.as_did(), &fields.verification_method, "#atproto_label"),
            labeler: service(
                did.as_did(),
                &fields.service,
                "#atproto_labeler",
                LABELER_TYPE,
                options,
            ),
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

    /// The handle that the account claims, as written.
    pub fn handle(&self) -> Option<Handle<'_>> {
        self.handle.as_ref().map(HandleBuf::as_handle)
    }

    /// The key that signs the account's repository. A document without one is not of an account.
    pub fn signing_key(&self) -> Option<&SigningKey> {
        self.signing_key.as_ref()
    }

    /// The host of the account: `https://`, a name and an optional port; or a host that
    /// [`Options::allow_development_hosts`] allows.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// The key that signs the account's labels. A document without one is not of a labeler.
    pub fn label_key(&self) -> Option<&SigningKey> {
        self.label_key.as_ref()
    }

    /// The server that sends the account's labels, in the form of [`host`](Self::host).
    pub fn labeler(&self) -> Option<&str> {
        self.labeler.as_deref()
    }
}

/// The first handle among `names`: after `at://`, a valid handle.
pub(crate) fn first_handle<'a>(mut names: impl Iterator<Item = &'a String>) -> Option<Handle<'a>> {
    names.find_map(|name| Handle::parse(name.strip_prefix("at://")?).ok())
}

/// The key of the first entry with this fragment that the DID itself controls; later entries are ignored.
fn key(
    did: Did<'_>,
    methods: &Lenient<Vec<Lenient<Method>>>,
    fragment: &str,
) -> Option<SigningKey> {
    let is_ours = |method: &&Method| is_id(&method.id, did, fragment) && did == *method.controller;
    let Method { kind, public_key_multibase, .. } = methods.items().find(is_ours)?;
    KEY_TYPES
        .contains(&&**kind)
        .then(|| SigningKey { kind: kind.clone(), multibase: public_key_multibase.clone() })
}

/// The address of the first entry with this fragment and type.
fn service(
    did: Did<'_>,
    services: &Lenient<Vec<Lenient<Service>>>,
    fragment: &str,
    kind: &str,
    options: &Options,
) -> Option<Box<str>> {
    let is_entry = |service: &&Service| is_id(&service.id, did, fragment) && service.kind == kind;
    let endpoint = &services.items().find(is_entry)?.service_endpoint;
    let development = || development_host(endpoint).filter(|_| options.allow_development_hosts);
    host_of(endpoint).or_else(development).map(Box::from)
}

/// Whether `id` is the fragment, alone or after the DID.
fn is_id(id: &str, did: Did<'_>, fragment: &str) -> bool {
    id.strip_suffix(fragment).is_some_and(|base| base.is_empty() || did == base)
}

/// The address of a host in `endpoint`: `https://`, a name, an optional port, and nothing else. A slash after it, the empty
/// path of a URL, is left out.
pub(crate) fn host_of(endpoint: &str) -> Option<&str> {
    let host = without_slash(endpoint);
    host.strip_prefix("https://").and_then(name_of).map(|_| host)
}

/// The address of a development server without TLS in `endpoint`.
fn development_host(endpoint: &str) -> Option<&str> {
    let host = without_slash(endpoint);
    let name = host.strip_prefix("http://").and_then(name_of)?;
    let is_ours = matches!(name, "localhost" | "127.0.0.1") || name.ends_with(".test");
    is_ours.then_some(host)
}

fn without_slash(endpoint: &str) -> &str {
    endpoint.strip_suffix('/').unwrap_or(endpoint)
}

/// The name in an authority with or without a port.
fn name_of(authority: &str) -> Option<&str> {
    match authority.split_once(':') {
        Some((name, port)) => (is_name(name) && is_port(port)).then_some(name),
        None => is_name(authority).then_some(authority),
    }
}

/// Whether `name` is a domain name, or an IPv4 address, whose syntax is a subset.
fn is_name(name: &str) -> bool {
    let is_symbol = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| {
        matches!(label.len(), 1..=63)
            && label.bytes().all(is_symbol)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// The type of the service that hosts an account.
pub(crate) const HOST_TYPE: &str = "AtprotoPersonalDataServer";

/// The type of the service that sends labels.
const LABELER_TYPE: &str = "AtprotoLabeler";

const KEY_TYPES: [&str; 3] =
    ["Multikey", "EcdsaSecp256k1VerificationKey2019", "EcdsaSecp256r1VerificationKey2019"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    id: String,
    #[serde(default)]
    also_known_as: Lenient<Vec<Lenient<String>>>,
    #[serde(default)]
    verification_method: Lenient<Vec<Lenient<Method>>>,
    #[serde(default)]
    service: Lenient<Vec<Lenient<Service>>>,
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

/// A value of the expected shape, or any other.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lenient<T> {
    Read(T),
    Other(IgnoredAny),
}

impl<T> Lenient<T> {
    fn as_read(&self) -> Option<&T> {
        if let Self::Read(read) = self { Some(read) } else { None }
    }
}

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self::Other(IgnoredAny)
    }
}

impl<T> Lenient<Vec<Lenient<T>>> {
    fn items(&self) -> impl Iterator<Item = &T> {
        self.as_read().into_iter().flatten().filter_map(Lenient::as_read)
    }
}
