//! Frames judged: captured ones with the documents of their accounts, and generated ones; a batch
//! says of each what it gets alone. The hostile ones are in `hostile_set`.

mod batches;
mod captured;
mod chains;
mod rows;
mod stage;
