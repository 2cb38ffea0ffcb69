//! Proof at wire speed for signed, content-addressed social data.
//!
//! This crate is the front door: it re-exports the libraries, lowest first, each of which answers
//! for one step of *bytes → values → structures → verdicts*.
//!
//! | crate | what it answers |
//! |---|---|
//! | [`kernels`] | SHA-256 of one and of many, UTF-8, base32, varint |
//! | [`codec`] | CID, DAG-CBOR and CAR: canonical or refused |
//! | [`crypto`] | keys and signatures: K-256, P-256, BIP-340 |
//! | [`atproto`] | what a firehose frame, a commit, a tree, a repository or a DID document says |
//! | [`nostr`] | what a Nostr event says, in every format in which it travels, and is it its author's |
//! | [`verify`] | every verdict: commits, repositories, record proofs, chains of events, identities |
//! | `net`, with the feature of that name | who is that account, what does its server hold, what happens now |
//! | `store`, with the feature of that name | how far was a stream read, and what is known of its accounts |
//!
//! Without features nothing here reads a clock, a file, a socket or a random byte: what time it is, which
//! key an account has and what was known of it are arguments.
//!
//! # Read a frame
//!
//! ```
//! use wireproof::atproto::event::{Decoder, Event, Options};
//!
//! let frame = b"\xa1\x62op\x20\xa1\x65error\x6cFutureCursor";
//! let mut decoder = Decoder::new(Options::default());
//! match decoder.decode(frame)? {
//!     Event::Commit(commit) => println!("{} changed {} records", commit.repo, commit.ops.len()),
//!     Event::Error(error) => println!("the server ends the stream: {}", error.error),
//!     other => println!("{:?}", other.kind()),
//! }
//! # Ok::<(), wireproof::atproto::event::FrameError>(())
//! ```
//!
//! A [`Decoder`](atproto::event::Decoder) borrows from the frames and keeps its memory. Hand it several at once
//! where you have them: blocks of different frames then share the lanes of one hash computation. It says what a
//! frame holds and that its hashes are right, not whose it is.
//!
//! # Believe a frame
//!
//! A [`Judge`](verify::sync::Judge) holds a commit against its account's key, against its own operations, and
//! against what is known of the account. One batch of frames goes in, one outcome for each comes out:
//!
//! ```
//! use wireproof::crypto::CompressedKey;
//! use wireproof::verify::sync::{Chain, Judge, MemoryState, Outcome};
//!
//! # let spec = simnet::firehose::Spec { frames: 8, ..simnet::firehose::Spec::quick() };
//! # let stream = simnet::firehose::Corpus::generate(&spec, &mut |_, _| {});
//! # let frames: Vec<&[u8]> = stream.frames().iter().map(Vec::as_slice).collect();
//! # let (keys, now_micros) = (stream.account_keys(), 1_900_000_000_000_000);
//! let key_of = |did: &str| keys.get(did).and_then(|key| CompressedKey::from_did_key(key).ok());
//! let (mut judge, mut accounts) = (Judge::default(), MemoryState::default());
//! for judged in judge.judge_batch(&frames, &key_of, &mut accounts, now_micros)? {
//!     match judged.outcome {
//!         Outcome::Commit(commit, Chain::Broken(gap)) => println!("fetch {}: {gap}", commit.repo),
//!         Outcome::Commit(commit, _) => println!("{} changed {:?}", commit.repo, commit.ops),
//!         Outcome::Rejected(why) => println!("{}: {why}", why.code()),
//!         other => println!("{other:?}"),
//!     }
//! }
//! # Ok::<(), std::convert::Infallible>(())
//! ```
//!
//! # Prove a repository, or a record of it
//!
//! [`verify::repository`] takes an export and a key; what it gives back can be made by no one else. A slice is
//! enough for one record, or for the proof that there is none: [`verify::record`].
//!
//! ```
//! use wireproof::crypto::PublicKey;
//! use wireproof::verify::{record, repository};
//!
//! # use simnet::repository_corpus::{Corpus, RepositoryDetails, Spec};
//! # let corpus = Corpus::generate(&Spec { records: 20, ..Spec::quick() });
//! # let export = corpus.to_file();
//! # let RepositoryDetails { did, signing_key, .. } = corpus.manifest(&export).details;
//! let key = PublicKey::from_did_key(&signing_key)?;
//! let whole = repository::verify(&export, Some(&did), &key, &repository::Options::default())?;
//! println!("{} records of {}", whole.tree().records, whole.commit().did);
//!
//! let path = "app.bsky.feed.post/3zzzzzzzzzzzz";
//! let proof = record::verify(&export, path, Some(&did), &key, &record::Options::default())?;
//! assert!(proof.record().is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Sign and check
//!
//! Signatures are verified one at a time by [`PublicKey`](crypto::PublicKey), and many at a time, several times as
//! fast, by [`verify_many`](crypto::verify_many). Both are strict: 64 bytes, both numbers in range, s in the
//! lower half.
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
//! [`nostr`] reads events from JSON and from every binary format in which they travel, and verifies ids and
//! signatures. It knows nothing of the AT Protocol.
//!
//! ```
//! use bumpalo::Bump;
//! use wireproof::nostr::{Limits, formats::Format};
//! # let json = wireproof::nostr::example::JSON;
//!
//! let arena = Bump::new();
//! let event = Format::Json.decode(json.as_bytes(), &arena, &Limits::default())?;
//! event.verify()?;
//! println!("{} {}", event.kind, event.content);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Read the formats alone
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
//! let refused = cbor::validate(b"\xa2\x61b\x01\x61a\x02").unwrap_err();
//! assert!(refused.to_string().starts_with("at byte 4: map keys out of order"));
//! # Ok::<(), cbor::DecodeError>(())
//! ```
//!
//! # Ask the network, follow it, keep what is known
//!
//! With the features `net` and `store`. `net::identity` resolves handles and DIDs, `net::xrpc` fetches repositories,
//! `net::firehose` follows relays and loses nothing, and `store` keeps cursors and the state of accounts in one
//! file. Whole programs for each are in the guide, `docs/guide/embed-the-crate.md`, and are run with
//! this crate's tests.

#![forbid(unsafe_code)]

#[cfg(feature = "net")]
pub use net;
#[cfg(feature = "store")]
pub use store;
pub use {atproto, codec, crypto, kernels, nostr, verify};

/// The programs of the guide, as tests.
#[cfg(all(doctest, feature = "net", feature = "store"))]
#[doc = include_str!("../../../docs/guide/embed-the-crate.md")]
struct Guide;

/// The program of the front page, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;
