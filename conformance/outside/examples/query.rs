//! The example of `query`: checked and not run, as building its engine takes longer than all examples together. The tests of
//! `archive query` run it.

include!(concat!(env!("OUT_DIR"), "/query.rs"));
