//! A whole network on loopback: a PLC directory, PDSs, relays and Jetstreams, from a seed.
//!
//! ```text
//!             Pen, World::write            commits, signed, with their proofs
//!                    │
//!     accounts ── Network ──> one Outbox a server ──> Teller a reader ──> Mischief ──> Wire
//!        │                     own seq, a window      cursor, pace      faults: frames   bytes
//!        └── documents, logs, repositories, records over HTTP
//! ```
//!
//! Accounts are real: their DIDs are hashes of operations that they signed, handles resolve both ways,
//! commits carry all that proves them. What they write follows from the seed; ports, the times in
//! events, and what the directory was told later do not. Every server can be made to fail in every way
//! of [`Fault`], with a count of how often it did, and [`World`] knows what a reader must have in the
//! end.
//!
//! Servers listen on 127.0.0.1 and nowhere else. They call themselves `localhost`; handles end in
//! `.test`, and every PDS answers for all of them.
//!
//! ```no_run
//! use wireproof_simnet::servers::{Dose, Fault, Server, Spec, World};
//! let world = World::start(Spec::default())?;
//! world.faults().switch_on(Server::Relay(0), Fault::Cut, Dose::ONCE.of(5_000));
//! world.write(100);
//! // … follow world.url(Server::Relay(0)) …
//! assert_eq!(world.faults().unfired(), []);
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
mod spec;
mod stranger;
mod teller;
mod told;
mod wire;
mod world;
mod writing;
mod xrpc;
mod zstandard;

pub use fault::{Dose, Fault, Faults, Occasion};
pub use member::Status;
pub use outbox::Line;
pub use spec::{Manners, Ports, Rate, Server, Spec};
pub use told::{Kind, Subject};
pub use world::{AccountNow, Expected, World};
pub use zstandard::{V1_ID, V2_ID};
