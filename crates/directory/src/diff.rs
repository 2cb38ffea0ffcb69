//! The differences between two mirrors: histories that one of them withholds, has rewritten, or that diverge.
//!
//! | kind | of an account |
//! |---|---|
//! | `newer` | one mirror has operations at the end that the other had no time to see |
//! | `withheld` | one mirror has operations at the end that the other must have seen, or an account that it lacks |
//! | `rewritten` | an operation is missing or added before operations that both have |
//! | `diverging` | the histories continue with different operations |
//! | `redated` | an operation has two times |
//!
//! Mirrors of one directory have seen an operation if its number is not above their cursors. Mirrors of different directories have
//! seen it if it is older than their newest operation by a minute.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use store::{MirroredOperation, PlcMirrorReader, StoreError};

use crate::accounts::{Account, Accounts};

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The account.
    pub did: String,
    /// Its kind.
    pub kind: DifferenceKind,
    /// The place of the first operation that differs, from 0.
    pub index: u64,
    /// The CID at this place in the first mirror, if it has an operation there.
    pub first: Option<String>,
    /// The CID at this place in the second mirror.
    pub second: Option<String>,
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DifferenceKind {
    /// One mirror is ahead.
    Newer,
    /// One mirror lacks operations that it must have seen.
    Withheld,
    /// Operations are missing or added before common ones.
    Rewritten,
    /// The histories continue differently.
    Diverging,
    /// An operation has two times.
    Redated,
}

impl DifferenceKind {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Newer => "newer",
            Self::Withheld => "withheld",
            Self::Rewritten => "rewritten",
            Self::Diverging => "diverging",
            Self::Redated => "redated",
        }
    }

    /// Whether the mirrors contradict each other.
    pub fn is_contradiction(self) -> bool {
        self != Self::Newer
    }
}

/// Gives `visit` the differences between two mirrors, in the order of the DIDs. The numbers of compared and of equal accounts.
///
/// # Errors
/// If a mirror cannot be read or is damaged, or `visit` fails.
pub fn diff<E: From<StoreError>>(
    first: &PlcMirrorReader,
    second: &PlcMirrorReader,
    mut visit: impl FnMut(Difference) -> Result<(), E>,
) -> Result<DiffCounts, E> {
    let horizons = [Horizon::of(first, second)?, Horizon::of(second, first)?];
    let (mut left, mut right) = (Accounts::new(first), Accounts::new(second));
    let (mut a, mut b) = (left.next()?, right.next()?);
    let mut counts = DiffCounts::default();
    loop {
        let order = match (&a, &b) {
            (None, None) => return Ok(counts),
            (Some(a), Some(b)) => a.did.cmp(&b.did),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        counts.accounts += 1;
        let mut pair = [None, None];
        if order.is_le() {
            pair[0] = std::mem::replace(&mut a, left.next()?);
        }
        if order.is_ge() {
            pair[1] = std::mem::replace(&mut b, right.next()?);
        }
        match compare(&pair, &horizons) {
            Some(difference) => visit(difference)?,
            None => counts.equal += 1,
        }
    }
}

/// The numbers of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffCounts {
    /// Number of accounts in either mirror.
    pub accounts: u64,
    /// Number of accounts with equal histories.
    pub equal: u64,
}

/// The operations that a mirror has seen.
enum Horizon {
    /// All up to this number.
    Number(u64),
    /// All up to this time in microseconds.
    Time(i64),
}

impl Horizon {
    /// The horizon of a mirror for operations of another one.
    fn of(mirror: &PlcMirrorReader, other: &PlcMirrorReader) -> Result<Self, StoreError> {
        let totals = mirror.totals()?;
        if totals.directory == other.totals()?.directory {
            return Ok(Self::Number(totals.cursor));
        }
        let newest = mirror.newest_time()?.unwrap_or(i64::MIN);
        Ok(Self::Time(newest.saturating_sub(SLACK_MICROS)))
    }

    fn has_seen(&self, operation: &MirroredOperation) -> bool {
        match self {
            Self::Number(cursor) => operation.seq <= *cursor,
            Self::Time(micros) => operation.created_at_micros <= *micros,
        }
    }
}

/// The difference between the histories of one account; `None` if they are equal.
fn compare(pair: &[Option<Account>; 2], horizons: &[Horizon; 2]) -> Option<Difference> {
    let did = pair.iter().flatten().next()?.did.clone();
    let [a, b] = pair
        .each_ref()
        .map(|account| account.as_ref().map_or(&[][..], |account| account.operations.as_slice()));
    let common = a.iter().zip(b).take_while(|(a, b)| a.cid == b.cid).count();
    let (rest_a, rest_b) = (&a[common..], &b[common..]);
    let redated =
        a.iter().zip(b).take(common).position(|(a, b)| a.created_at_micros != b.created_at_micros);
    let (kind, index) = match (rest_a, rest_b, redated) {
        ([_, ..], [_, ..], _) if has_common(rest_a, rest_b) => (DifferenceKind::Rewritten, common),
        ([_, ..], [_, ..], _) => (DifferenceKind::Diverging, common),
        ([missed, ..], [], _) if horizons[1].has_seen(missed) => (DifferenceKind::Withheld, common),
        ([], [missed, ..], _) if horizons[0].has_seen(missed) => (DifferenceKind::Withheld, common),
        (.., Some(index)) => (DifferenceKind::Redated, index),
        ([], [], None) => return None,
        _ => (DifferenceKind::Newer, common),
    };
    let cid = |operations: &[MirroredOperation]| operations.get(index).map(|of| of.cid.clone());
    Some(Difference { did, kind, index: index as u64, first: cid(a), second: cid(b) })
}

fn has_common(a: &[MirroredOperation], b: &[MirroredOperation]) -> bool {
    let cids: BTreeSet<&str> = a.iter().map(|of| of.cid.as_str()).collect();
    b.iter().any(|of| cids.contains(of.cid.as_str()))
}

/// How far the clocks and the order of two directories may differ.
const SLACK_MICROS: i64 = 60 * 1_000_000;
