//! A whole network on loopback: a PLC directory, PDSs, relays and Jetstreams, from a seed.
//!
//! ```text
//!             Pen, Simulation::write            commits, signed, with their proofs
//!                    │
//!     accounts ── Network ──> one Outbox a server ──> Teller a reader ──> Mischief ──> Wire
//!        │                     own seq, a window      cursor, pace      faults: frames   bytes
//!        └── documents, logs, repositories, records over HTTP
//! ```
//!
//! Accounts are real: their DIDs are hashes of operations that they signed, handles resolve both ways,
//! commits carry all that proves them. What they write follows from the seed; ports, the times in
//! events, and what the directory was told later do not. Every server can be made to fail in every way
//! of [`Fault`], with a count of how often it did, and [`Simulation`] knows what a reader must have in the
//! end.
//!
//! Servers listen on 127.0.0.1 and nowhere else. They call themselves `localhost`; handles end in
//! `.test`, and every PDS answers for all of them.
//!
//! ```no_run
//! use wireproof_simnet::servers::{FaultSchedule, Fault, Server, Spec, Simulation};
//! let sim = Simulation::start(Spec::default())?;
//! sim.faults().enable(Server::Relay(0), Fault::Cut, FaultSchedule::ONCE.with_amount(5_000));
//! sim.write_commits(100);
//! // … follow sim.url(Server::Relay(0)) …
//! assert_eq!(sim.faults().unfired(), []);
//! # Ok::<(), std::io::Error>(())
//! ```

mod answer;
mod archive_stream;
mod door;
mod fault;
mod firehose;
mod jetstream;
mod member;
mod mischief;
mod network;
mod outbox;
mod pds;
mod plc;
mod posting;
mod relay;
mod simulation;
mod spec;
mod stranger;
mod teller;
mod told;
mod wire;
mod writing;
mod xrpc;
mod zstandard;

pub use fault::{Fault, FaultSchedule, Faults, InjectionPoint};
pub use member::AccountStatus;
pub use outbox::SentEvent;
pub use simulation::{AccountInfo, ExpectedAccount, Simulation};
pub use spec::{CursorPolicy, Ports, Server, Spec, WriteRate};
pub use told::{EventKind, EventSubject};
pub use zstandard::{V1_DICTIONARY_ID, V2_DICTIONARY_ID};
