//! What can be made to go wrong, how often, and did it?
//!
//! A fault that is switched on waits for its occasions: the connections, requests or frames of one
//! server. [`FaultSchedule`] says which of them it strikes. It is counted when it has happened, not when it was
//! meant to, so that a test can show that it tested something.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::spec::Server;
use crate::random::{Random, Seed};

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $fault:ident $name:literal $occasion:ident $low:literal..=$high:literal,)+) => {
        /// Something that goes wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $($(#[doc = $doc])+ $fault,)+
        }

        impl Fault {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$fault),+];

            /// The name, as the command spells it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$fault => $name,)+ }
            }

            /// What it waits for.
            pub fn injection_point(self) -> InjectionPoint {
                match self { $(Self::$fault => InjectionPoint::$occasion,)+ }
            }

            /// Between which numbers its amount is drawn if the dose has none.
            fn amounts(self) -> (u64, u64) {
                match self { $(Self::$fault => ($low, $high),)+ }
            }
        }
    };
}

faults! {
    /// A connection is closed as soon as it is there.
    Drop "drop" Connection 0..=0,
    /// An upgrade is refused with 429 and a `Retry-After` of the amount, in seconds.
    UpgradeTooMany "upgrade-429" Upgrade 1..=1,
    /// An upgrade is refused with 503.
    UpgradeUnavailable "upgrade-503" Upgrade 0..=0,
    /// An upgrade is refused with 403.
    UpgradeForbidden "upgrade-403" Upgrade 0..=0,
    /// The connection of a stream ends when the amount of bytes has gone out behind the upgrade,
    /// wherever in a frame that is.
    Cut "cut" Upgrade 1..=100_000,
    /// Behind the frame of its turn, a stream is silent: not even pings are sent or answered.
    Stall "stall" Frame 0..=0,
    /// A frame comes twice.
    RepeatedSeq "repeated-seq" Frame 0..=0,
    /// A frame does not come: an event is lost.
    MissingSeq "missing-seq" Frame 0..=0,
    /// A frame comes behind the one that follows it.
    ReversedSeq "reversed-seq" Frame 0..=0,
    /// Before a frame comes one of the amount of bytes: by default, longer than any may be.
    OversizedFrame "oversized-frame" Frame 5_000_001..=6_000_000,
    /// Before a frame comes one of the amount of random bytes.
    GarbageFrame "garbage-frame" Frame 1..=300,
    /// Before a frame comes one of a kind that nobody knows, which must be passed by.
    UnknownKind "unknown-kind" Frame 0..=0,
    /// Before a frame comes one of an operation that nobody knows, which must be passed by.
    UnknownOperation "unknown-operation" Frame 0..=0,
    /// A frame comes as text where bytes are expected, or as bytes where text is.
    WrongMessage "wrong-message" Frame 0..=0,
    /// The stream ends with an error frame of the name `ConsumerTooSlow`.
    ErrorFrame "error-frame" Frame 0..=0,
    /// The stream ends with an orderly close.
    Close "close" Frame 0..=0,
    /// A request is answered by 429 and a `Retry-After` of the amount, in seconds.
    RequestTooMany "429" Request 1..=1,
    /// A request is answered by 503, with a page of HTML for a body.
    RequestUnavailable "503" Request 0..=0,
    /// A request is redirected to an address of a private network.
    PrivateRedirect "private-redirect" Request 0..=0,
    /// A repository comes in pieces of 256 bytes, the amount of milliseconds apart.
    SlowRepo "slow-repo" Repository 20..=50,
    /// The connection ends when the amount of bytes of a repository has come.
    CutRepo "cut-repo" Repository 1..=4_000,
    /// Behind the amount of bytes of a repository nothing comes, and the connection stays.
    StalledRepo "stalled-repo" Repository 1..=4_000,
    /// A repository does not end: behind it come blocks without end.
    EndlessRepo "endless-repo" Repository 0..=0,
    /// The directory gives the DID document of somebody else.
    WrongDocument "wrong-document" Document 0..=0,
    /// The directory gives a DID document with a stranger's key.
    WrongKey "wrong-key" Document 0..=0,
    /// The directory gives a DID document that names a host in a private network.
    PrivateHost "private-host" Document 0..=0,
    /// The directory gives a DID document that is not JSON.
    MalformedDocument "malformed-document" Document 0..=0,
    /// A handle resolves to somebody else.
    WrongHandle "wrong-handle" Handle 0..=0,
}

/// What a fault waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectionPoint {
    /// A connection to the server.
    Connection,
    /// A request for a stream.
    Upgrade,
    /// A frame of a stream.
    Frame,
    /// A request for anything but a stream.
    Request,
    /// A request for a whole repository.
    Repository,
    /// A request for a DID document.
    Document,
    /// A request for the DID behind a handle.
    Handle,
}

impl InjectionPoint {
    /// Whether `server` has such occasions.
    pub fn exists_on(self, server: Server) -> bool {
        match self {
            Self::Connection | Self::Request => true,
            Self::Upgrade | Self::Frame => server != Server::Plc,
            Self::Repository | Self::Handle => matches!(server, Server::Pds(_)),
            Self::Document => server == Server::Plc,
        }
    }
}

impl Fault {
    /// The fault of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name() == name)
    }
}

/// Which occasions a fault strikes, and how hard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultSchedule {
    /// How many occasions pass before the first that is struck.
    pub after: u64,
    /// From then on, it strikes one in so many occasions; at least 1.
    pub every: u64,
    /// How often it strikes at most.
    pub times: u64,
    /// How much; what of, the fault says. Without, it is drawn by the seed.
    pub amount: Option<u64>,
    /// Whether the frames of each connection are counted for themselves.
    pub per_connection: bool,
}

impl FaultSchedule {
    /// Every occasion.
    pub const ALWAYS: Self =
        Self { after: 0, every: 1, times: u64::MAX, amount: None, per_connection: false };
    /// The next occasion.
    pub const ONCE: Self = Self { times: 1, ..Self::ALWAYS };

    /// The next so many occasions.
    pub const fn times(times: u64) -> Self {
        Self { times, ..Self::ALWAYS }
    }

    /// The same, when so many occasions have passed.
    pub const fn after(self, after: u64) -> Self {
        Self { after, ..self }
    }

    /// The same, at one in so many occasions.
    pub const fn every(self, every: u64) -> Self {
        Self { every, ..self }
    }

    /// The same, of this amount.
    pub const fn with_amount(self, amount: u64) -> Self {
        Self { amount: Some(amount), ..self }
    }

    /// The same, counting the frames of each connection for themselves.
    pub const fn per_connection(self) -> Self {
        Self { per_connection: true, ..self }
    }

    fn strikes(&self, occasion: u64, struck: u64) -> bool {
        let late = occasion.checked_sub(self.after);
        struck < self.times && late.is_some_and(|late| late.is_multiple_of(self.every.max(1)))
    }
}

/// The switches of all faults. Clones share them.
#[derive(Clone, Debug)]
pub struct Faults(Arc<Board>);

#[derive(Debug)]
struct Board {
    seed: u64,
    rows: Mutex<BTreeMap<(Server, Fault), Row>>,
    /// How many are switched on; while there are none, nobody looks at the rows.
    on: AtomicUsize,
}

#[derive(Debug)]
struct Row {
    dose: Option<FaultSchedule>,
    occasions: u64,
    struck: u64,
    fired: u64,
    random: Random,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        let on = AtomicUsize::new(0);
        Self(Arc::new(Board { seed, rows: Mutex::default(), on }))
    }

    /// Lets `fault` strike occasions of `server`, which are counted from now on.
    ///
    /// # Panics
    /// If the server has no such occasions.
    pub fn enable(&self, server: Server, fault: Fault, dose: FaultSchedule) {
        assert!(
            fault.injection_point().exists_on(server),
            "{} does not happen to a {server}",
            fault.name()
        );
        let label = format!("fault {} {server}", fault.name());
        let mut rows = self.0.rows.lock().expect(UNPOISONED);
        let row = rows.entry((server, fault)).or_insert_with(|| Row {
            dose: None,
            occasions: 0,
            struck: 0,
            fired: 0,
            random: Seed::new(self.0.seed, &label).stream(0),
        });
        (row.dose, row.occasions, row.struck) = (Some(dose), 0, 0);
        self.count_on(&rows);
    }

    /// Lets it strike no more. What is under way goes on, and its count stays.
    pub fn disable(&self, server: Server, fault: Fault) {
        let mut rows = self.0.rows.lock().expect(UNPOISONED);
        if let Some(row) = rows.get_mut(&(server, fault)) {
            row.dose = None;
        }
        self.count_on(&rows);
    }

    /// How often it has happened since the network was started.
    pub fn fired(&self, server: Server, fault: Fault) -> u64 {
        let rows = self.0.rows.lock().expect(UNPOISONED);
        rows.get(&(server, fault)).map_or(0, |row| row.fired)
    }

    /// How often each fault has happened that was ever switched on.
    pub fn counts(&self) -> Vec<(Server, Fault, u64)> {
        let rows = self.0.rows.lock().expect(UNPOISONED);
        rows.iter().map(|((server, fault), row)| (*server, *fault, row.fired)).collect()
    }

    /// The faults that were switched on and have never happened: a test that ends with some has not
    /// tested what it says.
    pub fn unfired(&self) -> Vec<(Server, Fault)> {
        let never = self.counts().into_iter().filter(|(.., fired)| *fired == 0);
        never.map(|(server, fault, _)| (server, fault)).collect()
    }

    /// Passes an occasion; gives the amount if the fault strikes it. Once it has happened,
    /// [`Faults::count`] is told.
    pub(super) fn strike(&self, server: Server, fault: Fault) -> Option<u64> {
        self.strike_nth(server, fault, None)
    }

    /// The same, when it is the occasion of this number on its connection.
    pub(super) fn strike_nth(
        &self,
        server: Server,
        fault: Fault,
        on_connection: Option<u64>,
    ) -> Option<u64> {
        if self.are_off() {
            return None;
        }
        let mut rows = self.0.rows.lock().expect(UNPOISONED);
        let row = rows.get_mut(&(server, fault))?;
        let dose = row.dose?;
        let occasion = on_connection.filter(|_| dose.per_connection).unwrap_or(row.occasions);
        row.occasions += 1;
        if !dose.strikes(occasion, row.struck) {
            return None;
        }
        row.struck += 1;
        let (low, high) = fault.amounts();
        Some(dose.amount.unwrap_or_else(|| row.random.between(low, high)))
    }

    /// [`Faults::strike`] for what happens at once.
    pub(super) fn hit(&self, server: Server, fault: Fault) -> Option<u64> {
        let amount = self.strike(server, fault);
        amount.inspect(|_| self.count(server, fault))
    }

    /// It has happened.
    pub(super) fn count(&self, server: Server, fault: Fault) {
        let mut rows = self.0.rows.lock().expect(UNPOISONED);
        if let Some(row) = rows.get_mut(&(server, fault)) {
            row.fired += 1;
        }
    }

    /// Whether nothing at all is switched on.
    pub(super) fn are_off(&self) -> bool {
        self.0.on.load(Ordering::Relaxed) == 0
    }

    fn count_on(&self, rows: &BTreeMap<(Server, Fault), Row>) {
        let on = rows.values().filter(|row| row.dose.is_some()).count();
        self.0.on.store(on, Ordering::Relaxed);
    }
}

/// Why a lock can be taken.
pub(super) const UNPOISONED: &str = "nobody panics while holding this lock";
