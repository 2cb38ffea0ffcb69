//! Runs on scripted items, without a socket.

mod clocks;
mod endings;
mod feeds;
mod hosts;
mod key_lookups;
mod model;
mod order;
mod repositories;
mod resyncs;
mod statuses;
mod steps;
mod streams;
mod support;
mod test_worker;
mod together;
