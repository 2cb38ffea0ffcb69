//! The extension module of the Python package `wireproof`.
//!
//! Python's own files in `python/wireproof/` give it names and documentation; `docs/guide/from-python.md` introduces it.

mod encode;
mod errors;
mod key_cache;
mod libipld;
mod objects;
mod pause;
mod shapes;

use pyo3::prelude::*;

/// The native half of the package `wireproof`.
#[pymodule(gil_used = false)]
mod _wireproof {
    #[pymodule_export]
    use super::libipld::{
        decode_car, decode_cid, decode_dag_cbor, decode_dag_cbor_multi, decode_multibase,
        encode_cid, encode_dag_cbor, encode_multibase,
    };
}
