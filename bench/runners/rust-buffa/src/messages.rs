//! What buffa generates for the schemas in `proto`.

include!(concat!(env!("OUT_DIR"), "/messages.rs"));
