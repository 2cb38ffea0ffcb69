//! Types that a run with an admin API shares with the commands that use it.

pub mod access;
pub mod documents;
