//! The function `verify_account`: the repository of an account, fetched from its server and proved.

use std::num::NonZeroUsize;

use atproto::syntax::{AtUri, Did};
use crypto::PublicKey;
use mapping::MappedFile;
use net::hosts::parse_host_url;
use net::http::{HttpFault, Limits, Url};
use net::identity::Account;
use net::xrpc::{Client, FetchError, XrpcError, XrpcFault};
use pyo3::prelude::*;
use verify::identity::signing_key;
use verify::repository::Options;

use crate::arguments::{account, boolean, bounded_seconds, number, value, wrong_value};
use crate::errors::Class;
use crate::network::{NetworkOptions, identity_error, interrupted, run_until};
use crate::repo::Repo;
use crate::resolve::{Identity, find};
use crate::source::Source;

/// Prove the repository of an account end to end, as `wireproof verify HANDLE` does: the handle, the DID, its document, and the
/// repository that the server of the account sends, under the key in the document.
///
/// A handle must lead to a DID whose document claims the handle. The download goes to a temporary file without a name, which is
/// mapped while the `Repo` lives. A host has 5 seconds and `max_silent_seconds` to begin its answer. Other Python threads run
/// meanwhile; Ctrl-C ends the lookup and the download.
///
/// Args:
///     account: a handle, such as `atproto.com`, a DID, the `at://` URI of an account, or the URL of its profile.
///     host: name or URL of a mirror or relay to download from. The proof is the same. Default: the account's own server.
///     strict_records: refuse a record that is signed and not valid, instead of counting it in `invalid_records`.
///     threads: number of threads that hash a large archive.
///     max_bytes: maximum size of the repository in bytes. Default: 512 MiB.
///     max_seconds: maximum time of the download in seconds, at most 86,400. Default: 300.
///     max_silent_seconds: maximum time in seconds for which the host may send nothing, at most 3,600. Default: 30.
///     min_rate: minimum rate of the download in bytes a second in its first ten seconds; twice as much in the next ten, and so
///         on. Default: 4,096.
///     plc: URL of the did:plc directory, which is trusted for the keys of its accounts. Default: https://plc.directory.
///     development: connect to this machine only, over plain HTTP too; names under `.test` are on this machine.
///     development_port: port that serves handles under `.test`; implies `development`.
///
/// Returns:
///     The proved repository, as of `verify_repo`. Its `identity` is the account.
///
/// Raises:
///     TypeError: if an argument has another type.
///     ValueError: if `account` names no account, or an option has a value that is not allowed.
///     IdentityError: if there is no such account, it does not claim the handle, or its document has no key or no server.
///     NetworkError: if the directory, the DNS or the host cannot be reached, or the host does not send the repository within the
///         limits.
///     CarError: if the archive is malformed, or a block has another hash.
///     Rejection: if the signature, the tree or the account is another than expected.
///     OSError: if the temporary file cannot be written.
///
/// Example:
///     >>> import wireproof
///     >>> wireproof.verify_account("alice")
///     Traceback (most recent call last):
///     ...
///     ValueError: argument 'account': alice: neither a DID nor a handle; a handle has a domain: did you mean alice.bsky.social?
///
/// ```python
/// repo = wireproof.verify_account("atproto.com")
/// print(repo.identity.handle, repo.did, repo.rev, len(repo))
/// ```
#[pyfunction]
#[pyo3(signature = (
    account, *, host = None, strict_records = None, threads = None, max_bytes = None, max_seconds = None,
    max_silent_seconds = None, min_rate = None, plc = None, development = None, development_port = None,
))]
#[pyo3(
    text_signature = "(account, *, host=None, strict_records=False, threads=1, max_bytes=536870912, max_seconds=300.0, max_silent_seconds=30.0, min_rate=4096, plc=None, development=False, development_port=None)"
)]
#[expect(clippy::too_many_arguments, reason = "the arguments of the function in Python")]
pub(crate) fn verify_account(
    py: Python<'_>,
    account: &Bound<'_, PyAny>,
    host: Option<&Bound<'_, PyAny>>,
    strict_records: Option<&Bound<'_, PyAny>>,
    threads: Option<&Bound<'_, PyAny>>,
    max_bytes: Option<&Bound<'_, PyAny>>,
    max_seconds: Option<&Bound<'_, PyAny>>,
    max_silent_seconds: Option<&Bound<'_, PyAny>>,
    min_rate: Option<&Bound<'_, PyAny>>,
    plc: Option<&Bound<'_, PyAny>>,
    development: Option<&Bound<'_, PyAny>>,
    development_port: Option<&Bound<'_, PyAny>>,
) -> PyResult<Repo> {
    let limits =
        LimitArguments { max_bytes, max_seconds, max_silent_seconds, min_rate }.limits()?;
    let download = Download::of_arguments(account, host, plc, development, development_port)?;
    let mut options = Options::default();
    if let Some(strict_records) = strict_records {
        options.strict_records = boolean("strict_records", strict_records)?;
    }
    if let Some(threads) = threads {
        let count = usize::try_from(number("threads", 1, threads)?)?;
        options.threads = NonZeroUsize::new(count).unwrap_or(options.threads);
    }
    let (identity, key, archive) = py.detach(|| {
        download.run(async |xrpc, host, did| {
            let mut file = tempfile::tempfile()?;
            xrpc.fetch_repo(host, did, &mut file, &limits).await.map_err(download_error)?;
            Ok(MappedFile::of(&file)?)
        })
    })?;
    let did = identity.did().to_owned();
    let identity = Some(Py::new(py, identity)?);
    Repo::prove(py, Source::File(archive), Some(&did), key, &options, identity)
}

/// The limits of the download, as they were given.
pub(crate) struct LimitArguments<'a, 'py> {
    pub(crate) max_bytes: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_seconds: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_silent_seconds: Option<&'a Bound<'py, PyAny>>,
    pub(crate) min_rate: Option<&'a Bound<'py, PyAny>>,
}

impl LimitArguments<'_, '_> {
    pub(crate) fn limits(&self) -> PyResult<Limits> {
        let mut limits = Limits::REPOSITORY;
        if let Some(bytes) = self.max_bytes {
            limits.max_bytes = number("max_bytes", 1, bytes)?;
        }
        if let Some(time) = self.max_seconds {
            limits.max_time = bounded_seconds("max_seconds", MAX_SECONDS, time)?;
        }
        if let Some(time) = self.max_silent_seconds {
            limits.idle_timeout = bounded_seconds("max_silent_seconds", MAX_SILENT_SECONDS, time)?;
        }
        if let Some(rate) = self.min_rate {
            limits.min_bytes_per_s = number("min_rate", 0, rate)?;
        }
        Ok(limits)
    }
}

/// The handle or the DID that an argument names.
fn account_of(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let text: String = value("account", "str", object)?;
    match AtUri::parse(&text) {
        Ok(uri) if uri.collection().is_some() => {
            let (who, path) = (uri.authority(), text.splitn(4, '/').nth(3).unwrap_or_default());
            let why = format!(
                "'{text}' names more than an account: verify '{who}', then ask the result for '{path}'"
            );
            Err(wrong_value("account", why))
        }
        _ => account("account", &text),
    }
}

fn url_of(host: &Bound<'_, PyAny>) -> PyResult<Url> {
    let text: String = value("host", "str", host)?;
    parse_host_url(&text).map_err(|error| wrong_value("host", error))
}

/// A download from the server of an account.
pub(crate) struct Download {
    name: String,
    network: NetworkOptions,
    /// The host, if it is not the account's own server.
    host: Option<Url>,
}

impl Download {
    pub(crate) fn of_arguments(
        account: &Bound<'_, PyAny>,
        host: Option<&Bound<'_, PyAny>>,
        plc: Option<&Bound<'_, PyAny>>,
        development: Option<&Bound<'_, PyAny>>,
        development_port: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let name = account_of(account)?;
        let network = NetworkOptions::of_arguments(plc, development, development_port)?;
        Ok(Self { name, network, host: host.map(url_of).transpose()? })
    }

    /// Looks the account up and downloads with `fetch`, which is not proved yet. Ctrl-C ends both.
    pub(crate) fn run<T>(
        &self,
        fetch: impl AsyncFnOnce(&Client, &Url, Did<'_>) -> PyResult<T>,
    ) -> PyResult<(Identity, PublicKey, T)> {
        let network = self.network.open(self.host.as_slice())?;
        let download = async {
            let found = find(&network.resolver, &self.name).await;
            let found = found.map_err(|error| Python::attach(|py| identity_error(py, &error)))?;
            let account = &*found.account;
            let key = key_of(account)?;
            let own =
                || account.host.as_ref().ok_or_else(|| unusable(account, "names no server (PDS)"));
            let host = self.host.as_ref().map_or_else(own, Ok)?;
            let fetched = fetch(&network.xrpc, host, account.did()).await?;
            Ok((Identity::new(&found), key, fetched))
        };
        run_until(download, interrupted())?
    }
}

fn key_of(account: &Account) -> PyResult<PublicKey> {
    match signing_key(&account.document) {
        Ok(Some(key)) => Ok(key),
        Ok(None) => Err(unusable(account, "has no signing key")),
        Err(error) => Err(unusable(account, &format!("has a wrong signing key: {error}"))),
    }
}

/// `IdentityError` of an account whose document has no key or no server.
fn unusable(account: &Account, why: &str) -> PyErr {
    let message = format!("{}: the DID document {why}", account.did());
    Python::attach(|py| Class::Identity.error(py, message, "identity/document", None))
}

/// `NetworkError` with the option that changes the exceeded limit, or the `OSError` of the temporary file.
pub(crate) fn download_error(error: FetchError) -> PyErr {
    match error {
        FetchError::Local(error) => error.into(),
        FetchError::Remote(error) => {
            let message = match limit_of(&error) {
                Some(option) => format!("{error} (the limit of {option})"),
                None => error.to_string(),
            };
            Python::attach(|py| Class::Network.error(py, message, "network/repository", None))
        }
    }
}

/// The option whose limit was exceeded.
fn limit_of(error: &XrpcError) -> Option<&'static str> {
    match &error.fault {
        XrpcFault::Http(HttpFault::TooLarge(_)) => Some("max_bytes"),
        XrpcFault::Http(HttpFault::Timeout(_)) => Some("max_seconds"),
        XrpcFault::Http(HttpFault::Idle(_)) => Some("max_silent_seconds"),
        XrpcFault::Http(HttpFault::TooSlow(_)) => Some("min_rate"),
        _ => None,
    }
}

/// Largest values of the options, equal to the limits of the command.
const MAX_SECONDS: u64 = 86_400;
const MAX_SILENT_SECONDS: u64 = 3_600;
