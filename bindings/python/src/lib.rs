//! The extension module of the Python package `wireproof`.
//!
//! Python's own files in `python/wireproof/` give it names and documentation; `docs/guide/from-python.md` introduces it.

mod account;
mod account_keys;
mod accounts;
mod archive;
mod arguments;
mod collections;
mod columns;
#[cfg(feature = "command")]
mod command;
mod deliver;
mod encode;
mod errors;
mod event_columns;
mod follow;
mod frame_file;
mod frame_operations;
mod frame_verdicts;
mod judge;
mod judged;
mod key_cache;
mod keys;
mod libipld;
mod logging;
mod network;
mod nostr;
mod nostr_streams;
mod objects;
mod outcome;
mod pause;
mod process;
mod record;
mod record_batches;
mod record_columns;
mod repo;
mod repository_verdicts;
mod resolve;
mod shapes;
mod source;
mod storage;

use pyo3::prelude::*;

/// The native half of the package `wireproof`.
#[pymodule(gil_used = false)]
mod _wireproof {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::account::verify_account;
    #[pymodule_export]
    use super::accounts::State;
    #[pymodule_export]
    use super::archive::ArchiveReader;
    #[pymodule_export]
    use super::collections::{CollectionsProof, verify_account_collections, verify_collections};
    #[cfg(feature = "command")]
    #[pymodule_export]
    use super::command::run_command;
    #[pymodule_export]
    use super::deliver::_deliver;
    #[pymodule_export]
    use super::follow::{_Follower, _restore_event, Event};
    #[pymodule_export]
    use super::frame_file::read_frames;
    #[pymodule_export]
    use super::frame_operations::decode_frames;
    #[pymodule_export]
    use super::frame_verdicts::verify_frames;
    #[pymodule_export]
    use super::judge::{_policy_defaults, Judge};
    #[pymodule_export]
    use super::libipld::{
        decode_car, decode_cid, decode_dag_cbor, decode_dag_cbor_multi, decode_multibase,
        encode_cid, encode_dag_cbor, encode_multibase,
    };
    #[pymodule_export]
    use super::outcome::{_restore_operation, _restore_outcome, Operation, Outcome};
    #[pymodule_export]
    use super::record::{Record, RecordProof, verify_record};
    #[pymodule_export]
    use super::record_batches::RecordBatchStream;
    #[pymodule_export]
    use super::repo::{_restore_repo, Repo, verify_repo};
    #[pymodule_export]
    use super::repository_verdicts::verify_repos;
    #[pymodule_export]
    use super::resolve::{_Lookup, _restore_identity, Identity, resolve};
    #[pymodule_export]
    use super::storage::FileStore;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Without this, a part of the module could not be imported by its name.
        let parts = module.py().import("sys")?.getattr("modules")?;
        parts.set_item("wireproof._wireproof.nostr", module.getattr("nostr")?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// Nostr events.
    #[pymodule]
    mod nostr {
        #[pymodule_export]
        use super::super::nostr::{
            EventVerdict, decode, decode_batch, encode, encode_batch, formats, verify_batch,
        };
        #[pymodule_export]
        use super::super::nostr_streams::{
            batch_from_arrow, batch_to_arrow, decode_events, encode_events, verify_events,
        };
    }
}
