//! Axes: round ticks on linear and logarithmic scales, and their labels.

use results::terminal::thousands;

/// Ticks from the last one up to `least` to the first one from `greatest` on: 1, 2 and 5 of every power of ten, or
/// powers of ten alone where these would be more than [`MOST`].
pub(super) fn log_ticks(least: f64, greatest: f64) -> Vec<f64> {
    let [from, to] = [least, greatest].map(|number| number.clamp(LEAST, GREATEST));
    let to = if to > from { to } else { from * 2.0 };
    let [first, last] = [from.log10().floor() as i32, to.log10().ceil() as i32 + 1];
    let powers = || (first..=last).map(|power| 10f64.powi(power));
    let fine = powers().flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * power));
    let fine = between(fine.collect(), from, to);
    if fine.len() <= MOST {
        return fine;
    }
    let stride = (last - first).unsigned_abs() as usize / MOST + 1;
    between(powers().step_by(stride).collect(), from, to)
}

/// The powers of ten from the last one up to `least` to the first one from `greatest` on.
pub(super) fn powers_of_ten(least: f64, greatest: f64) -> Vec<f64> {
    let [from, to] = [least, greatest].map(|number| number.clamp(LEAST, GREATEST));
    let [first, last] = [from.log10().floor() as i32, to.log10().ceil() as i32];
    (first..=last.max(first + 1)).map(|power| 10f64.powi(power)).collect()
}

/// Round ticks in equal steps that enclose both numbers, from zero on.
pub(super) fn linear_ticks(least: f64, greatest: f64) -> Vec<f64> {
    let span = (greatest - least).max(0.1 * greatest).max(1.0);
    let step = super::step(span);
    let first = ((least - 0.05 * span).max(0.0) / step).floor();
    let count = ((greatest + 0.05 * span) / step - first).ceil();
    (0..=count as u32).map(|at| (first + f64::from(at)) * step).collect()
}

/// The ticks from the last one up to `from` to the first one from `to` on.
fn between(ticks: Vec<f64>, from: f64, to: f64) -> Vec<f64> {
    let first = ticks.iter().rposition(|tick| *tick <= from * EVEN).unwrap_or_default();
    let end = ticks.iter().position(|tick| *tick * EVEN >= to).unwrap_or(ticks.len() - 1);
    ticks[first..=end.max(first)].to_vec()
}

/// A short label: `0.01`, `500`, `20,000`, `5 M`.
pub(super) fn label(number: f64) -> String {
    match number {
        number if number < 1.0 => format!("{number}"),
        number if number < 1e6 => thousands(number),
        number if number < 1e9 => format!("{} M", number / 1e6),
        number => format!("{number:.0e}"),
    }
}

/// Ticks of an axis at most.
const MOST: usize = 9;
/// The numbers that an axis can show.
const LEAST: f64 = 1e-6;
const GREATEST: f64 = 1e15;
/// Powers of ten are not exact.
const EVEN: f64 = 1.0 + 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithmic_ticks_enclose_the_numbers_and_are_few() {
        assert_eq!(log_ticks(233_000.0, 4.9e6), [2e5, 5e5, 1e6, 2e6, 5e6]);
        assert_eq!(log_ticks(1e3, 1e3), [1e3, 2e3]);
        for (least, greatest) in [(0.0, f64::MAX), (3.0, 4.0), (1e-9, 7e5), (20.0, 1e8)] {
            let ticks = log_ticks(least, greatest);
            assert!((2..=2 * MOST).contains(&ticks.len()), "{ticks:?}");
            assert!(ticks[0] <= least.max(LEAST) * EVEN, "{ticks:?}");
            assert!(ticks[ticks.len() - 1] * EVEN >= greatest.min(GREATEST), "{ticks:?}");
        }
        assert_eq!(powers_of_ten(0.012, 190.0), [0.01, 0.1, 1.0, 10.0, 100.0, 1e3]);
        assert_eq!(powers_of_ten(1.0, 1.0), [1.0, 10.0]);
    }

    #[test]
    fn linear_ticks_enclose_the_numbers_and_are_few() {
        for (least, greatest) in [(944.0, 1857.0), (0.0, 3.0), (7.0, 7.0), (0.0, 0.0), (1.0, 4e9)] {
            let ticks = linear_ticks(least, greatest);
            assert!((2..=9).contains(&ticks.len()), "{ticks:?}");
            assert!(ticks[0] <= least && ticks[ticks.len() - 1] >= greatest, "{ticks:?}");
        }
    }

    #[test]
    fn labels_are_short() {
        let labels = [0.01, 1.0, 500.0, 2e3, 2e5, 5e6, 1e12].map(label);
        assert_eq!(labels, ["0.01", "1", "500", "2,000", "200,000", "5 M", "1e12"]);
    }
}
