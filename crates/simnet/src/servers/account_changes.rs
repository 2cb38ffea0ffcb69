//! Changes of accounts while a network runs, drawn from its seed.

use super::hosted_account::AccountStatus;
use super::simulation::Simulation;
use crate::random::{Random, Seed};

/// An endless sequence of changes of accounts.
#[derive(Clone, Debug)]
pub struct AccountChanges {
    random: Random,
    made: usize,
}

/// A change of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccountChange {
    /// It moves to another host, one that answers.
    Moved,
    /// Its host takes it down.
    TakenDown,
    /// It writes a commit.
    Written,
    /// It is deleted.
    Deleted,
    /// It is created.
    Added,
}

impl AccountChange {
    /// All changes, in the order in which they are made in turn.
    pub const ALL: [Self; 5] =
        [Self::Moved, Self::TakenDown, Self::Written, Self::Deleted, Self::Added];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::TakenDown => "takendown",
            Self::Written => "written",
            Self::Deleted => "deleted",
            Self::Added => "added",
        }
    }
}

impl AccountChanges {
    /// The changes of the network of this seed.
    pub fn new(seed: u64) -> Self {
        Self { random: Seed::new(seed, "changes of accounts").stream(0), made: 0 }
    }

    /// Makes the next change. `None` if no account is active, or none can move.
    pub fn make_next(&mut self, network: &Simulation) -> Option<AccountChange> {
        let change = AccountChange::ALL[self.made % AccountChange::ALL.len()];
        self.made += 1;
        match change {
            AccountChange::Moved => {
                let account = self.active_account(network)?;
                let host = self.other_host(network, network.account(account).host)?;
                network.migrate_account(account, host);
            }
            AccountChange::TakenDown => {
                let account = self.active_account(network)?;
                network.set_account_status(account, AccountStatus::TakenDown);
            }
            AccountChange::Written => network.write_commit_as(self.active_account(network)?),
            AccountChange::Deleted => network.delete_account(self.active_account(network)?),
            AccountChange::Added => _ = network.add_account(),
        }
        Some(change)
    }

    /// A random active account; `None` if none of many draws is active.
    fn active_account(&mut self, network: &Simulation) -> Option<usize> {
        let count = network.account_count() as u64;
        let mut draws = (0..MAX_DRAWS).map(|_| self.random.below(count) as usize);
        draws.find(|number| network.account(*number).status == AccountStatus::Active)
    }

    /// A host that answers, other than `home`.
    fn other_host(&mut self, network: &Simulation, home: usize) -> Option<usize> {
        let conditions = network.host_conditions();
        let hosts =
            (0..conditions.len()).filter(|host| *host != home && conditions[*host].is_alive());
        let hosts: Vec<usize> = hosts.collect();
        (!hosts.is_empty()).then(|| *self.random.pick(&hosts))
    }
}

/// Draws for an active account.
const MAX_DRAWS: usize = 100;
