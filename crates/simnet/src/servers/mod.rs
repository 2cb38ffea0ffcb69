//! A whole network on loopback: a PLC directory, PDSs, relays and Jetstreams, generated from a seed.
//!
//! ```text
//!           WriterThread, Simulation::write_*      commits, signed, with their proofs
//!                    │
//!     accounts ── NetworkState ──> one EventLog a server ──> Streamer a reader ──> FaultInjector ──> socket
//!        │                           own seq, retention       cursor, backlog       faults
//!        └── documents, logs, repositories, records over HTTP
//! ```
//!
//! Accounts are real: their DIDs are hashes of operations that they signed, handles resolve both ways,
//! commits carry their proofs. Writes follow from the seed; ports, the times in events, and later
//! operations in the directory do not. Every [`Fault`] can be injected into every server, with a count of
//! how often it happened, and [`Simulation`] knows the state that a reader must end with.
//!
//! A network of [`RepositorySizes::Realistic`] keeps some hundred bytes an account, so that it has a hundred thousand: an account and its
//! repository are derived from the seed when they are asked for, and kept once the account has changed. The assumptions about the live
//! network are at the choices: the sizes of repositories and their hosts at [`RepositorySizes`] and [`Placement`], the behaviour of
//! hosts at [`HostCondition`].
//!
//! Servers listen on 127.0.0.1 only. Their host name is `localhost`; handles end in `.test`, and every PDS
//! serves the handles of all accounts.
//!
//! ```no_run
//! use wireproof_simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};
//! let sim = Simulation::start(Spec::default())?;
//! sim.faults().enable(Server::Relay(0), Fault::Cut, FaultSchedule::ONCE.with_amount(5_000));
//! sim.write_commits(100);
//! // … follow sim.url(Server::Relay(0)) …
//! assert_eq!(sim.faults().unfired(), []);
//! # Ok::<(), std::io::Error>(())
//! ```

// A build without Jetstreams does not use what only they read.
#![cfg_attr(not(feature = "jetstream"), allow(dead_code))]

mod account_changes;
mod account_index;
mod altered_event;
mod altered_repository;
mod archive_stream;
mod attack;
mod event;
mod event_log;
mod fault;
mod host_condition;
mod hosted_account;
mod http;
#[cfg(feature = "jetstream")]
mod jetstream;
#[cfg(not(feature = "jetstream"))]
#[path = "without_jetstream.rs"]
mod jetstream;
mod listener;
mod network;
mod odd_list;
mod plc;
mod plc_export;
mod plc_stream;
mod population;
mod repository_host;
mod request_limits;
mod simulation;
mod spec;
mod streamer;
mod subscribe_repos;
mod traffic;
mod xrpc;

pub use account_changes::{AccountChange, AccountChanges};
pub use attack::Attack;
pub use event::{EventKind, EventSubject};
pub use event_log::SentEvent;
pub use fault::{Fault, FaultSchedule, Faults, InjectionPoint};
pub use host_condition::HostCondition;
pub use hosted_account::AccountStatus;
#[cfg(feature = "jetstream")]
pub use jetstream::{V1_DICTIONARY_ID, V2_DICTIONARY_ID};
pub use repository_host::{RepositoryHost, SentAnswers};
pub use request_limits::RequestWindow;
pub use simulation::{AccountInfo, ExpectedAccount, Simulation};
pub use spec::{
    CursorPolicy, HostConditions, HostedArchive, Placement, Ports, RepositorySizes, RequestLimit,
    Server, Spec, WriteRate,
};
pub use traffic::ServerTraffic;
