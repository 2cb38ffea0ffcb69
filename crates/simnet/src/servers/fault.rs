//! Fault injection: the faults of servers, their schedules, and counts of injected faults.
//!
//! An enabled fault is injected at passes of its injection point: connections, requests or frames of one
//! server. A [`FaultSchedule`] selects the passes. A fault is counted when it has happened, not when it is
//! due, so that a test can show that it tested something.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::spec::Server;
use crate::random::{Random, Seed};

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $fault:ident $name:literal $point:ident $low:literal..=$high:literal,)+) => {
        /// A fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault {
            $($(#[doc = $doc])+ $fault,)+
        }

        impl Fault {
            /// All faults.
            pub const ALL: &[Self] = &[$(Self::$fault),+];

            /// The name on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$fault => $name,)+ }
            }

            /// The injection point.
            pub fn injection_point(self) -> InjectionPoint {
                match self { $(Self::$fault => InjectionPoint::$point,)+ }
            }

            /// The range of random amounts for schedules without one.
            fn amounts(self) -> (u64, u64) {
                match self { $(Self::$fault => ($low, $high),)+ }
            }
        }
    };
}

faults! {
    /// A connection is closed as soon as it is accepted.
    Drop "drop" Connection 0..=0,
    /// A connection is accepted, and nothing is answered on it.
    Silence "silence" Connection 0..=0,
    /// An upgrade is refused with 429 and a `Retry-After` of the amount, in seconds.
    UpgradeTooMany "upgrade-429" Upgrade 1..=1,
    /// An upgrade is refused with 503.
    UpgradeUnavailable "upgrade-503" Upgrade 0..=0,
    /// An upgrade is refused with 403.
    UpgradeForbidden "upgrade-403" Upgrade 0..=0,
    /// An upgrade is refused with 404.
    UpgradeNotFound "upgrade-404" Upgrade 0..=0,
    /// An upgrade is refused with 501.
    UpgradeNotImplemented "upgrade-501" Upgrade 0..=0,
    /// The connection of a stream ends after the amount of bytes after the upgrade, even within a frame.
    Cut "cut" Upgrade 1..=100_000,
    /// After a frame, a stream stalls: not even pings are sent or answered.
    Stall "stall" Frame 0..=0,
    /// A frame is sent twice.
    RepeatedSeq "repeated-seq" Frame 0..=0,
    /// A frame is skipped: an event is lost.
    MissingSeq "missing-seq" Frame 0..=0,
    /// A frame is sent after the next one.
    ReversedSeq "reversed-seq" Frame 0..=0,
    /// A frame of the amount of bytes is sent before a frame; by default longer than the limit.
    OversizedFrame "oversized-frame" Frame 5_000_001..=6_000_000,
    /// A frame of the amount of random bytes is sent before a frame.
    GarbageFrame "garbage-frame" Frame 1..=300,
    /// A frame of an unknown kind, which readers must skip, is sent before a frame.
    UnknownKind "unknown-kind" Frame 0..=0,
    /// A frame of an unknown operation, which readers must skip, is sent before a frame.
    UnknownOperation "unknown-operation" Frame 0..=0,
    /// A frame is sent as text instead of bytes, or as bytes instead of text.
    WrongMessage "wrong-message" Frame 0..=0,
    /// The stream ends with the error frame `ConsumerTooSlow`.
    ErrorFrame "error-frame" Frame 0..=0,
    /// The stream ends with a close frame.
    Close "close" Frame 0..=0,
    /// The server answers a request with 429 and a `Retry-After` of the amount, in seconds.
    RequestTooMany "429" Request 1..=1,
    /// The server answers a request with 429 and a page of HTML, without a header that says for how long.
    RequestTooManyUnstated "429-unstated" Request 0..=0,
    /// A request is answered after the amount of milliseconds.
    LateAnswer "late-answer" Request 50..=400,
    /// The server answers a request with 503 and a page of HTML.
    RequestUnavailable "503" Request 0..=0,
    /// A host states a revision of an account that is the amount of days older than the current one.
    OldRev "old-rev" Request 1..=30,
    /// A page of a list has entries that name no account or host, and others with optional values of no use.
    OddEntries "odd-entries" Request 0..=0,
    /// A page of a list has its first entry twice.
    ListRepeats "list-repeats" Request 0..=0,
    /// The cursor of the next page of a list is the cursor of the page, or the first one.
    ListStuck "list-stuck" Request 0..=0,
    /// A list has an account that nobody has.
    ListUnserved "list-unserved" Request 0..=0,
    /// A list lacks its first entry.
    ListOmits "list-omits" Request 0..=0,
    /// A list states revisions that are the amount of days older than the current ones.
    ListOldRev "list-old-rev" Request 1..=30,
    /// A list states inactive accounts as active.
    ListActive "list-active" Request 0..=0,
    /// The status of an account is answered for another account.
    StatusOther "status-other" Request 0..=0,
    /// An account that the host does not have is active.
    UnknownActive "unknown-active" Request 0..=0,
    /// The headers of an answer leave more requests than their limit has.
    RateHeaders "rate-headers" Request 0..=0,
    /// A request is redirected to an address of a private network.
    PrivateRedirect "private-redirect" Request 0..=0,
    /// The server has no `getBlocks`.
    NoBlocks "no-blocks" Repository 0..=0,
    /// The last requested block is left out.
    WithheldBlock "withheld-block" Repository 0..=0,
    /// The commit is sent with the requested blocks.
    ExtraBlock "extra-block" Repository 0..=0,
    /// A repository is sent in parts of 256 bytes, the amount of milliseconds apart.
    SlowRepo "slow-repo" Repository 20..=50,
    /// The connection ends after the amount of bytes of a repository.
    CutRepo "cut-repo" Repository 1..=4_000,
    /// After the amount of bytes of a repository the response stalls with an open connection.
    StalledRepo "stalled-repo" Repository 1..=4_000,
    /// A repository is followed by an endless sequence of blocks.
    EndlessRepo "endless-repo" Repository 0..=0,
    /// A repository is followed by the amount of zeros in MiB, and compressed with gzip, even without a request for it.
    BombRepo "bomb-repo" Repository 4096..=4096,
    /// A repository has one more commit, correctly signed, whose revision is the amount of days ahead.
    FutureRepo "future-repo" Repository 365..=3650,
    /// The server does not have a blob.
    WithheldBlob "withheld-blob" Blob 0..=0,
    /// A byte of a blob is another.
    AlteredBlob "altered-blob" Blob 0..=0,
    /// The connection ends within a blob.
    CutBlob "cut-blob" Blob 0..=0,
    /// A repository has a commit that is the amount of days older than the newest one, correctly signed.
    OldRepo "old-repo" Repository 1..=30,
    /// The commit of a repository is signed with a key of nobody.
    ForeignRepo "foreign-repo" Repository 0..=0,
    /// The tree of a repository has a root without records, correctly signed.
    OddTree "odd-tree" Repository 0..=0,
    /// A repository lacks its last record.
    RepoWithoutRecord "repo-without-record" Repository 0..=0,
    /// A byte of the last block of a repository is wrong.
    DamagedRepo "damaged-repo" Repository 0..=0,
    /// The repositories of inactive accounts are served.
    ServesInactive "serves-inactive" Repository 0..=0,
    /// The repository of an active account is refused.
    RefusesRepo "refuses-repo" Repository 0..=0,
    /// The proof of a record lacks the root of the tree.
    RecordWithoutNode "record-without-node" Repository 0..=0,
    /// A record is said to be missing.
    RecordDenied "record-denied" Repository 0..=0,
    /// A `#commit` lacks `prevData`.
    NoPrevData "no-prev-data" Event 0..=0,
    /// A `#commit` has the `prevData` of another tree.
    WrongPrevData "wrong-prev-data" Event 0..=0,
    /// A `#commit` names another preceding revision.
    WrongSince "wrong-since" Event 0..=0,
    /// An update or a deletion of a `#commit` does not name the replaced record.
    OpWithoutPrev "op-without-prev" Event 0..=0,
    /// A `#commit` lacks its last operation.
    HiddenOp "hidden-op" Event 0..=0,
    /// A `#commit` lacks the root of its tree.
    EventWithoutNode "event-without-node" Event 0..=0,
    /// A `#commit` lacks the record of a create or an update.
    EventWithoutRecord "event-without-record" Event 0..=0,
    /// A byte of a block of a `#commit` is wrong.
    WrongHash "wrong-hash" Event 0..=0,
    /// A `#commit` is marked `tooBig`.
    TooBig "too-big" Event 0..=0,
    /// The time of a `#commit` is not a datetime.
    WrongTime "wrong-time" Event 0..=0,
    /// A `#commit` is sent again as the next event.
    RepeatedCommit "repeated-commit" Event 0..=0,
    /// The handle of an `#identity` is not a handle.
    MalformedHandle "malformed-handle" Event 0..=0,
    /// A `#sync` has the amount of bytes of blocks that it does not need.
    LargeSync "large-sync" Event 10_000..=20_000,
    /// An `#account` of an active account has the status `takendown`.
    ContradictoryAccount "contradictory-account" Event 0..=0,
    /// An `#account` says the opposite.
    OppositeAccount "opposite-account" Event 0..=0,
    /// A stream with a cursor starts with the next event.
    IgnoredCursor "ignored-cursor" Upgrade 0..=0,
    /// A stream with a cursor is told that the cursor is outdated.
    FalseOutdated "false-outdated" Upgrade 0..=0,
    /// A frame of a stream with a cursor has another time than it had at first.
    AlteredReplay "altered-replay" Frame 0..=0,
    /// A frame of a stream with a cursor is skipped.
    MissingReplay "missing-replay" Frame 0..=0,
    /// A frame has the sequence number of the frame before it.
    ReusedSeq "reused-seq" Frame 0..=0,
    /// A record of an account is missing in the archive.
    WithheldRecord "withheld-record" History 0..=0,
    /// A record of an account has another value in the archive.
    AlteredRecord "altered-record" History 0..=0,
    /// The archive has a record that the account does not have.
    ForgedRecord "forged-record" History 0..=0,
    /// A byte of every block of a segment is wrong.
    DamagedBlock "damaged-block" Segment 0..=0,
    /// The checksum of a segment is wrong.
    WrongChecksum "wrong-checksum" Segment 0..=0,
    /// A segment is of a version that does not exist.
    UnknownVersion "unknown-version" Segment 0..=0,
    /// A plan states that it covers more than the archive has.
    PlanBeyond "plan-beyond" Plan 0..=0,
    /// A plan states that it covers nothing, so that the next page would be the same.
    PlanStuck "plan-stuck" Plan 0..=0,
    /// A plan names a file that is no segment.
    PlanName "plan-name" Plan 0..=0,
    /// A plan names the checksums of segments that were replaced meanwhile.
    PlanOutdated "plan-outdated" Plan 0..=0,
    /// A plan names a segment twice.
    PlanOrder "plan-order" Plan 0..=0,
    /// The pages of the export lack the amount of its newest operations.
    PageBehind "page-behind" Export 1..=5,
    /// A look of the stream of the export at new operations misses the amount of the newest ones.
    StreamBehind "stream-behind" Export 1..=5,
    /// The directory returns the DID document of another account.
    WrongDocument "wrong-document" Document 0..=0,
    /// The directory returns a DID document with a key of another account.
    WrongKey "wrong-key" Document 0..=0,
    /// The directory returns a DID document with a host in a private network.
    PrivateHost "private-host" Document 0..=0,
    /// The directory returns a DID document without a handle.
    NoHandle "no-handle" Document 0..=0,
    /// The directory returns a DID document that is not JSON.
    MalformedDocument "malformed-document" Document 0..=0,
    /// A handle resolves to another account.
    WrongHandle "wrong-handle" Handle 0..=0,
}

/// The point at which a fault is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectionPoint {
    /// A connection to the server.
    Connection,
    /// A request for a stream.
    Upgrade,
    /// A frame of a stream.
    Frame,
    /// An event of a kind that the fault alters, when a server adds it to its log.
    Event,
    /// A request for anything but a stream.
    Request,
    /// A request for a repository, or for blocks of it.
    Repository,
    /// A request for a blob.
    Blob,
    /// A request for a DID document.
    Document,
    /// A page of the export of the directory, or a look of its stream at new operations.
    Export,
    /// A request for the DID of a handle.
    Handle,
    /// An account whose history becomes part of the archive of a Jetstream.
    History,
    /// A request for a segment of an archive, or for a block of it.
    Segment,
    /// A request for a plan of an archive.
    Plan,
}

impl InjectionPoint {
    /// Whether `server` has this injection point.
    pub fn exists_on(self, server: Server) -> bool {
        match self {
            Self::Connection | Self::Request | Self::Upgrade | Self::Frame => true,
            Self::Event => matches!(server, Server::Pds(_) | Server::Relay(_)),
            Self::Repository | Self::Blob | Self::Handle => matches!(server, Server::Pds(_)),
            Self::Document | Self::Export => server == Server::Plc,
            Self::History | Self::Segment | Self::Plan => matches!(server, Server::Jetstream(_)),
        }
    }
}

impl Fault {
    /// The fault of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name() == name)
    }
}

/// The passes at which a fault is injected, and its amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultSchedule {
    /// The number of passes before the first injection.
    pub after: u64,
    /// The interval of injections in passes from then on; at least 1.
    pub every: u64,
    /// The maximum number of injections.
    pub times: u64,
    /// The amount, in the unit of the fault; `None` draws it from the seed.
    pub amount: Option<u64>,
    /// Whether the frames of every connection are counted separately.
    pub per_connection: bool,
}

impl FaultSchedule {
    /// Every pass.
    pub const ALWAYS: Self =
        Self { after: 0, every: 1, times: u64::MAX, amount: None, per_connection: false };
    /// The next pass.
    pub const ONCE: Self = Self { times: 1, ..Self::ALWAYS };

    /// The next `times` passes.
    pub const fn times(times: u64) -> Self {
        Self { times, ..Self::ALWAYS }
    }

    /// The same after `after` passes.
    pub const fn after(self, after: u64) -> Self {
        Self { after, ..self }
    }

    /// The same at every `every`-th pass.
    pub const fn every(self, every: u64) -> Self {
        Self { every, ..self }
    }

    /// The same with this amount.
    pub const fn with_amount(self, amount: u64) -> Self {
        Self { amount: Some(amount), ..self }
    }

    /// The same with the frames of every connection counted separately.
    pub const fn per_connection(self) -> Self {
        Self { per_connection: true, ..self }
    }

    fn applies(&self, pass: u64, triggered: u64) -> bool {
        let since_first = pass.checked_sub(self.after);
        triggered < self.times
            && since_first.is_some_and(|passes| passes.is_multiple_of(self.every.max(1)))
    }
}

/// The faults of all servers. Clones share them.
#[derive(Clone, Debug)]
pub struct Faults(Arc<FaultTable>);

#[derive(Debug)]
struct FaultTable {
    seed: u64,
    rows: Mutex<BTreeMap<(Server, Fault), FaultState>>,
    /// The number of enabled faults; while it is 0, the table is not locked.
    enabled: AtomicUsize,
}

#[derive(Debug)]
struct FaultState {
    schedule: Option<FaultSchedule>,
    passes: u64,
    triggered: u64,
    fired: u64,
    random: Random,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        let enabled = AtomicUsize::new(0);
        Self(Arc::new(FaultTable { seed, rows: Mutex::default(), enabled }))
    }

    /// Enables `fault` of `server`; passes are counted from now on.
    ///
    /// # Panics
    /// If the server does not have the injection point.
    pub fn enable(&self, server: Server, fault: Fault, schedule: FaultSchedule) {
        assert!(
            fault.injection_point().exists_on(server),
            "{} cannot be injected into a {server}",
            fault.name()
        );
        let label = format!("fault {} {server}", fault.name());
        let mut rows = self.0.rows.lock().expect(UNPOISONED);
        let row = rows.entry((server, fault)).or_insert_with(|| FaultState {
            schedule: None,
            passes: 0,
            triggered: 0,
            fired: 0,
            random: Seed::new(self.0.seed, &label).stream(0),
        });
        (row.schedule, row.passes, row.triggered) = (Some(schedule), 0, 0);
        self.update_enabled(&rows);
    }

    /// Disables a fault. Injections in progress go on, and the count stays.
    pub fn disable(&self, server: Server, fault: Fault) {
        let mut rows = self.0.rows.lock().expect(UNPOISONED);
        if let Some(row) = rows.get_mut(&(server, fault)) {
            row.schedule = None;
        }
        self.update_enabled(&rows);
    }

    /// The number of times a fault has happened.
    pub fn fired(&self, server: Server, fault: Fault) -> u64 {
        let rows = self.0.rows.lock().expect(UNPOISONED);
        rows.get(&(server, fault)).map_or(0, |row| row.fired)
    }

    /// How often the faults happened that were ever enabled.
    pub fn counts(&self) -> Vec<(Server, Fault, u64)> {
        let rows = self.0.rows.lock().expect(UNPOISONED);
        rows.iter().map(|((server, fault), row)| (*server, *fault, row.fired)).collect()
    }

    /// The faults that were enabled but never occurred. A test must end without such faults, because it has not tested
    /// them.
    pub fn unfired(&self) -> Vec<(Server, Fault)> {
        let never = self.counts().into_iter().filter(|(.., fired)| *fired == 0);
        never.map(|(server, fault, _)| (server, fault)).collect()
    }

    /// Counts a pass; returns the amount if the fault is due. [`Faults::count`] is called once it has
    /// happened.
    pub(super) fn due(&self, server: Server, fault: Fault) -> Option<u64> {
        self.due_nth(server, fault, None)
    }

    /// The same for the pass of this number on its connection.
    pub(super) fn due_nth(
        &self,
        server: Server,
        fault: Fault,
        on_connection: Option<u64>,
    ) -> Option<u64> {
        if self.none_enabled() {
            return None;
        }
        let mut rows = self.0.rows.lock().expect(UNPOISONED);
        let row = rows.get_mut(&(server, fault))?;
        let schedule = row.schedule?;
        let pass = on_connection.filter(|_| schedule.per_connection).unwrap_or(row.passes);
        row.passes += 1;
        if !schedule.applies(pass, row.triggered) {
            return None;
        }
        row.triggered += 1;
        let (low, high) = fault.amounts();
        Some(schedule.amount.unwrap_or_else(|| row.random.between(low, high)))
    }

    /// [`Faults::due`] for a fault that happens at once.
    pub(super) fn inject(&self, server: Server, fault: Fault) -> Option<u64> {
        let amount = self.due(server, fault);
        amount.inspect(|_| self.count(server, fault))
    }

    /// Counts a fault that has happened.
    pub(super) fn count(&self, server: Server, fault: Fault) {
        let mut rows = self.0.rows.lock().expect(UNPOISONED);
        if let Some(row) = rows.get_mut(&(server, fault)) {
            row.fired += 1;
        }
    }

    /// Whether no fault is enabled.
    pub(super) fn none_enabled(&self) -> bool {
        self.0.enabled.load(Ordering::Relaxed) == 0
    }

    fn update_enabled(&self, rows: &BTreeMap<(Server, Fault), FaultState>) {
        let enabled = rows.values().filter(|row| row.schedule.is_some()).count();
        self.0.enabled.store(enabled, Ordering::Relaxed);
    }
}

/// The reason that a lock can be taken.
pub(super) const UNPOISONED: &str = "no thread panics while it holds this lock";
