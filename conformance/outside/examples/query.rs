//! The example of `query`: checked and not run, as building its engine takes longer than all examples together. The tests of
//! `query` make the same calls.

include!(concat!(env!("OUT_DIR"), "/query.rs"));
