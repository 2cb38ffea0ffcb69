//! Runs without a socket: what comes is what a test says.

mod endings;
mod keys;
mod order;
mod repositories;
mod scene;
