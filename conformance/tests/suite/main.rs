//! The public API with real data, external test vectors and hostile bytes.
//!
//! | module | input |
//! |---|---|
//! | `frames` | captured firehose frames, and forged ones |
//! | `archives` | repository CARs, CAR vectors, forged repositories |
//! | `cbor_vectors` | DAG-CBOR blocks with their CIDs and their JSON |
//! | `cid_digests` | CIDs under SHA-256 with digests of every length, in every layer |
//! | `json_vectors` | the data model's JSON, and records that another implementation printed |
//! | `judged_frames` | firehose frames with the keys of their accounts, generated and forged ones |
//! | `repositories` | real, partial, forged and generated repositories, whole |
//! | `record_proofs` | slices of repositories that prove the presence or absence of one record |
//! | `signatures` | published signatures and keys; real commits under the keys of their accounts, and forged ones |
//! | `identity_vectors` | DID documents and logs of `did:plc`, valid, invalid, and changed |
//! | `plc_mirrors` | the same logs, and forged ones, as lines of the export of a directory |
//! | `syntax_vectors` | published identifiers, dates and CIDs as text, with verdicts |
//! | `hostile_set` | the hostile set: repositories and frames that break one rule each, or none; flagged records |
//! | `tree_vectors` | published key heights, proofs of commits and pairs of trees |
//! | `hostile` | truncations, flipped bits, absurd lengths, nesting bombs |
//!
//! Tables in the tests list every input that is accepted here although a later layer must refuse
//! it, and every input that is refused although its source calls it valid.

#![forbid(unsafe_code)]

mod archives;
mod cbor_vectors;
mod cid_digests;
mod frames;
mod hostile;
mod hostile_set;
mod identity_vectors;
mod json_vectors;
mod judged_frames;
mod made;
mod plc_mirrors;
mod record_proofs;
mod repositories;
mod signatures;
mod syntax_vectors;
mod tree_vectors;
