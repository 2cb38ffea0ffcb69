//! Does the public API say what real data, other people's vectors and hostile bytes demand?
//!
//! | module | its input |
//! |---|---|
//! | `frames` | captured firehose frames, and forged ones |
//! | `archives` | repository CARs, CAR vectors, forged repositories |
//! | `cbor_vectors` | DAG-CBOR blocks with their CIDs and their JSON |
//! | `json_vectors` | the data model's JSON, and records that another implementation printed |
//! | `cid_text` | CIDs as text |
//! | `signature_vectors` | signatures and keys that others have published with a verdict |
//! | `signed_commits` | real commits under the keys of their accounts, and forged ones |
//! | `hostile` | truncations, flipped bits, absurd lengths, nesting bombs |
//!
//! A table in a test lists every input that this version accepts although a later layer must refuse
//! it, and every one that it refuses although its source calls it valid.

#![forbid(unsafe_code)]

mod archives;
mod cbor_vectors;
mod cid_text;
mod frames;
mod hostile;
mod json_vectors;
mod made;
mod signature_vectors;
mod signed_commits;
