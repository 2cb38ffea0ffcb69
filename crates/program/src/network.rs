//! The network clients of a command, and the arguments that configure them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};
use net::dns::{DnsResolver, LoopbackDns, SystemDns};
use net::egress::{AllowedPorts, EgressPolicy};
use net::http::{Contact, Limits, Url};
use net::{http, identity, xrpc};
use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;
use crate::files;
use crate::help::EXPERT;
use crate::progress::ProgressLine;

/// The directory to ask, and where connections may go.
#[derive(Clone, Debug, Default, Args)]
pub struct NetworkArgs {
    /// The did:plc directory; `None` for the default one.
    #[arg(long, value_name = "URL", env = "WIREPROOF_PLC", help_heading = NETWORK)]
    #[arg(help = "The did:plc directory [default: https://plc.directory]")]
    pub plc: Option<Url>,
    /// Allow connections to this port of public hosts, in addition to 443 and the ports of URLs in options.
    #[arg(long, value_name = "PORT", env = "WIREPROOF_ALLOW_PORT", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u16).range(1..), help_heading = NETWORK)]
    allow_port: Vec<u16>,
    /// Connect to this machine only, with or without TLS. Names under .test and .localhost resolve to this machine; the
    /// DNS is not used.
    #[arg(long, env = "WIREPROOF_DEVELOPMENT", value_parser = FalseyValueParser::new())]
    #[arg(help_heading = NETWORK)]
    pub development: bool,
    /// The port that serves handles under .test; implies --development.
    #[arg(long, value_name = "PORT", env = "WIREPROOF_DEVELOPMENT_PORT", help_heading = EXPERT)]
    pub development_port: Option<u16>,
    /// Trust only the certificate authorities in this PEM file, not the system's; implies --development.
    #[arg(long, value_name = "FILE.pem", env = "WIREPROOF_DEVELOPMENT_TRUST_ONLY")]
    #[arg(value_hint = ValueHint::FilePath, help_heading = EXPERT)]
    development_trust_only: Option<PathBuf>,
}

/// A contact for the operators of hosts.
#[derive(Clone, Debug, Default, Args)]
pub struct ContactArgs {
    /// Your e-mail address or a URL, for the operators of the hosts: part of the User-Agent of every request. Required,
    /// except on this machine.
    #[arg(long, value_name = "EMAIL|URL", env = "WIREPROOF_CONTACT", help_heading = NETWORK)]
    pub contact: Option<Contact>,
}

impl ContactArgs {
    /// The client with the contact, which a client of public hosts must have.
    fn add_to(&self, http: http::Client) -> Result<http::Client, Failure> {
        match &self.contact {
            Some(contact) => Ok(http.with_contact(contact.clone())),
            None if http.egress_policy() == EgressPolicy::Loopback => Ok(http),
            None => Err(Failure::Usage(
                "--contact is required: an e-mail address or a URL at which the operators of the hosts reach you"
                    .to_owned(),
            )),
        }
    }
}

/// Limits of downloads.
#[derive(Clone, Copy, Debug, Args)]
pub struct DownloadArgs {
    /// Maximum size of a repository in bytes [default: 512 MiB].
    #[arg(long, value_name = "N", env = "WIREPROOF_MAX_BYTES", help_heading = NETWORK)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    max_bytes: Option<u64>,
    /// Maximum time of a download in seconds [default: 300].
    #[arg(long, value_name = "N", env = "WIREPROOF_MAX_SECONDS", help_heading = NETWORK)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    max_seconds: Option<u64>,
    /// Maximum silence of a host during a download in seconds [default: 30].
    #[arg(long, value_name = "N", env = "WIREPROOF_MAX_SILENT_SECONDS", help_heading = EXPERT)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3_600))]
    max_silent_seconds: Option<u64>,
    /// Minimum rate of a download in bytes per second in its first ten seconds; twice as much in the next
    /// ten, and so on [default: 4096].
    #[arg(long, value_name = "N", env = "WIREPROOF_MIN_RATE", help_heading = EXPERT)]
    min_rate: Option<u64>,
}

impl DownloadArgs {
    /// The limits.
    pub fn limits(&self) -> Limits {
        let default = Limits::REPOSITORY;
        Limits {
            max_bytes: self.max_bytes.unwrap_or(default.max_bytes),
            max_time: self.max_seconds.map_or(default.max_time, Duration::from_secs),
            idle_timeout: self.max_silent_seconds.map_or(default.idle_timeout, Duration::from_secs),
            min_bytes_per_s: self.min_rate.unwrap_or(default.min_bytes_per_s),
            ..default
        }
    }
}

/// The clients of one command.
pub struct Network {
    /// HTTP, within the egress policy.
    pub http: http::Client,
    /// Handles and DIDs.
    pub resolver: identity::Resolver,
    /// Servers of accounts.
    pub xrpc: xrpc::Client,
    /// The did:plc directory, which is trusted for the keys of its accounts.
    pub directory: Url,
}

impl Network {
    /// Creates the clients, and warns of a directory that is not the default. No connection is made yet.
    /// The ports of `named`, which the operator named, are allowed on their hosts.
    ///
    /// # Errors
    /// If an option is not valid, or the DNS of this system cannot be used.
    pub fn open(args: &NetworkArgs, named: &[Url]) -> Result<Self, Failure> {
        Self::open_with(args, named, identity::Options::default(), Ok)
    }

    /// As [`open`](Self::open), with at most this many identities in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_identities(
        args: &NetworkArgs,
        named: &[Url],
        capacity: usize,
    ) -> Result<Self, Failure> {
        let mut options = identity::Options::default();
        options.capacity = capacity;
        Self::open_with(args, named, options, Ok)
    }

    /// As [`open`](Self::open), with at least this time between two forced lookups of one DID.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_refresh(
        args: &NetworkArgs,
        named: &[Url],
        min_refresh_interval: Duration,
    ) -> Result<Self, Failure> {
        let mut options = identity::Options::default();
        options.min_refresh_interval = min_refresh_interval;
        Self::open_with(args, named, options, Ok)
    }

    /// As [`open`](Self::open), for many requests to public hosts.
    ///
    /// # Errors
    /// As [`open`](Self::open), and if the contact is missing.
    pub fn open_with_contact(
        args: &NetworkArgs,
        contact: &ContactArgs,
        named: &[Url],
    ) -> Result<Self, Failure> {
        Self::open_with(args, named, identity::Options::default(), |http| contact.add_to(http))
    }

    fn open_with(
        args: &NetworkArgs,
        named: &[Url],
        mut options: identity::Options,
        identify: impl FnOnce(http::Client) -> Result<http::Client, Failure>,
    ) -> Result<Self, Failure> {
        let (egress, dns) = egress(args)?;
        let http = identify(client(args, named, egress, &dns)?)?;
        let directory = args.plc.clone().unwrap_or_else(|| options.directory.clone());
        if directory != options.directory {
            warn_of_directory(&directory, &options.directory);
        }
        options.directory = directory.clone();
        options.development_port = args.development_port;
        let resolver = identity::Resolver::new(http.clone(), dns, options);
        Ok(Self { xrpc: xrpc::Client::new(http.clone()), http, resolver, directory })
    }
}

/// The clients of a command and the runtime that they work on, opened when they are first needed. Threads may share it.
pub struct LazyNetwork<'a> {
    args: &'a NetworkArgs,
    named: &'a [Url],
    shows_downloads: bool,
    opened: Mutex<Option<Arc<Online>>>,
}

/// Clients and their runtime.
pub struct Online {
    /// The clients.
    pub network: Network,
    /// The runtime.
    pub runtime: Runtime,
    shows_downloads: bool,
}

impl<'a> LazyNetwork<'a> {
    /// As [`Network::open`], later. One download at a time can show its progress.
    pub fn new(args: &'a NetworkArgs, named: &'a [Url], shows_downloads: bool) -> Self {
        Self { args, named, shows_downloads, opened: Mutex::new(None) }
    }

    /// The clients, which the first call opens.
    ///
    /// # Errors
    /// If an option is not valid, or the DNS of this system cannot be used.
    pub fn open(&self) -> Result<Arc<Online>, Failure> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(online) = &*opened {
            return Ok(online.clone());
        }
        let network = Network::open(self.args, self.named)?;
        let (runtime, shows_downloads) = (runtime()?, self.shows_downloads);
        Ok(opened.insert(Arc::new(Online { network, runtime, shows_downloads })).clone())
    }
}

impl Online {
    /// The line for the progress of a download.
    pub fn progress_line(&self) -> ProgressLine {
        if self.shows_downloads { ProgressLine::new() } else { ProgressLine::silent() }
    }
}

/// Warns that keys come from a directory that is not the default.
fn warn_of_directory(directory: &Url, default: &Url) {
    tracing::warn!(
        target: "wireproof::network",
        "warning: the keys of did:plc accounts come from {directory}, not from {default}: every proof trusts that directory"
    );
}

fn client(
    args: &NetworkArgs,
    named: &[Url],
    egress: EgressPolicy,
    dns: &Arc<dyn DnsResolver>,
) -> Result<http::Client, Failure> {
    let Some(path) = &args.development_trust_only else {
        let ports = args
            .allow_port
            .iter()
            .fold(AllowedPorts::default(), |ports, port| ports.on_all_hosts(*port));
        let ports = named.iter().chain(&args.plc).fold(ports, AllowedPorts::on_host_of);
        return Ok(http::Client::with_ports(egress, ports, Arc::clone(dns))?);
    };
    let client = http::Client::on_loopback_trusting_only(&files::read(path)?, Arc::clone(dns));
    client.map_err(|error| {
        Failure::Usage(format!("--development-trust-only {}: {}", path.display(), error.fault))
    })
}

/// A client for URLs that the operator has written, which may be in a private network: nothing that a stranger names is
/// requested with it. For development it connects to this machine only, as every other client.
///
/// # Errors
/// If an option is not valid, or the DNS of this system cannot be used.
pub fn operator_client(args: &NetworkArgs) -> Result<http::Client, Failure> {
    match egress(args)? {
        (EgressPolicy::Public, dns) => Ok(http::Client::new(EgressPolicy::Unrestricted, dns)?),
        (egress, dns) => client(args, &[], egress, &dns),
    }
}

fn egress(args: &NetworkArgs) -> Result<(EgressPolicy, Arc<dyn DnsResolver>), Failure> {
    let is_development = args.development
        || args.development_port.is_some()
        || args.development_trust_only.is_some();
    if is_development {
        return Ok((EgressPolicy::Loopback, Arc::new(LoopbackDns)));
    }
    match SystemDns::new() {
        Ok(dns) => Ok((EgressPolicy::Public, Arc::new(dns))),
        Err(error) => Err(Failure::Local(format!("the DNS of this system: {error}"))),
    }
}

/// A runtime on the calling thread.
///
/// # Errors
/// If the system gives no sockets.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::Local(format!("the sockets of this system: {error}")))
}

/// The origin of a URL: scheme, host and port, as `host` and `pds` in JSON have it.
pub fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// A rate in requests a second.
///
/// # Errors
/// If it is not a number, or out of range.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (MIN_RATE..=MAX_RATE).contains(rate));
    rate.ok_or_else(|| {
        format!("expected a number of requests a second from {MIN_RATE} to {MAX_RATE}")
    })
}

const MIN_RATE: f64 = 0.01;
const MAX_RATE: f64 = 1000.0;

/// The heading of these arguments in the help.
pub const NETWORK: &str = "Network";
