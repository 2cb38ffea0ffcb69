//! The order in which a verification adds up the multiples that its digits select.
//!
//! The ladder doubles between the digits of a window, so every digit of a window has a list of multiples to add, and u1 has
//! another. **In sequence**, the ladder adds all of them to its sum, by mixed additions.
//! **In rounds**, every list is added up first, as affine points: an affine addition needs half the operations of a mixed one and
//! an inverse, which all additions of a round share. A list is distributed over sums that each add up to [`TERMS_A_SUM`] of its
//! multiples, then neighbouring sums are added together, until one is left or the rounds have ended.
//!
//! Where u2 has two parts, the second stands for λ times the key. It has sums of its own, as far as there are enough
//! multiples, which are multiplied by λ when they are added to the sums of the first.

use super::Curve;
use super::digits::{GENERATOR_WINDOWS, digits_a_part, parts};
use super::table::{TableSize, digits_a_window};

/// A multiple to add, by the digit that selects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// Of the key: a digit of a part of u2, looked up in a window of the key's table.
    Key { window: usize, part: usize, digit: usize },
    /// Of the generator: a digit of u1.
    Generator { digit: usize },
}

impl Term {
    fn part(self) -> usize {
        match self {
            Self::Key { part, .. } => part,
            Self::Generator { .. } => 0,
        }
    }
}

/// A point to add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) source: Source,
    /// Whether λ times the source is added.
    pub(super) times_lambda: bool,
}

/// Where a point comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A multiple.
    Term(Term),
    /// A sum, by its index.
    Sum(usize),
}

/// An addition to a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Addition {
    /// The index of the sum.
    pub(super) sum: usize,
    pub(super) operand: Operand,
}

/// Whether the multiples are added up before the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Sequence,
    Rounds,
}

/// The additions of a verification.
#[derive(Debug)]
pub(super) struct Plan {
    /// The multiple that every sum starts with.
    pub(super) sums: Vec<Term>,
    /// The additions of every round, none of which depends on another of the round.
    pub(super) rounds: Vec<Vec<Addition>>,
    /// The ladder's additions for the digits of a window, lowest digit first.
    pub(super) key: Vec<Vec<Operand>>,
    /// The ladder's additions for u1.
    pub(super) generator: Vec<Operand>,
}

/// The plans of a curve, by order and size of the key's table.
pub(super) type Plans = [[Plan; 3]; 2];

impl Plan {
    /// The plan for keys with tables of this size.
    pub(super) fn of<C: Curve>(size: TableSize, order: Order) -> &'static Self {
        let plans = C::plans().get_or_init(|| {
            [Order::Sequence, Order::Rounds]
                .map(|order| TableSize::ALL.map(|size| Self::new::<C>(size, order)))
        });
        &plans[order as usize][size as usize]
    }

    fn new<C: Curve>(size: TableSize, order: Order) -> Self {
        let each = digits_a_window::<C>(size.windows());
        let mut plan =
            Self { sums: Vec::new(), rounds: Vec::new(), key: Vec::new(), generator: Vec::new() };
        for lowest in 0..each {
            let digits = (lowest..digits_a_part::<C>()).step_by(each).enumerate();
            let of_parts = |(window, digit)| {
                (0..parts::<C>()).map(move |part| Term::Key { window, part, digit })
            };
            let operands = plan.add_up(digits.flat_map(of_parts).collect(), order);
            plan.key.push(operands);
        }
        let digits = 0..GENERATOR_WINDOWS;
        plan.generator =
            plan.add_up(digits.map(|digit| Term::Generator { digit }).collect(), order);
        plan
    }

    /// Plans the sum of a list. Returns the terms that are left for the ladder.
    fn add_up(&mut self, terms: Vec<Term>, order: Order) -> Vec<Operand> {
        let parts = 1 + usize::from(terms.iter().any(|term| term.part() == 1));
        if order == Order::Sequence || terms.len() == 1 {
            let sources = terms.into_iter().map(Source::Term);
            return sources.map(|source| self.operand(0, source)).collect();
        }
        // As the parts alternate, all multiples of a sum are of the same part, unless there is one sum only.
        let is_one = terms.len() <= TERMS_A_SUM;
        let count = if is_one { 1 } else { parts * (terms.len() / parts).div_ceil(TERMS_A_SUM) };
        let (first, (starts, others)) = (self.sums.len(), terms.split_at(count));
        self.sums.extend(starts);
        for (i, term) in others.iter().enumerate() {
            self.plan_addition(i / count, first + i % count, Source::Term(*term));
        }
        let (mut distance, mut round) = (1, others.len().div_ceil(count));
        while distance < count && round < ROUNDS {
            for i in (0..count - distance).step_by(2 * distance) {
                self.plan_addition(round, first + i, Source::Sum(first + i + distance));
            }
            (distance, round) = (2 * distance, round + 1);
        }
        let left = (0..count).step_by(distance).map(|i| Source::Sum(first + i));
        left.map(|source| self.operand(0, source)).collect()
    }

    /// The operand that adds a source to a sum of this part.
    fn operand(&self, part: usize, source: Source) -> Operand {
        let own = match source {
            Source::Term(term) => term.part(),
            Source::Sum(index) => self.sums[index].part(),
        };
        Operand { source, times_lambda: own != part }
    }

    fn plan_addition(&mut self, round: usize, sum: usize, source: Source) {
        let operand = self.operand(self.sums[sum].part(), source);
        if round == self.rounds.len() {
            self.rounds.push(Vec::new());
        }
        self.rounds[round].push(Addition { sum, operand });
    }
}

/// The most multiples that are added one after the other: the fewer, the fewer rounds, and the more sums are in memory.
const TERMS_A_SUM: usize = 3;

/// The most rounds, so that a round's additions are worth its inversion.
const ROUNDS: usize = 5;
