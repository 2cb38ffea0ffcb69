//! Ratios as text: they name the row that they compare with, as in `3.10 × rust-shrike`.

use crate::Row;

/// The quotient of the speeds of `row` and `other`, given as `number`, with the name of `other`.
///
/// ```
/// use wireproof_bench_results::{Row, Task, terminal::ratio};
///
/// let [ours, other] = ["wireproof", "rust-shrike"].map(|peer| Row::new(Task::Commit, "full", peer));
/// assert_eq!(ratio::named("3.10", &ours, &other), "3.10 × rust-shrike");
/// ```
pub fn named(number: &str, row: &Row, other: &Row) -> String {
    format!("{number} × {}", other_name(row, other))
}

/// The name of the row that `row` is compared with: its peer; and its variant, if it did other work or is another row of the
/// same peer.
pub fn other_name(row: &Row, other: &Row) -> String {
    let is_own_other_way = row.peer == other.peer && row.variant != other.variant;
    if row.group() == other.group() && !is_own_other_way {
        return other.peer.clone();
    }
    format!("{} {}", other.peer, other.variant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;

    #[test]
    fn the_variant_is_named_where_the_peer_does_not_tell_which_row_it_is() {
        let mst = |peer, variant| Row::new(Task::Mst, variant, peer);
        let lookup = mst("b", "lookup");
        assert_eq!(other_name(&mst("a", "lookup"), &lookup), "b");
        assert_eq!(other_name(&lookup, &lookup), "b", "it is the baseline");
        let ascending = mst("b", "insert-root/ascending");
        assert_eq!(other_name(&mst("a", "bulk"), &ascending), "b insert-root/ascending");
        let decode = |peer, variant| Row::new(Task::Decode, variant, peer);
        let typed = decode("b", "verified/typed-nodes");
        assert_eq!(other_name(&decode("a", "verified/batch"), &typed), "b");
        assert_eq!(other_name(&decode("b", "verified"), &typed), "b verified/typed-nodes");
    }
}
