//! The public API with real data, external test vectors and hostile bytes.
//!
//! | module | its input |
//! |---|---|
//! | `frames` | captured firehose frames, and forged ones |
//! | `archives` | repository CARs, CAR vectors, forged repositories |
//! | `cbor_vectors` | DAG-CBOR blocks with their CIDs and their JSON |
//! | `json_vectors` | the data model's JSON, and records that another implementation printed |
//! | `judged_frames` | firehose frames with the keys of their accounts, generated and forged ones |
//! | `repositories` | real, partial, forged and generated repositories, whole |
//! | `record_proofs` | slices of them that prove one record, or that there is none |
//! | `signatures` | published signatures and keys; real commits under the keys of their accounts, and forged ones |
//! | `identity_vectors` | DID documents and logs of `did:plc`, valid, invalid, and changed |
//! | `syntax_vectors` | identifiers, dates and CIDs as text that others have published with a verdict |
//! | `hostile_set` | the hostile set: repositories and frames that break one rule each, or none; flagged records |
//! | `tree_vectors` | key heights, proofs of commits and pairs of trees that others have published |
//! | `hostile` | truncations, flipped bits, absurd lengths, nesting bombs |
//!
//! A table in a test lists every input that this version accepts although a later layer must refuse
//! it, and every one that it refuses although its source calls it valid.

#![forbid(unsafe_code)]

mod archives;
mod cbor_vectors;
mod frames;
mod hostile;
mod hostile_set;
mod identity_vectors;
mod json_vectors;
mod judged_frames;
mod made;
mod record_proofs;
mod repositories;
mod signatures;
mod syntax_vectors;
mod tree_vectors;
