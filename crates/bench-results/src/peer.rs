//! The names of our own runners.

/// The name of our own runner in results.
pub const PEER: &str = "wireproof";

/// Whether a runner is ours: in Rust, or of our Python or npm package. Comparisons with other implementations leave them out.
pub fn is_ours(peer: &str) -> bool {
    [PEER, "python-wireproof", "ts-wireproof"].contains(&peer)
}
