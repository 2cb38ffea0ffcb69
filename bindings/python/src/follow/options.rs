//! The options of `follow`.

use std::path::PathBuf;
use std::time::Duration;

use atproto::event::Values;
use atproto::syntax::CollectionPatternBuf;
use follower::Start;
use net::hosts::parse_host_url;
use net::http::Url;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use verify::sync::Policy;

use crate::arguments::{account, boolean, number, path, seconds, start, texts, wrong_value};
use crate::judge::set_option;
use crate::network::NetworkOptions;

/// The options of a run.
#[derive(Clone, Debug)]
pub(crate) struct FollowOptions {
    pub(crate) hosts: Vec<Url>,
    /// The state file.
    pub(crate) state: Option<PathBuf>,
    /// Selected collections; empty for all.
    pub(crate) collections: Vec<CollectionPatternBuf>,
    /// DIDs and handles; `None` for all accounts.
    pub(crate) accounts: Option<Vec<String>>,
    /// Where to start with a host that has no stored cursor.
    pub(crate) start: Start,
    pub(crate) network: NetworkOptions,
    /// Maximum number of events that wait for the program.
    pub(crate) queue: usize,
    /// Maximum number of events that are received and not acknowledged.
    pub(crate) in_flight: usize,
    /// Number of verifying threads; `None` for one per core.
    pub(crate) workers: Option<usize>,
    pub(crate) resync: bool,
    /// Whether an event is acknowledged when the next one is asked for.
    pub(crate) auto_ack: bool,
    pub(crate) stop_timeout: Duration,
    pub(crate) policy: Policy,
}

impl FollowOptions {
    /// Reads the arguments; `None` of an option is its default.
    pub(crate) fn new(hosts: &Bound<'_, PyAny>, given: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut policy = Policy::default();
        policy.values = Values::ValidateOnly;
        let mut options = Self {
            hosts: urls(hosts)?,
            state: None,
            collections: Vec::new(),
            accounts: None,
            start: Start::Live,
            network: NetworkOptions::default(),
            queue: 1_000,
            in_flight: 32 << 10,
            workers: None,
            resync: false,
            auto_ack: true,
            stop_timeout: Duration::from_secs(10),
            policy,
        };
        let (mut network, mut auto_ack) = ((None, None, None), None);
        for (name, option) in given.iter().filter(|(_, option)| !option.is_none()) {
            let name: String = name.extract()?;
            let size = |min| Ok::<_, PyErr>(usize::try_from(number(&name, min, &option)?)?);
            match &*name {
                "state" => options.state = Some(path(&name, &option)?),
                "collections" => options.collections = collections(&option)?,
                "dids" => options.accounts = Some(accounts(&option)?),
                "cursor" => options.start = start(&name, &option)?,
                "plc" => network.0 = Some(option),
                "development" => network.1 = Some(option),
                "development_port" => network.2 = Some(option),
                "queue" => options.queue = size(1)?,
                "in_flight" => options.in_flight = size(1)?,
                "workers" => options.workers = Some(size(1)?),
                "resync" => options.resync = boolean(&name, &option)?,
                "auto_ack" => auto_ack = Some(boolean(&name, &option)?),
                "stop_seconds" => options.stop_timeout = seconds(&name, &option)?,
                _ => set_option(&mut options.policy, &name, &option)?,
            }
        }
        let (plc, development, port) = network;
        options.network =
            NetworkOptions::of_arguments(plc.as_ref(), development.as_ref(), port.as_ref())?;
        // Without a state no cursor is kept.
        options.auto_ack = auto_ack.unwrap_or(options.state.is_none());
        Ok(options)
    }
}

fn urls(hosts: &Bound<'_, PyAny>) -> PyResult<Vec<Url>> {
    let hosts = texts("hosts", hosts)?;
    if hosts.is_empty() {
        return Err(wrong_value("hosts", "expected at least one"));
    }
    let url = |host: &String| parse_host_url(host).map_err(|error| wrong_value("hosts", error));
    hosts.iter().map(url).collect()
}

fn collections(option: &Bound<'_, PyAny>) -> PyResult<Vec<CollectionPatternBuf>> {
    let selected = |text: String| {
        text.parse().map_err(|error| wrong_value("collections", format!("'{text}': {error}")))
    };
    texts("collections", option)?.into_iter().map(selected).collect()
}

fn accounts(option: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    texts("dids", option)?.iter().map(|text| account("dids", text)).collect()
}
