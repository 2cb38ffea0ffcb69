//! What a run that serves an admin API and the commands that use it share.

pub mod access;
pub mod documents;
