//! The measured shares of kinds and lengths of events.
//!
//! The shares of the kinds are from some 200 million events of public relays, without the one kind that no
//! specification describes; the shares of rarer kinds are from a sample of 50,000. The lengths are from 13,825
//! events that were read one by one; the longest article, and kind 30618, are from 6,232 published events.

/// A kind of event.
pub(super) struct Kind {
    pub(super) number: u16,
    /// The number of events of this kind among about 10,000.
    pub(super) weight: u64,
    pub(super) bytes: LengthQuantiles,
}

/// The lengths of the JSON of events in bytes at [`QUANTILES`].
pub(super) struct LengthQuantiles([u64; 10]);

/// The quantiles of [`LengthQuantiles`] in thousandths.
const QUANTILES: [u64; 10] = [0, 100, 250, 500, 750, 900, 950, 990, 999, 1000];

impl LengthQuantiles {
    /// The length at `quantile` of [`QUANTILE_END`].
    ///
    /// Between two quantiles, lengths are the mean of linear and quadratic interpolation, as measured.
    pub(super) fn at(&self, quantile: u64) -> u64 {
        let passed = QUANTILES[1..].iter().take_while(|it| **it * SCALE <= quantile).count();
        let step = passed.min(QUANTILES.len() - 2);
        let (from, to) = (QUANTILES[step] * SCALE, QUANTILES[step + 1] * SCALE);
        let (done, all) = (quantile - from, to - from);
        let (least, most) = (self.0[step], self.0[step + 1]);
        let interpolated = done * (all + done) / (2 * all);
        least + (most - least) * interpolated / all
    }
}

/// The quantile above all events.
pub(super) const QUANTILE_END: u64 = 1000 * SCALE;
const SCALE: u64 = 1000;

const fn kind(number: u16, weight: u64, bytes: [u64; 10]) -> Kind {
    Kind { number, weight, bytes: LengthQuantiles(bytes) }
}

/// All kinds; a kind that only some clients use represents many similar kinds.
pub(super) const KINDS: [Kind; 22] = [
    kind(1, 3896, [360, 430, 520, 648, 850, 1037, 1350, 2169, 9_700, 100_000]),
    kind(7, 1889, [415, 488, 488, 500, 620, 915, 1000, 1440, 1600, 1800]),
    kind(4, 563, [438, 466, 490, 550, 700, 1111, 1500, 2086, 2170, 2300]),
    kind(0, 473, [342, 362, 380, 437, 640, 824, 950, 1257, 4_000, 25_900]),
    kind(3, 454, [342, 578, 1000, 2821, 10_000, 44_460, 66_000, 202_934, 400_000, 450_386]),
    kind(6, 440, [500, 522, 560, 1043, 1500, 2173, 2700, 3847, 9_000, 10_603]),
    kind(5, 312, [440, 453, 512, 560, 600, 633, 779, 1071, 3_000, 4_989]),
    kind(9735, 281, [1427, 1538, 1650, 1848, 1960, 2078, 2200, 2532, 2650, 2700]),
    kind(1059, 217, [1004, 1873, 1883, 2124, 2300, 3261, 5_000, 14_161, 19_000, 19_621]),
    kind(9041, 215, [577, 580, 583, 590, 598, 600, 602, 604, 606, 610]),
    kind(10002, 188, [346, 390, 400, 432, 520, 609, 1100, 5360, 6000, 6500]),
    kind(42, 154, [560, 600, 640, 720, 880, 1150, 1500, 2400, 5_000, 6_000]),
    kind(30311, 110, [600, 700, 850, 1050, 1400, 1900, 2600, 5_000, 8_000, 9_000]),
    kind(30078, 100, [400, 430, 500, 700, 1300, 3500, 9_000, 60_000, 250_000, 350_000]),
    kind(34236, 90, [900, 1050, 1150, 1300, 1450, 1600, 1750, 2100, 2500, 2600]),
    kind(30023, 80, [415, 3128, 3868, 7355, 11_500, 18_521, 23_000, 30_989, 71_000, 73_000]),
    kind(5300, 74, [605, 605, 605, 605, 605, 605, 610, 623, 623, 623]),
    kind(31234, 72, [400, 401, 567, 1171, 1952, 2363, 3220, 5268, 5268, 5300]),
    kind(9734, 70, [549, 619, 666, 732, 831, 1051, 1123, 1546, 1650, 1700]),
    kind(6300, 61, [3178, 3338, 3563, 4410, 4949, 5026, 5026, 5026, 5026, 5030]),
    kind(30618, 20, [440, 448, 456, 460, 463, 668, 2_000, 5_074, 5_100, 5_100]),
    kind(1985, 50, [1006, 1008, 1472, 4607, 4725, 4793, 4795, 4796, 4796, 4796]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_pass_through_the_quantiles_and_never_decrease() {
        for Kind { number, bytes, .. } in &KINDS {
            for (quantile, len) in QUANTILES.iter().zip(bytes.0) {
                assert_eq!(bytes.at(quantile * SCALE), len, "kind {number}, {quantile}");
            }
            let lens: Vec<u64> =
                (0..=QUANTILE_END).step_by(97).map(|quantile| bytes.at(quantile)).collect();
            assert!(lens.is_sorted(), "kind {number}");
        }
    }

    #[test]
    fn half_way_between_two_quantiles_the_length_is_interpolated() {
        for Kind { number, bytes, .. } in &KINDS {
            for (at, [least, most]) in bytes.0.array_windows().enumerate() {
                let middle = (QUANTILES[at] + QUANTILES[at + 1]) * SCALE / 2;
                assert_eq!(bytes.at(middle), least + (most - least) * 3 / 8, "kind {number}, {at}");
            }
        }
    }
}
