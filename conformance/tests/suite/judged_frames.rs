//! Verdicts on frames: captured ones with the DID documents of their accounts, and generated ones; a
//! batch yields the same verdicts as single frames. Hostile frames are in `hostile_set`.

mod batches;
mod captured;
mod chains;
mod fixture;
mod rows;
