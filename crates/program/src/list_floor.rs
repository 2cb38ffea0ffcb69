//! The floor of a list of accounts: the number of new ones that it must have brought after some time, or it is given up.
//!
//! A limit for one request bounds no list: pages without accounts, repeated accounts and one made-up account a page can go on
//! for ever. The floor rises, so that a list that lasts long must be long: 60 accounts in the first unit of time, 120 in the
//! second, and so on.

use std::time::Duration;

/// A floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListFloor {
    unit: Duration,
    /// Units in which nothing is required.
    grace_units: u64,
}

impl ListFloor {
    /// For new accounts, over the time in which a host answered requests for pages: 60 in the first minute, and 60 more in
    /// every minute than in the one before. A page is answered within half a minute.
    pub const PAGES: Self = Self { unit: Duration::from_secs(60), grace_units: 0 };

    /// For new accounts that are done, over the whole time: none in the first hour, in which a host's limit may delay the run,
    /// then 180 within two hours, and 60 more in every hour than in the one before.
    pub const ACCOUNTS: Self = Self { unit: Duration::from_secs(3600), grace_units: 1 };

    /// The number of accounts that is required after `age`.
    pub fn required(self, age: Duration) -> u64 {
        let units = (age.as_millis() / self.unit.as_millis().max(1)) as u64;
        if units <= self.grace_units {
            0
        } else {
            PER_UNIT / 2 * units.saturating_mul(units.saturating_add(1))
        }
    }

    /// The age at which `accounts` are fewer than required.
    pub fn deadline(self, accounts: u64) -> Duration {
        // required(n) > accounts first holds for n(n + 1) > 2 · accounts / PER_UNIT.
        let squared = accounts / (PER_UNIT / 2);
        let mut units = squared.isqrt().saturating_sub(1).max(self.grace_units + 1);
        while PER_UNIT / 2 * units.saturating_mul(units + 1) <= accounts {
            units += 1;
        }
        self.unit.saturating_mul(u32::try_from(units).unwrap_or(u32::MAX))
    }

    /// Why a list that brought `accounts` in this time is given up, if it is.
    pub fn fault(self, accounts: u64, age: Duration) -> Option<String> {
        let required = self.required(age);
        (accounts < required).then(|| {
            let unit = if self.unit.as_secs() == 60 { "minutes" } else { "hours" };
            let units = age.as_millis() / self.unit.as_millis().max(1);
            let what = if self == Self::PAGES { "in its answers" } else { "done" };
            format!("{accounts} new accounts {what} within {units} {unit}, fewer than {required}")
        })
    }
}

/// Accounts that are required in the first unit of time, and the increase from one unit to the next.
const PER_UNIT: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn the_floor_rises_by_sixty_accounts_with_each_minute() {
        let floor = ListFloor::PAGES;
        assert_eq!(floor.fault(0, MINUTE - Duration::from_millis(1)), None);
        assert!(floor.fault(59, MINUTE).unwrap().contains("fewer than 60"));
        assert_eq!(floor.fault(60, MINUTE), None);
        assert_eq!(floor.required(MINUTE * 2), 60 + 120);
        assert_eq!(floor.required(MINUTE * 3), 60 + 120 + 180);
    }

    #[test]
    fn a_limit_of_an_hour_is_waited_for_and_a_second_one_is_not_unless_accounts_come() {
        let floor = ListFloor::ACCOUNTS;
        assert_eq!(floor.required(HOUR + MINUTE * 59), 0);
        assert_eq!(floor.required(HOUR * 2), 180);
        // One request every two seconds, the lowest rate to a host that is overloaded.
        assert!(floor.fault(1_800 * 24, HOUR * 24).is_none());
    }

    #[test]
    fn the_deadline_is_when_the_accounts_fall_below_the_floor() {
        for floor in [ListFloor::PAGES, ListFloor::ACCOUNTS] {
            for accounts in (0..3_000).chain([10_000, 123_456, 10_000_000]) {
                let deadline = floor.deadline(accounts);
                assert!(floor.fault(accounts, deadline).is_some(), "{accounts}");
                assert!(floor.fault(accounts, deadline - floor.unit).is_none(), "{accounts}");
            }
        }
    }

    #[test]
    fn a_list_of_any_length_at_the_floor_ends() {
        // Ten million accounts at the floor, which no list exceeds.
        assert!(ListFloor::PAGES.deadline(10_000_000) < HOUR * 10);
    }
}
