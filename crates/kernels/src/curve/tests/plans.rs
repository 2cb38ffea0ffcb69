//! The plans of additions: they add the multiples that the digits select, and every one once.

use super::super::digits::{GENERATOR_WINDOWS, digits_a_part, parts};
use super::super::plan::{Operand, Order, Plan, Source, Term};
use super::*;

/// The multiples of which a point is the sum, and whether they are multiplied by λ.
type Summands = Vec<(Term, bool)>;

fn summands(operand: Operand, sums: &[Summands]) -> Summands {
    let source = match operand.source {
        Source::Term(term) => vec![(term, false)],
        Source::Sum(index) => sums[index].clone(),
    };
    let add_lambda = |(term, times_lambda)| {
        assert!(!(times_lambda && operand.times_lambda), "λ once at most");
        (term, times_lambda || operand.times_lambda)
    };
    source.into_iter().map(add_lambda).collect()
}

/// The sums after all rounds. Asserts that no addition of a round depends on another one.
fn sums_of(plan: &Plan) -> Vec<Summands> {
    let mut sums: Vec<Summands> = plan.sums.iter().map(|term| vec![(*term, false)]).collect();
    for round in &plan.rounds {
        assert!(!round.is_empty());
        let before = sums.clone();
        let mut used = Vec::new();
        for addition in round {
            used.push(addition.sum);
            used.extend(match addition.operand.source {
                Source::Sum(index) => Some(index),
                Source::Term(_) => None,
            });
            sums[addition.sum].extend(summands(addition.operand, &before));
        }
        let count = used.len();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), count, "a sum occurs once in a round");
    }
    sums
}

on_each_curve! {
    every_plan_adds_each_multiple_once<C> {
        let orders = [Order::Sequence, Order::Rounds];
        for plan in orders.map(|order| TableSize::ALL.map(|size| Plan::of::<C>(size, order))).concat() {
            let sums = sums_of(plan);
            let total = |operands: &[Operand]| {
                operands.iter().flat_map(|operand| summands(*operand, &sums)).collect::<Summands>()
            };
            let mut found = Vec::new();
            for (lowest, operands) in plan.key.iter().enumerate() {
                for (term, times_lambda) in total(operands) {
                    let Term::Key { window, part, digit } = term else { panic!("{term:?}") };
                    assert_eq!((digit, times_lambda), (lowest + window * plan.key.len(), part == 1));
                    assert!(!found.contains(&term), "{term:?} twice");
                    found.push(term);
                }
            }
            assert_eq!(found.len(), digits_a_part::<C>() * parts::<C>());
            let generator = total(&plan.generator);
            for digit in 0..GENERATOR_WINDOWS {
                assert!(generator.contains(&(Term::Generator { digit }, false)));
            }
            assert_eq!(generator.len(), GENERATOR_WINDOWS);
        }
    }
}
