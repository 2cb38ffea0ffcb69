//! The network clients of a function, and the runtime that they work on.

use std::sync::Arc;
use std::time::Duration;

use net::dns::{DnsResolver, LoopbackDns, SystemDns};
use net::egress::{AllowedPorts, EgressPolicy};
use net::http::Url;
use net::identity::{self, IdentityError, IdentityFault, Resolver};
use net::{http, xrpc};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

use crate::arguments::{boolean, number, value, wrong_value};
use crate::errors::Class;

/// The directory to ask, and where connections may go.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkOptions {
    /// The did:plc directory; `None` for the default one.
    plc: Option<Url>,
    /// Whether to connect to this machine only, over plain HTTP too.
    development: bool,
    /// The port that serves handles under `.test`.
    development_port: Option<u16>,
}

impl NetworkOptions {
    /// The options of these arguments.
    pub(crate) fn of_arguments(
        plc: Option<&Bound<'_, PyAny>>,
        development: Option<&Bound<'_, PyAny>>,
        development_port: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let url = |plc| {
            let plc: String = value("plc", "str", plc)?;
            plc.parse().map_err(|error| wrong_value("plc", error))
        };
        let port = |port| {
            let number = number("development_port", 1, port)?;
            u16::try_from(number).map_err(|_| wrong_value("development_port", "not a port"))
        };
        let development = development.map(|is| boolean("development", is)).transpose()?;
        let development_port = development_port.map(port).transpose()?;
        Ok(Self {
            plc: plc.map(url).transpose()?,
            development: development.unwrap_or(false) || development_port.is_some(),
            development_port,
        })
    }

    /// Creates the clients. The ports of `named`, which the caller named, are allowed on their hosts.
    pub(crate) fn open(&self, named: &[Url]) -> PyResult<Network> {
        let failed = |error: &dyn std::fmt::Display| PyOSError::new_err(error.to_string());
        let (egress, dns): (_, Arc<dyn DnsResolver>) = if self.development {
            (EgressPolicy::Loopback, Arc::new(LoopbackDns))
        } else {
            let dns = SystemDns::new().map_err(|error| failed(&error))?;
            (EgressPolicy::Public, Arc::new(dns))
        };
        let ports = named.iter().chain(&self.plc);
        let ports = ports.fold(AllowedPorts::default(), AllowedPorts::on_host_of);
        let http = http::Client::with_ports(egress, ports, dns.clone());
        let http = http.map_err(|error| failed(&error))?;
        let mut options = identity::Options::default();
        options.directory = self.plc.clone().unwrap_or(options.directory);
        options.development_port = self.development_port;
        let directory = options.directory.clone();
        let resolver = Resolver::new(http.clone(), dns, options);
        Ok(Network { xrpc: xrpc::Client::new(http.clone()), http, resolver, directory })
    }
}

/// Network clients.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) http: http::Client,
    pub(crate) resolver: Resolver,
    pub(crate) xrpc: xrpc::Client,
    /// The did:plc directory.
    pub(crate) directory: Url,
}

/// A runtime on the calling thread.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Runs `work` on the calling thread until it is done, or `end` has an exception.
pub(crate) fn run_until<T>(
    work: impl Future<Output = T>,
    end: impl Future<Output = PyErr>,
) -> PyResult<T> {
    let runtime = runtime().map_err(|error| PyOSError::new_err(error.to_string()))?;
    let done = runtime.block_on(async {
        tokio::select! {
            done = work => Ok(done),
            error = end => Err(error),
        }
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    done
}

/// Ends with the exception of a signal handler, such as `KeyboardInterrupt`.
pub(crate) async fn interrupted() -> PyErr {
    loop {
        tokio::time::sleep(SIGNAL_INTERVAL).await;
        if let Err(error) = Python::attach(|py| py.check_signals()) {
            return error;
        }
    }
}

/// `NetworkError` if a later attempt may succeed, and `IdentityError` otherwise.
pub(crate) fn identity_error(py: Python<'_>, error: &IdentityError) -> PyErr {
    if error.is_outage() {
        return Class::Network.error(py, error.to_string(), "identity/unavailable", None);
    }
    let code = match &error.fault {
        IdentityFault::Method | IdentityFault::Identifier | IdentityFault::NotNormal => {
            "identity/name"
        }
        IdentityFault::Reserved => "identity/name",
        IdentityFault::NotFound | IdentityFault::NotADid => "identity/not-found",
        IdentityFault::Deleted => "identity/deleted",
        IdentityFault::Document(_) => "identity/document",
        IdentityFault::NoHandle | IdentityFault::OtherHandle | IdentityFault::OtherDid(_) => {
            "identity/handle"
        }
        _ => "identity/answer",
    };
    Class::Identity.error(py, error.to_string(), code, None)
}

/// Time between two checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum time for which the end of a runtime waits for its threads.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
