//! Durations in the words of a person.

use std::fmt;
use std::time::Duration;

/// Displays a duration with its one or two largest units: `250 ms`, `1.5 s`, `2 min 30 s`, `1 day`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        // Rounded first: 59.96 s is a minute.
        let (seconds, tenths) = ((millis + 500) / 1000, (millis + 50) / 100);
        match seconds {
            _ if millis < 1000 => write!(f, "{millis} ms"),
            _ if tenths < 100 && tenths % 10 != 0 => write!(f, "{}.{} s", tenths / 10, tenths % 10),
            0..60 => write!(f, "{seconds} s"),
            60..3600 => units(f, [(seconds / 60, " min"), (seconds % 60, " s")]),
            3600..86_400 => units(f, [(seconds / 3600, " h"), (seconds % 3600 / 60, " min")]),
            _ => {
                let days = seconds / 86_400;
                let unit = if days == 1 { " day" } else { " days" };
                units(f, [(days, unit), (seconds % 86_400 / 3600, " h")])
            }
        }
    }
}

/// Writes the larger unit, and the smaller one unless it is zero.
fn units(f: &mut fmt::Formatter<'_>, [large, small]: [(u128, &str); 2]) -> fmt::Result {
    write!(f, "{}{}", large.0, large.1)?;
    if small.0 > 0 { write!(f, " {}{}", small.0, small.1) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_rounded_to_its_two_largest_units() {
        for (millis, text) in [
            (0, "0 ms"),
            (250, "250 ms"),
            (1_000, "1 s"),
            (1_540, "1.5 s"),
            (59_960, "1 min"),
            (150_000, "2 min 30 s"),
            (3_600_000, "1 h"),
            (86_399_999, "1 day"),
            (90_000_000, "1 day 1 h"),
            (200_000_000, "2 days 7 h"),
        ] {
            assert_eq!(DurationText(Duration::from_millis(millis)).to_string(), text);
        }
    }
}
