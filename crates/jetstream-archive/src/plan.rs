//! Plans, checked page by page: their segments follow each other, within the range that was asked for, to its end.

use net::jetstream::{PlanPage, PlannedBlocks, PlannedSegment};

use crate::segment::MAX_BLOCKS;

/// Why a page of a plan is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The end of the archive is beyond the range that was asked for, or differs from the first page.
    #[error("the plan ends at {stated}, and the range at {asked}")]
    Tip {
        /// The end as the page states it.
        stated: u64,
        /// The end that was asked for.
        asked: u64,
    },
    /// The page covers nothing, or more than was asked for.
    #[error(
        "the page covers sequence numbers up to {through}: it must end after {after}, and not after {tip}"
    )]
    Progress {
        /// The last sequence number of the page, as it states it.
        through: u64,
        /// The last sequence number of the page before.
        after: u64,
        /// The end of the plan.
        tip: u64,
    },
    /// The name is of no segment, or of another one than the number.
    #[error("segment {0} has the name of another file")]
    Name(u64),
    /// The checksum is not 16 hexadecimal digits.
    #[error("segment {0}: the checksum is not 16 hexadecimal digits")]
    Checksum(u64),
    /// The segment is repeated, or comes after a later one.
    #[error("segment {0} is out of order")]
    Order(u64),
    /// The sequence numbers of the segment are outside the page.
    #[error("segment {0} has no sequence number of the page")]
    Range(u64),
    /// The ranges of blocks are missing, overlap or are too many.
    #[error("segment {0}: the ranges of blocks are out of order")]
    Blocks(u64),
    /// The mode is not known.
    #[error("segment {0} is planned in a mode that is not known")]
    Mode(u64),
    /// There are too many pages.
    #[error("more than {MAX_PAGES} pages")]
    Pages,
}

impl PlanError {
    /// The stable code of the broken rule.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Tip { .. } => "plan/tip",
            Self::Progress { .. } => "plan/progress",
            Self::Name(_) => "plan/name",
            Self::Checksum(_) => "plan/checksum",
            Self::Order(_) => "plan/order",
            Self::Range(_) => "plan/range",
            Self::Blocks(_) => "plan/blocks",
            Self::Mode(_) => "plan/mode",
            Self::Pages => "plan/pages",
        }
    }
}

/// The range that is planned, and how far its pages go.
#[derive(Clone, Debug)]
pub(crate) struct PlanProgress {
    /// The last sequence number that is covered.
    after: u64,
    /// The end of the plan: asked for, and then as the first page states it.
    tip: Option<u64>,
    is_first: bool,
    pages: u32,
    last: Option<LastSegment>,
}

/// The last segment of a page, which the next page may continue.
#[derive(Clone, Debug)]
struct LastSegment {
    index: u64,
    checksum: Box<str>,
    /// The last planned block; `None` if the whole segment was planned.
    block: Option<u32>,
}

/// The use of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Planned<'p> {
    Whole,
    Blocks(&'p [PlannedBlocks]),
}

impl PlanProgress {
    pub(crate) fn new(after: u64, before: Option<u64>) -> Self {
        Self { after, tip: before, is_first: true, pages: 0, last: None }
    }

    /// The last sequence number that is covered.
    pub(crate) fn after(&self) -> u64 {
        self.after
    }

    /// The end of the plan, if it is known or was asked for.
    pub(crate) fn tip(&self) -> Option<u64> {
        self.tip
    }

    /// Checks the next page; returns whether it is the last one.
    pub(crate) fn check(&mut self, page: &PlanPage) -> Result<bool, PlanError> {
        self.pages += 1;
        if self.pages > MAX_PAGES {
            return Err(PlanError::Pages);
        }
        let (tip, through) = (page.sealed_tip_seq, page.planned_through_seq);
        let is_changed = |asked: u64| if self.is_first { tip > asked } else { tip != asked };
        if let Some(asked) = self.tip.filter(|asked| is_changed(*asked)) {
            return Err(PlanError::Tip { stated: tip, asked });
        }
        if tip <= self.after && through == tip && page.segments.is_empty() {
            self.tip = Some(tip);
            return Ok(true);
        }
        if through <= self.after || through > tip {
            return Err(PlanError::Progress { through, after: self.after, tip });
        }
        for segment in &page.segments {
            self.check_segment(segment, through)?;
        }
        (self.after, self.tip, self.is_first) = (through, Some(tip), false);
        Ok(through == tip)
    }

    fn check_segment(&mut self, segment: &PlannedSegment, through: u64) -> Result<(), PlanError> {
        let PlannedSegment { index, checksum, min_seq, max_seq, .. } = segment;
        let index = *index;
        if number_of(&segment.name) != Some(index) {
            return Err(PlanError::Name(index));
        }
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if checksum.len() != CHECKSUM_LEN || !checksum.bytes().all(is_hex) {
            return Err(PlanError::Checksum(index));
        }
        if min_seq > max_seq || *max_seq <= self.after || *min_seq > through {
            return Err(PlanError::Range(index));
        }
        let block = match planned(segment)? {
            Planned::Whole => None,
            Planned::Blocks(ranges) => Some((ranges[0].first, ranges[ranges.len() - 1].last)),
        };
        let is_after = match &self.last {
            Some(last) if last.index == index => {
                let blocks = last.block.zip(block);
                blocks.is_some_and(|(last, (first, _))| last < first) && last.checksum == *checksum
            }
            Some(last) => last.index < index,
            None => true,
        };
        if !is_after {
            return Err(PlanError::Order(index));
        }
        let block = block.map(|(_, last)| last);
        self.last = Some(LastSegment { index, checksum: checksum.clone(), block });
        Ok(())
    }
}

/// The use of a segment, if its ranges of blocks are in order.
pub(crate) fn planned(segment: &PlannedSegment) -> Result<Planned<'_>, PlanError> {
    let index = segment.index;
    match &*segment.mode {
        "segment" => Ok(Planned::Whole),
        "blocks" => {
            let numbers: Vec<u32> =
                segment.blocks.iter().flat_map(|range| [range.first, range.last]).collect();
            // A range can have one block; two ranges have none in common.
            let is_ordered = numbers.chunks(2).all(|range| range[0] <= range[1])
                && numbers.chunks(2).zip(numbers.chunks(2).skip(1)).all(|(a, b)| a[1] < b[0]);
            let is_small = numbers.last().is_some_and(|last| *last < MAX_BLOCKS);
            if is_ordered && is_small {
                Ok(Planned::Blocks(&segment.blocks))
            } else {
                Err(PlanError::Blocks(index))
            }
        }
        _ => Err(PlanError::Mode(index)),
    }
}

/// The number in the name of a segment: ten digits in base 36.
fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("seg_")?.strip_suffix(".jss")?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    let is_number = digits.len() == NAME_DIGITS && digits.bytes().all(is_digit);
    is_number.then(|| u64::from_str_radix(digits, 36).ok()).flatten()
}

/// Maximum number of pages of a plan.
const MAX_PAGES: u32 = 100_000;

const NAME_DIGITS: usize = 10;

const CHECKSUM_LEN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(index: u64, mode: &str, blocks: &[(u32, u32)]) -> PlannedSegment {
        PlannedSegment {
            name: format!("seg_{index:010}.jss").into(),
            index,
            checksum: "0123456789abcdef".into(),
            min_seq: index * 10 + 1,
            max_seq: index * 10 + 10,
            mode: mode.into(),
            blocks: blocks.iter().map(|&(first, last)| PlannedBlocks { first, last }).collect(),
        }
    }

    fn page(through: u64, segments: Vec<PlannedSegment>) -> PlanPage {
        PlanPage { planned_through_seq: through, sealed_tip_seq: 30, segments }
    }

    fn code(page: &PlanPage) -> &'static str {
        PlanProgress::new(0, Some(30)).check(page).unwrap_err().code()
    }

    #[test]
    fn pages_that_follow_each_other_to_the_end_are_accepted() {
        let mut plan = PlanProgress::new(0, None);
        let first = vec![segment(0, "segment", &[]), segment(1, "blocks", &[(0, 1), (3, 3)])];
        assert_eq!(plan.check(&page(15, first)), Ok(false));
        let rest = vec![segment(1, "blocks", &[(4, 4)]), segment(2, "segment", &[])];
        assert_eq!(plan.check(&page(30, rest)), Ok(true));
        let empty = PlanPage { planned_through_seq: 0, sealed_tip_seq: 0, segments: Vec::new() };
        assert_eq!(PlanProgress::new(0, None).check(&empty), Ok(true));
    }

    #[test]
    fn every_lie_of_a_plan_has_its_code() {
        let whole = || segment(0, "segment", &[]);
        assert_eq!(code(&PlanPage { sealed_tip_seq: 31, ..page(30, Vec::new()) }), "plan/tip");
        assert_eq!(code(&page(0, vec![whole()])), "plan/progress");
        assert_eq!(code(&page(31, vec![whole()])), "plan/progress");
        for name in ["../seg_0000000000.jss", "seg_0000000001.jss", "seg_000000000.jss"] {
            let named = PlannedSegment { name: name.into(), ..whole() };
            assert_eq!(code(&page(30, vec![named])), "plan/name", "{name}");
        }
        for checksum in ["0123", "0123456789abcdeg", "0123456789ABCDEF"] {
            let summed = PlannedSegment { checksum: checksum.into(), ..whole() };
            assert_eq!(code(&page(30, vec![summed])), "plan/checksum", "{checksum}");
        }
        assert_eq!(code(&page(30, vec![whole(), whole()])), "plan/order");
        assert_eq!(code(&page(30, vec![segment(2, "segment", &[]), whole()])), "plan/order");
        assert_eq!(code(&page(30, vec![segment(5, "segment", &[])])), "plan/range");
        assert_eq!(code(&page(30, vec![segment(0, "rows", &[])])), "plan/mode");
        for blocks in [&[][..], &[(1, 0)], &[(0, 1), (1, 2)], &[(2, 2), (0, 0)], &[(0, 1 << 20)]] {
            let planned = segment(0, "blocks", blocks);
            assert_eq!(code(&page(30, vec![planned])), "plan/blocks", "{blocks:?}");
        }
        let mut plan = PlanProgress { pages: MAX_PAGES, ..PlanProgress::new(0, Some(30)) };
        assert_eq!(plan.check(&page(30, vec![whole()])).unwrap_err().code(), "plan/pages");
        let mut plan = PlanProgress::new(0, None);
        plan.check(&page(15, vec![segment(0, "segment", &[])])).unwrap();
        let moved = PlanPage { sealed_tip_seq: 40, ..page(30, Vec::new()) };
        assert_eq!(plan.check(&moved).unwrap_err().code(), "plan/tip");
    }
}
