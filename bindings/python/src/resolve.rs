//! The function `resolve`, and the class `Identity`: the account behind a handle or a DID.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use atproto::syntax::AtIdentifier;
use net::identity::{self, IdentityError, Resolver};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tokio::sync::Notify;

use crate::arguments::{account, value};
use crate::network::{NetworkOptions, identity_error, interrupted, run_until};

/// An account, as its DID document describes it, with its handle checked both ways.
///
/// Immutable, and can be pickled.
///
/// ```python
/// identity = wireproof.resolve("atproto.com")
/// print(identity.did, identity.handle, identity.pds, identity.signing_key)
/// ```
#[pyclass(frozen, eq, hash, module = "wireproof")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    /// The account.
    #[pyo3(get)]
    did: String,
    /// The handle in lower case that leads to the DID and that the document claims, or None.
    #[pyo3(get)]
    handle: Option<String>,
    /// Why there is no handle, or None.
    #[pyo3(get)]
    handle_error: Option<String>,
    /// URL of the server that hosts the account, or None.
    #[pyo3(get)]
    pds: Option<String>,
    /// did:key text of the key that signs the repository, or None.
    #[pyo3(get)]
    signing_key: Option<String>,
    claimed_handle: Option<String>,
    /// Type and text of the key in the document.
    method: Option<(String, String)>,
}

/// The arguments of a pickled identity.
type Fields = (
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<(String, String)>,
);

impl Identity {
    pub(crate) fn did(&self) -> &str {
        &self.did
    }

    pub(crate) fn new(found: &identity::Identity) -> Self {
        let document = &found.account.document;
        Self {
            did: found.did().to_string(),
            handle: found.handle.as_ref().ok().map(ToString::to_string),
            handle_error: found.handle.as_ref().err().map(ToString::to_string),
            pds: document.host().map(str::to_owned),
            signing_key: found.account.key.as_ref().map(|key| key.to_did_key()),
            claimed_handle: document.handle().map(|handle| handle.to_string()),
            method: document.signing_key().map(|key| (key.kind.clone(), key.multibase.clone())),
        }
    }
}

#[pymethods]
impl Identity {
    /// The parts of the DID document that the protocol uses, as a new dict in its form: `id`, `alsoKnownAs`, `verificationMethod`,
    /// `service`. `alsoKnownAs` is a claim.
    #[getter]
    fn document<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (document, did) = (PyDict::new(py), &self.did);
        document.set_item("id", did)?;
        let names = self.claimed_handle.as_ref().map(|handle| format!("at://{handle}"));
        document.set_item("alsoKnownAs", names.into_iter().collect::<Vec<_>>())?;
        let (methods, services) = (PyList::empty(py), PyList::empty(py));
        if let Some((kind, multibase)) = &self.method {
            let method = PyDict::new(py);
            method.set_item("id", format!("{did}#atproto"))?;
            method.set_item("type", kind)?;
            method.set_item("controller", did)?;
            method.set_item("publicKeyMultibase", multibase)?;
            methods.append(method)?;
        }
        if let Some(pds) = &self.pds {
            let service = PyDict::new(py);
            service.set_item("id", "#atproto_pds")?;
            service.set_item("type", "AtprotoPersonalDataServer")?;
            service.set_item("serviceEndpoint", pds)?;
            services.append(service)?;
        }
        document.set_item("verificationMethod", methods)?;
        document.set_item("service", services)?;
        Ok(document)
    }

    fn __repr__(&self) -> String {
        let text = |text: &Option<String>| match text {
            Some(text) => format!("'{text}'"),
            None => "None".to_owned(),
        };
        let [handle, pds, key] = [&self.handle, &self.pds, &self.signing_key].map(text);
        format!("Identity(did='{}', handle={handle}, pds={pds}, signing_key={key})", self.did)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Fields)> {
        let restore = py.import("wireproof._wireproof")?.getattr("_restore_identity")?;
        let Self { did, handle, handle_error, pds, signing_key, claimed_handle, method } =
            self.clone();
        Ok((restore, (did, handle, handle_error, pds, signing_key, claimed_handle, method)))
    }
}

/// Makes an identity of its pickled fields.
#[pyfunction]
pub(crate) fn _restore_identity(
    did: String,
    handle: Option<String>,
    handle_error: Option<String>,
    pds: Option<String>,
    signing_key: Option<String>,
    claimed_handle: Option<String>,
    method: Option<(String, String)>,
) -> Identity {
    Identity { did, handle, handle_error, pds, signing_key, claimed_handle, method }
}

/// Resolve a handle or a DID to its account, and check the handle both ways.
///
/// A handle must lead to a DID whose document claims the handle; otherwise it is refused. An account that is given by its DID
/// is resolved whether or not its handle is right. Nothing is kept for the next call.
///
/// Args:
///     name: a handle, such as `atproto.com`, or a DID.
///     plc: URL of the did:plc directory. Default: https://plc.directory.
///     development: connect to this machine only, over plain HTTP too; names under `.test` are on this machine.
///     development_port: port that serves handles under `.test`; implies `development`.
///
/// Returns:
///     `Identity`.
///
/// Raises:
///     TypeError: if an argument has another type.
///     ValueError: if `name` is neither a handle nor a DID, or `plc` is no URL.
///     IdentityError: if there is no such account, or it does not claim the handle.
///     NetworkError: if the directory, the host or the DNS cannot be reached.
///
/// Example:
///     >>> import wireproof
///     >>> wireproof.resolve("alice")
///     Traceback (most recent call last):
///     ...
///     ValueError: argument 'name': alice: neither a DID nor a handle; a handle has a domain: did you mean alice.bsky.social?
#[pyfunction]
#[pyo3(signature = (name, *, plc = None, development = None, development_port = None))]
#[pyo3(text_signature = "(name, *, plc=None, development=False, development_port=None)")]
pub(crate) fn resolve(
    py: Python<'_>,
    name: &Bound<'_, PyAny>,
    plc: Option<&Bound<'_, PyAny>>,
    development: Option<&Bound<'_, PyAny>>,
    development_port: Option<&Bound<'_, PyAny>>,
) -> PyResult<Identity> {
    let network = NetworkOptions::of_arguments(plc, development, development_port)?;
    let lookup = Lookup::new(name, network)?;
    py.detach(|| lookup.run(interrupted()))
}

/// A lookup of an account.
struct Lookup {
    name: String,
    network: NetworkOptions,
}

impl Lookup {
    fn new(name: &Bound<'_, PyAny>, network: NetworkOptions) -> PyResult<Self> {
        let text: String = value("name", "str", name)?;
        Ok(Self { name: account("name", &text)?, network })
    }

    /// Looks the account up, until `end` does.
    fn run(&self, end: impl Future<Output = PyErr>) -> PyResult<Identity> {
        let network = self.network.open(&[])?;
        match run_until(find(&network.resolver, &self.name), end)? {
            Ok(identity) => Ok(Identity::new(&identity)),
            Err(error) => Err(Python::attach(|py| identity_error(py, &error))),
        }
    }
}

/// The account of a name. A given handle must be its own.
pub(crate) async fn find(
    resolver: &Resolver,
    name: &str,
) -> Result<identity::Identity, IdentityError> {
    let parsed = AtIdentifier::parse(name).ok();
    let handle = parsed.and_then(AtIdentifier::as_handle);
    let did = parsed.and_then(AtIdentifier::as_did);
    match (handle, did) {
        (Some(handle), _) => {
            let found = resolver.identity_of_handle(handle).await?;
            match &found.handle {
                Ok(_) => Ok(found),
                Err(error) => Err(error.clone()),
            }
        }
        (None, Some(did)) => resolver.identity(did).await,
        (None, None) => unreachable!("the name was parsed before"),
    }
}

/// A lookup on a thread of its own, for `resolve_async`.
#[pyclass(frozen)]
pub(crate) struct _Lookup {
    result: Arc<Mutex<Option<PyResult<Identity>>>>,
    cancelled: Arc<Notify>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[pymethods]
impl _Lookup {
    /// Starts the lookup; `done` is called on its thread when it has ended.
    #[new]
    #[pyo3(signature = (done, name, *, plc = None, development = None, development_port = None))]
    fn new(
        done: Py<PyAny>,
        name: &Bound<'_, PyAny>,
        plc: Option<&Bound<'_, PyAny>>,
        development: Option<&Bound<'_, PyAny>>,
        development_port: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let network = NetworkOptions::of_arguments(plc, development, development_port)?;
        let lookup = Lookup::new(name, network)?;
        let (result, cancelled) = (Arc::<Mutex<_>>::default(), Arc::<Notify>::default());
        let (to_result, end) = (result.clone(), cancelled.clone());
        let work = move || {
            let cancelled = async move {
                end.notified().await;
                PyRuntimeError::new_err("the lookup was cancelled")
            };
            let found = lookup.run(cancelled);
            *to_result.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            // It fails if the event loop is closed: then nothing waits for the result.
            Python::try_attach(|py| drop(done.call0(py)));
        };
        let thread = std::thread::Builder::new().name("wireproof-lookup".to_owned()).spawn(work);
        let thread = thread.map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(Self { result, cancelled, thread: Mutex::new(Some(thread)) })
    }

    /// Ends the lookup and its thread.
    fn close(&self, py: Python<'_>) {
        self.cancelled.notify_one();
        py.detach(|| {
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            // A thread that panicked left no result.
            thread.map(JoinHandle::join)
        });
    }

    /// The result, once the lookup has ended.
    fn result(&self) -> PyResult<Identity> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.unwrap_or_else(|| Err(PyRuntimeError::new_err("the lookup has no result")))
    }
}
