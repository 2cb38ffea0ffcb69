//! The extension module of the Python package `wireproof`.
//!
//! Python's own files in `python/wireproof/` give it names and documentation; `docs/guide/from-python.md` introduces it.

mod account_keys;
mod archive;
mod arrow;
mod arrow_verify;
mod columns;
mod encode;
mod errors;
mod key_cache;
mod libipld;
mod objects;
mod pause;
mod record_batches;

use pyo3::prelude::*;

/// The native half of the package `wireproof`.
#[pymodule(gil_used = false)]
mod _wireproof {
    #[pymodule_export]
    use super::archive::ArchiveReader;
    #[pymodule_export]
    use super::arrow::{decode_frames, repository_records};
    #[pymodule_export]
    use super::arrow_verify::{AccountStates, verify_frames, verify_repos};
    #[pymodule_export]
    use super::record_batches::RecordBatchStream;
    #[pymodule_export]
    use super::libipld::{
        decode_car, decode_cid, decode_dag_cbor, decode_dag_cbor_multi, decode_multibase,
        encode_cid, encode_dag_cbor, encode_multibase,
    };
}
