//! Proof at wire speed for signed, content-addressed social data.
//!
//! This crate re-exports the libraries of the project, lowest layer first. Bytes become values, values become
//! structures, structures get verdicts.
//!
//! | module | content | feature |
//! |---|---|---|
//! | [`kernels`] | SHA-256 and secp256k1 in vector lanes, UTF-8, base32, varints | |
//! | [`codec`] | CID, DAG-CBOR, its JSON form, CAR: canonical or rejected; `serde` | `atproto` |
//! | [`crypto`] | K-256, P-256 and BIP-340 keys and signatures | |
//! | [`atproto`] | frames, commits, trees, repositories (read and written), identifiers, DID documents | `atproto` |
//! | [`verify`] | every verdict: commits, repositories, record proofs, event chains, did:plc | `atproto` |
//! | [`events`] | the line of JSON of an event, as `wireproof follow` prints it and sinks read it | `atproto` |
//! | [`nostr`] | Nostr events in every format in which they are stored or sent, their ids and signatures | `nostr` |
//! | `nostr_files` | files of Nostr events in every layout, read in groups and written | `nostr-files` |
//! | `nostr_lmdb` | the LMDB databases of strfry and nostrdb | `nostr-lmdb` |
//! | `net` | identity, XRPC, firehose and Jetstream clients | `net`, or one of its parts |
//! | `nostr_relay` | a client of Nostr relays | `nostr-relay` |
//! | `store` | cursors, keys and account states in one SQLite file | `store` |
//! | `delivery` | a durable outbox with acknowledgements; sinks: files, webhooks, databases; a WebSocket server | `delivery` |
//! | `follower` | a follower of streams, from hosts to destinations, as a library call | `follower` |
//! | `nostr_follower` | the same for Nostr relays | `nostr-follower` |
//! | `label_follower` | the same for labelers | `label-follower` |
//! | `archive` | verified history in open tables, which can be proved again | `archive` |
//! | `backfill` | the repositories of all accounts of hosts, into an archive | `backfill` |
//! | `query` | SQL over archives | `query` |
//!
//! The modules without a feature and the modules of `atproto` and `nostr` read no clock, file, socket or environment variable: the time, the key
//! of an account and its known state are arguments.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `atproto`, `nostr` | yes | the protocols |
//! | `secp256k1`, `aws-lc` | yes | signatures by libsecp256k1 (K-256, BIP-340) and AWS-LC (P-256), the fastest |
//! | `pure-rust` | | signatures by `k256` and `p256`, for targets without a C compiler; same verdicts |
//! | `signing` | | secret keys |
//! | `net` | | identities, XRPC, and clients of relays, PDSs and Jetstreams |
//! | `identity`, `firehose`, `jetstream` | | one part of `net`: identities and XRPC, relays and PDSs, Jetstreams |
//! | `nostr-relay` | | `net`, and a client of Nostr relays |
//! | `nostr-files` | | files of Nostr events; with `nostr-lmdb`, databases too |
//! | `nostr-lmdb` | | databases of strfry and nostrdb, by LMDB in C |
//! | `capnp`, `flatbuffers`, `msgpack` | | these formats of Nostr events |
//! | `store` | | the state file: cursors, keys and account states |
//! | `delivery` | | the outbox; sinks for files, SQLite and webhooks; a server for WebSocket clients |
//! | `postgres`, `kafka`, `nats` | | `delivery`, and this sink |
//! | `follower` | | a follower of streams with destinations, as the command has it |
//! | `nostr-follower` | | `follower`, and the same for Nostr relays |
//! | `label-follower` | | `follower`, and the same for labelers |
//! | `archive` | | archives |
//! | `object-stores` | | archives at `s3://`, `gs://` and `az://` |
//! | `archive-serve` | | archives, and a server of their events with cursors |
//! | `backfill` | | archives, and the backfill into them |
//! | `query` | | SQL over archives, by Apache DataFusion, with 150 more dependencies |
//! | `full` | | everything but `pure-rust` and `query` |
//!
//! # Decode a frame
//!
//! ```
//! use wireproof::atproto::event::{Decoder, Event, Options};
//!
//! let frame = b"\xa1\x62op\x20\xa1\x65error\x6cFutureCursor";
//! let mut decoder = Decoder::new(Options::default());
//! match decoder.decode(frame)? {
//!     Event::Commit(commit) => println!("{} changed {} records", commit.repo, commit.ops.len()),
//!     Event::Error(error) => println!("the server ended the stream: {}", error.error),
//!     other => println!("{:?}", other.kind()),
//! }
//! # Ok::<(), wireproof::atproto::event::FrameError>(())
//! ```
//!
//! A [`Decoder`](atproto::event::Decoder) borrows from the frames and keeps its memory. Pass several frames at once where
//! you have them: their blocks then share the lanes of one hash computation. Decoding proves that hashes are right, not
//! who signed.
//!
//! # Judge a frame
//!
//! A [`Judge`](verify::sync::Judge) checks a commit against its account's key, its own operations, and the known state of
//! the account. A batch of frames gives one outcome per frame:
//!
//! ```
//! use wireproof::crypto::CompressedKey;
//! use wireproof::verify::sync::{Chain, Judge, MemoryState, Outcome};
//!
//! # use wireproof::atproto::{repo::RepositoryWriter, syntax::{Did, Tid}};
//! # let secret = wireproof::crypto::SecretKey::from_bytes(wireproof::crypto::Curve::K256, &[7; 32])?;
//! # let mut repository = RepositoryWriter::new(Did::parse("did:web:alice.example")?);
//! # repository.create("app.test.note/3jzfcijpj2z2a", b"\xa1\x65$type\x6dapp.test.note")?;
//! # let commit = repository.commit(Tid::new(1_700_000_000_000_000, 0), |message| secret.sign(message))?;
//! # let (frame, did_key) = (commit.to_frame(1, "2023-11-14T22:13:20Z")?, secret.public_key().to_did_key());
//! # let (frames, now_micros) = ([&frame[..]], 1_700_000_000_000_000);
//! let (mut judge, mut accounts) = (Judge::default(), MemoryState::default());
//! let keys = |_did: &str| CompressedKey::from_did_key(&did_key).ok();
//! for judged in judge.judge_batch(&frames, &keys, &mut accounts, now_micros)? {
//!     match judged.outcome {
//!         Outcome::Commit(commit, Chain::Broken(gap)) => println!("resync {}: {gap}", commit.repo),
//!         Outcome::Commit(commit, _) => println!("{} changed {:?}", commit.repo, commit.ops),
//!         Outcome::Rejected(why) => panic!("{}: {why}", why.code()),
//!         other => println!("{other:?}"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Write a repository
//!
//! A [`RepositoryWriter`](atproto::repo::RepositoryWriter) stages records, commits them under a signature that you make,
//! emits frames and exports:
//!
//! ```
//! use wireproof::atproto::repo::RepositoryWriter;
//! use wireproof::atproto::syntax::{Did, Tid};
//! use wireproof::crypto::{Curve, SecretKey};
//!
//! let secret = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
//! let mut repository = RepositoryWriter::new(Did::parse("did:web:alice.example")?);
//! repository.create("app.test.note/3jzfcijpj2z2a", b"\xa1\x65$type\x6dapp.test.note")?;
//! let commit = repository.commit(Tid::new(1_700_000_000_000_000, 0), |message| secret.sign(message))?;
//! let frame = commit.to_frame(1, "2023-11-14T22:13:20Z")?;
//! let export = repository.export(Vec::new())?;
//! println!("{} bytes of frame, {} of export", frame.len(), export.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Verify a repository, or a record
//!
//! [`verify::repository`] takes an export and a key. A slice is enough for one record, or for the proof of its absence:
//! [`verify::record`].
//!
//! ```
//! use wireproof::crypto::PublicKey;
//! use wireproof::verify::{record, repository};
//!
//! # use wireproof::atproto::{repo::RepositoryWriter, syntax::{Did, Tid}};
//! # let secret = wireproof::crypto::SecretKey::from_bytes(wireproof::crypto::Curve::K256, &[7; 32])?;
//! # let did = "did:web:alice.example";
//! # let mut writer = RepositoryWriter::new(Did::parse(did)?);
//! # writer.create("app.test.note/3jzfcijpj2z2a", b"\xa1\x65$type\x6dapp.test.note")?;
//! # writer.commit(Tid::new(1_700_000_000_000_000, 0), |message| secret.sign(message))?;
//! # let (export, signing_key) = (writer.export(Vec::new())?, secret.public_key().to_did_key());
//! let key = PublicKey::from_did_key(&signing_key)?;
//! let whole = repository::verify(&export, Some(did), &key, &repository::Options::default())?;
//! println!("{} records of {}", whole.tree().records, whole.commit().did);
//!
//! let path = "app.bsky.feed.post/3zzzzzzzzzzzz";
//! let proof = record::verify(&export, path, Some(did), &key, &record::Options::default())?;
//! assert!(proof.record().is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Sign and verify
//!
//! [`PublicKey`](crypto::PublicKey) verifies one signature, [`verify_many`](crypto::verify_many) many at a time, several
//! times as fast. Both are strict: 64 bytes, both numbers in range, low S.
//!
//! ```
//! use wireproof::crypto::{Curve, SecretKey, SignatureFault};
//!
//! let secret = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
//! let signature = secret.sign(b"hello");
//! assert_eq!(secret.public_key().verify(b"hello", &signature), Ok(()));
//! assert_eq!(secret.public_key().verify(b"bye", &signature), Err(SignatureFault::Mismatch));
//! # Ok::<(), wireproof::crypto::KeyError>(())
//! ```
//!
//! # Read a Nostr event
//!
//! [`nostr`] reads events from JSON and from binary formats, and verifies ids and signatures.
//!
//! ```
//! use wireproof::nostr::{Arena, Limits, formats::Format};
//! # let json = wireproof::nostr::example::JSON;
//!
//! let arena = Arena::new();
//! let event = Format::Json.decode(json.as_bytes(), &arena, &Limits::default())?;
//! event.verify()?;
//! println!("{} {}", event.kind, event.content);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Use the formats alone
//!
//! [`codec`] knows no protocol: CIDs, canonical DAG-CBOR and CAR, from bytes to borrowed values and back.
//!
//! ```
//! use wireproof::codec::cbor;
//! use wireproof::codec::cid::{Cid, Codec};
//!
//! let block = b"\xa1\x65hello\x65world";
//! cbor::validate(block)?;
//! println!("{}", Cid::of(Codec::DagCbor, block));
//! let error = cbor::validate(b"\xa2\x61b\x01\x61a\x02").unwrap_err();
//! assert!(error.to_string().starts_with("at byte 4: map keys out of order"));
//! # Ok::<(), cbor::DecodeError>(())
//! ```
//!
//! # The network
//!
//! With the features `net` and `store`, `net::identity` resolves handles and DIDs, `net::xrpc` fetches repositories,
//! `net::firehose` follows relays without losing events, and `store` keeps cursors and account states. The guide has whole
//! programs: `docs/guide/embed-the-crate.md`.

#![forbid(unsafe_code)]

#[cfg(feature = "archive")]
pub use archive;
#[cfg(feature = "backfill")]
pub use backfill;
#[cfg(any(feature = "firehose", feature = "delivery", feature = "archive-serve"))]
pub use base::StopSignal;
#[cfg(feature = "delivery")]
pub use delivery;
#[cfg(feature = "follower")]
pub use follower;
#[cfg(feature = "label-follower")]
pub use label_follower;
#[cfg(feature = "identity")]
pub use net;
#[cfg(feature = "nostr-files")]
pub use nostr_files;
#[cfg(feature = "nostr-follower")]
pub use nostr_follower;
#[cfg(feature = "nostr-lmdb")]
pub use nostr_lmdb;
#[cfg(feature = "nostr-relay")]
pub use nostr_relay;
#[cfg(feature = "query")]
pub use query;
#[cfg(feature = "store")]
pub use store;
#[cfg(feature = "atproto")]
pub use {atproto, codec, events, verify};
pub use {crypto, kernels};

/// Nostr events, and the [formats](nostr::formats) in which they are stored or sent.
#[cfg(feature = "nostr")]
pub mod nostr {
    pub use nostr_formats as formats;
    pub use nostr_formats::container;

    pub use ::nostr::*;
}
