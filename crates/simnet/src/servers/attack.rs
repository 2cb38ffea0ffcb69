//! Attacks on a follower by hostile accounts and hosts, beyond the faults of honest servers.
//!
//! An attack uses names and events that anyone can make up. Unlike a fault it has no injection point: it happens
//! when it is requested.

use atproto::commit::UnsignedCommit;
use atproto::event::{self, Event};
use atproto::syntax::Tid;
use codec::Cid;
use codec::cid::Codec;
use hyper::header::HOST;

use super::event::{EventKind, EventSubject, NetworkEvent};
use super::fault::UNPOISONED;
use super::hosted_account::GuestAccount;
use super::http::HttpRequest;
use super::network::{NetworkState, lock, now};
use crate::account::{Account, AccountHistory};
use crate::block::archive;
use crate::random::Seed;
use crate::time::{START_MICROS, datetime};

macro_rules! attacks {
    ($($(#[doc = $doc:literal])+ $attack:ident $name:literal,)+) => {
        /// An attack.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Attack {
            $($(#[doc = $doc])+ $attack,)+
        }

        impl Attack {
            /// All attacks.
            pub const ALL: &[Self] = &[$(Self::$attack),+];

            /// The name on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$attack => $name,)+ }
            }
        }
    };
}

attacks! {
    /// The first PDS and the relays send the amount of `#account` events about accounts that do not exist.
    InventedAccounts "invented-accounts",
    /// The first PDS and the relays send `#account` events that call the amount of accounts deactivated, whatever
    /// their servers say.
    FalseDeactivations "false-deactivations",
    /// The amount of accounts leave out a commit, so that their repositories are fetched. They are on eight hosts
    /// below one domain, which send repositories without an end at 1,200 bytes a second.
    SlowHosts "slow-hosts",
    /// The first PDS and the relays send the amount of `#identity` events of accounts that do not exist, whose
    /// handles have escape sequences, bidirectional and zero-width characters.
    InvisibleText "invisible-text",
    /// The first PDS and the relays send the amount of `#sync` events of different `did:web` accounts below one
    /// domain, `silent.test`, whose hosts accept connections and never answer.
    SilentHosts "silent-hosts",
}

impl Attack {
    /// The events of the attack; `round` distinguishes its names from names of earlier rounds.
    pub(super) fn events(
        self,
        network: &NetworkState,
        round: u64,
        amount: u64,
    ) -> Vec<NetworkEvent> {
        match self {
            Self::SlowHosts => {
                (0..amount).flat_map(|number| slow_host(network, round, number)).collect()
            }
            Self::InventedAccounts => {
                let seed = network.spec.seed.wrapping_add(round);
                (0..amount).map(|number| deactivation(&invented_did(seed, number), now())).collect()
            }
            Self::FalseDeactivations => {
                let accounts = (0..amount).map_while(|number| network.account(number as usize));
                accounts.map(|account| deactivation(lock(&account).did(), now())).collect()
            }
            Self::InvisibleText => {
                let seed = network.spec.seed.wrapping_add(round);
                let identity = |number| identity(&invented_did(seed, number), INVISIBLE, now());
                (0..amount).map(identity).collect()
            }
            Self::SilentHosts => {
                let did = |number| format!("did:web:a{number}.r{round}.{SILENT_DOMAIN}");
                (0..amount).map(|number| unverifiable_sync(&did(number), now())).collect()
            }
        }
    }
}

/// Adds an account on a slow host; two commits of it, with one missing between them.
fn slow_host(network: &NetworkState, round: u64, number: u64) -> [NetworkEvent; 2] {
    let seed = Seed::new(network.spec.seed.wrapping_add(round), &format!("slow host {number}"));
    let account = Account::new(seed, AccountHistory::Full(1), START_MICROS);
    let mut repository = account.open_repository();
    let [first, _, third] =
        [1, 2, 3].map(|second| repository.commit_like(START_MICROS + second * 1_000_000));
    let guest = GuestAccount {
        signing_key: account.key().did_key(),
        archive: Some(repository.export_car()),
        slow_host: Some(format!("host{}.slow.test", number % SLOW_HOSTS)),
        ..GuestAccount::default()
    };
    network.guests().write().expect(UNPOISONED).insert(account.did().to_owned(), guest);
    [first, third].map(|commit| {
        let kind = EventKind::Commit;
        let rev = commit.rev.to_string();
        let jetstream_events = 1;
        let subject = EventSubject { did: commit.did.clone(), kind, rev, jetstream_events };
        NetworkEvent::new(subject, now(), |seq| commit.to_frame(seq, now()))
    })
}

/// A DID of the form of the directory's, of no account.
fn invented_did(seed: u64, number: u64) -> String {
    let mut random = Seed::new(seed, "invented account").stream(number);
    let name: String = (0..24).map(|_| char::from(*random.pick(BASE32))).collect();
    format!("did:plc:{name}")
}

/// An `#account` event that calls `did` deactivated.
fn deactivation(did: &str, now: u64) -> NetworkEvent {
    let kind = EventKind::Account;
    let rev = String::new();
    let jetstream_events = 1;
    let subject = EventSubject { did: did.to_owned(), kind, rev, jetstream_events };
    let time = datetime(now);
    NetworkEvent::new(subject, now, |seq| {
        let (active, status) = (false, Some("deactivated"));
        Event::Account(event::Account { seq, did, time: &time, active, status }).to_frame()
    })
}

/// An `#identity` event with a handle that is none.
fn identity(did: &str, handle: &str, now: u64) -> NetworkEvent {
    let kind = EventKind::Identity;
    let rev = String::new();
    let jetstream_events = 1;
    let subject = EventSubject { did: did.to_owned(), kind, rev, jetstream_events };
    let time = datetime(now);
    NetworkEvent::new(subject, now, |seq| {
        Event::Identity(event::Identity { seq, did, time: &time, handle: Some(handle) }).to_frame()
    })
}

/// A `#sync` event of an account whose key cannot be looked up, so that its signature need not be valid.
fn unverifiable_sync(did: &str, now: u64) -> NetworkEvent {
    let rev = Tid::new(now, 0).to_string();
    let data = Cid::of(Codec::DagCbor, b"a tree");
    let commit = UnsignedCommit { did, rev: &rev, data, prev: None }.with_signature(&[1; 64]);
    let cid = Cid::of(Codec::DagCbor, &commit);
    let car = archive(&[cid], [(&cid, &commit[..])]);
    let (kind, jetstream_events) = (EventKind::Hostile, 0);
    let subject = EventSubject { did: did.to_owned(), kind, rev: rev.clone(), jetstream_events };
    let time = datetime(now);
    NetworkEvent::new(subject, now, |seq| {
        let car = &car;
        let rev = &*rev;
        let time = &*time;
        Event::Sync(event::Sync { seq, did, car, root: None, blocks: &[], rev, time }).to_frame()
    })
}

/// Whether a request is for a host that never answers.
pub(super) fn is_for_silent_host(request: &HttpRequest) -> bool {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.split(':').next().unwrap_or_default();
    name.strip_suffix(SILENT_DOMAIN).is_some_and(|below| below.ends_with('.'))
}

/// Number of slow hosts.
const SLOW_HOSTS: u64 = 8;
/// Text that clears a terminal, and is displayed in another order than it is written.
const INVISIBLE: &str = "\u{1b}[2J\u{9b}2J\u{202e}tset.ada\u{2066}\u{200b}\u{feff}\u{e0041}";
const SILENT_DOMAIN: &str = "silent.test";
const BASE32: &[u8] = b"abcdefghijklmnopqrstuvwxyz234567";
