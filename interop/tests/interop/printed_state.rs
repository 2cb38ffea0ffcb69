//! The records that the lines of `follow --resync` give equal the PDSs' records, through every failure: the
//! follower is killed again and again, the servers are restarted, and the directory is away for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use atproto::plc::{Operation, UnsignedOperation, Update};
use crypto::{Curve, SecretKey};
use tokio::time::{Instant, sleep};
use wireproof_interop::kit;
use wireproof_interop::pds::{Account, Pds, Plc, ROTATION_KEY, Write};
use wireproof_interop::proxy::{Proxy, Service};
use wireproof_interop::relay::Relay;

use crate::activity::{NOTE, record};
use crate::client::Records;
use crate::follower::Follower;

/// The size of the test: short, or whole with `WIREPROOF_SOAK=1`.
#[derive(Clone, Copy, Debug)]
struct Scale {
    accounts: usize,
    writes: usize,
    kills: usize,
    restarts: usize,
    outage: Duration,
    /// Time between two writes.
    interval: Duration,
}

impl Scale {
    /// The directory's answer at this write: it is away from the middle on, for the time of the outage.
    fn directory_service(&self, number: usize) -> Service {
        let outage = self.outage.as_millis() / self.interval.as_millis();
        let middle = self.writes / 2;
        if (middle..middle + outage as usize).contains(&number) {
            Service::Unavailable
        } else {
            Service::Forward
        }
    }
}

const SHORT: Scale = Scale {
    accounts: 12,
    writes: 240,
    kills: 8,
    restarts: 1,
    outage: Duration::from_secs(6),
    interval: Duration::from_millis(60),
};

const WHOLE: Scale = Scale {
    accounts: 20,
    writes: 3_000,
    kills: 100,
    restarts: 5,
    outage: Duration::from_secs(120),
    interval: Duration::from_millis(100),
};

#[tokio::test(flavor = "multi_thread")]
async fn printed_lines_give_the_records_of_every_account_through_kills_restarts_and_an_outage() {
    let kit = kit!(Pds, Relay);
    let scale = crate::scaled(SHORT, WHOLE);
    let plc = Plc::start(&kit).await;
    let pds = [Pds::start(&kit, &plc).await, Pds::start(&kit, &plc).await];
    let relay = Relay::start(&kit, &plc, &[&pds[0], &pds[1]]).await;
    let directory = Proxy::start(plc.port()).await;
    let follower = Follower::start(&relay.url(), &directory.url());
    let mut network = Network { plc, pds, relay, directory, follower, accounts: Vec::new() };
    network.create_accounts(scale.accounts).await;
    for number in 0..scale.writes {
        network.fail(&scale, number).await;
        // There are more than a hundred writes: every percentage has a first one.
        let percent = |number: usize| number * 100 / scale.writes;
        if number > 0 && percent(number) > percent(number - 1) {
            network.change_accounts(percent(number)).await;
        }
        network.write(number).await;
        sleep(scale.interval).await;
    }
    network.settle(&scale).await;
}

/// All servers, the follower, and the accounts.
struct Network {
    plc: Plc,
    pds: [Pds; 2],
    relay: Relay,
    directory: Proxy,
    follower: Follower,
    accounts: Vec<Member>,
}

/// An account and the test's knowledge of it.
struct Member {
    account: Account,
    /// The index of its PDS.
    home: usize,
    /// Its records that were created one by one.
    paths: Vec<String>,
    is_writable: bool,
    /// Whether its records can be proved.
    is_public: bool,
    /// An earlier state of its repository.
    archive: Vec<u8>,
}

impl Network {
    async fn create_accounts(&mut self, count: usize) {
        for number in 0..count {
            let home = number % 2;
            let account = self.pds[home].create_account(&format!("member{number}")).await;
            let (paths, archive) = Default::default();
            let (is_writable, is_public) = (true, true);
            self.accounts.push(Member { account, home, paths, is_writable, is_public, archive });
        }
    }

    /// Kills and restarts the programs that are due before this write.
    async fn fail(&mut self, scale: &Scale, number: usize) {
        let is_due = |times: usize, phase: usize| {
            let every = scale.writes / times;
            number % every == every * phase / 8
        };
        if is_due(scale.kills, 4) {
            self.follower.kill_and_restart();
        }
        for (at, phase) in [(0, 1), (1, 3)] {
            if is_due(scale.restarts, phase) {
                self.pds[at].restart().await;
            }
        }
        if is_due(scale.restarts, 5) {
            self.relay.restart().await;
        }
        // The directory has its data in memory: for the follower it is away for a moment.
        if is_due(scale.restarts, 7) {
            self.directory.set(Service::Closed);
            sleep(Duration::from_secs(1)).await;
            self.directory.set(scale.directory_service(number));
        }
        if scale.directory_service(number) != scale.directory_service(number.saturating_sub(1)) {
            self.directory.set(scale.directory_service(number));
        }
    }

    /// Changes accounts at this percentage of the writes.
    async fn change_accounts(&mut self, percent: usize) {
        match percent {
            5 => self.accounts[2].archive = self.repo(2).await,
            10 => self.deactivate(1).await,
            16 => self.activate(1).await,
            20 => self.import(2).await,
            25 => self.migrate(3).await,
            30 => self.take_down(4, true).await,
            35 => self.delete(5).await,
            40 => self.migrate(6).await,
            // While the directory is away.
            52 => self.migrate(7).await,
            54 => self.deactivate(8).await,
            58 => self.migrate(0).await,
            65 => self.activate(8).await,
            70 => self.take_down(9, true).await,
            80 => self.take_down(9, false).await,
            _ => {}
        }
    }

    /// A write of the account whose turn it is.
    async fn write(&mut self, number: usize) {
        let at = number % self.accounts.len();
        let Member { account, home, paths, is_writable, .. } = &mut self.accounts[at];
        if !*is_writable {
            return;
        }
        let pds = &self.pds[*home];
        let new = |number| record(NOTE, "written", number);
        let text = number as u32;
        match (number / 7 % 6, paths.pop()) {
            (0, Some(path)) => pds.delete(account, &path).await,
            (1, Some(path)) => {
                pds.put(account, &path, new(text)).await;
                paths.push(path);
            }
            (2, popped) => {
                paths.extend(popped);
                let writes = (0..10).map(|more| Write::Create(NOTE, new(text + more)));
                pds.apply(account, &writes.collect::<Vec<_>>()).await;
            }
            (_, popped) => {
                paths.extend(popped);
                paths.push(pds.create(account, NOTE, new(text)).await);
            }
        }
    }

    async fn repo(&self, at: usize) -> Vec<u8> {
        let member = &self.accounts[at];
        self.pds[member.home].repo(&member.account).await
    }

    async fn deactivate(&mut self, at: usize) {
        let member = &mut self.accounts[at];
        self.pds[member.home].deactivate(&member.account).await;
        member.is_writable = false;
    }

    async fn activate(&mut self, at: usize) {
        let member = &mut self.accounts[at];
        self.pds[member.home].activate(&member.account).await;
        member.is_writable = true;
    }

    async fn take_down(&mut self, at: usize, is_applied: bool) {
        let member = &mut self.accounts[at];
        self.pds[member.home].take_down(&member.account, is_applied).await;
        (member.is_writable, member.is_public) = (!is_applied, !is_applied);
    }

    async fn delete(&mut self, at: usize) {
        let member = &mut self.accounts[at];
        self.pds[member.home].delete_account(&member.account).await;
        (member.is_writable, member.is_public) = (false, false);
    }

    /// Replaces the records of an account by the records of an earlier state, without an event.
    async fn import(&mut self, at: usize) {
        let archive = self.accounts[at].archive.clone();
        let member = &mut self.accounts[at];
        self.pds[member.home].import_repo(&member.account, archive).await;
        member.paths.clear();
    }

    /// Moves an account to the other PDS, which makes a new signing key.
    async fn migrate(&mut self, at: usize) {
        let archive = self.repo(at).await;
        let member = &mut self.accounts[at];
        let (from, to) = (&self.pds[member.home], &self.pds[1 - member.home]);
        let moved = to.adopt(&member.account, from).await;
        to.import_repo(&moved, archive).await;
        let key = to.recommended_key(&moved).await;
        register_move(&self.plc, &moved.did, key, &to.url()).await;
        to.activate(&moved).await;
        from.deactivate(&member.account).await;
        (member.account, member.home) = (moved, 1 - member.home);
    }

    /// Writes once more as every account, and waits until the lines give the records of all accounts.
    async fn settle(&mut self, scale: &Scale) {
        for number in 0..self.accounts.len() {
            self.write(number + self.accounts.len() * 7 * 3).await;
        }
        let mut expected = BTreeMap::new();
        for member in self.accounts.iter().filter(|member| member.is_public) {
            let records = self.pds[member.home].records(&member.account).await;
            expected.insert(member.account.did.clone(), records);
        }
        assert!(expected.len() + 2 >= self.accounts.len(), "one is taken down, one is deleted");
        let deadline = Instant::now() + SETTLED_WITHIN;
        loop {
            let differences = differences(&expected, &self.follower.records());
            if differences.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "the lines give other records:\n{differences}");
            self.activate_again().await;
            sleep(Duration::from_millis(500)).await;
        }
        println!(
            "figure: {} accounts, {} writes, {} kills: the lines give the records of all {} public \
             accounts",
            scale.accounts,
            scale.writes,
            scale.kills,
            expected.len()
        );
    }

    /// Activates the public accounts again that the relay takes for inactive. On a busy machine it may believe the former server of
    /// an account that has moved, and then drops all that the account writes.
    async fn activate_again(&self) {
        for member in self.accounts.iter().filter(|member| member.is_public) {
            if !self.relay.is_active(&member.account.did).await {
                self.pds[member.home].activate(&member.account).await;
            }
        }
    }
}

/// Registers the key and the server of an account in the directory.
async fn register_move(plc: &Plc, did: &str, key: String, server: &str) {
    let last = Operation::parse(plc.last_operation(did).await.to_string().as_bytes());
    let last = last.expect("an operation of the directory");
    let mut data = last.unsigned().to_data().expect("an account that is not deleted");
    data.verification_methods.insert("atproto".to_owned(), key);
    data.services.get_mut("atproto_pds").expect("a server").endpoint = server.to_owned();
    let operation = UnsignedOperation::Update(Update { data, prev: Some(last.cid()) });
    let rotation_key = SecretKey::from_bytes(Curve::K256, &ROTATION_KEY).expect("a key");
    let signature = rotation_key.sign(&operation.to_bytes());
    let operation = operation.with_signature(signature);
    let json = serde_json::from_str(&operation.to_json()).expect("JSON of an operation");
    plc.register(did, &json).await;
}

/// Where the records differ: accounts with the numbers of missing, unexpected and changed records.
fn differences(
    expected: &BTreeMap<String, Records>,
    printed: &BTreeMap<String, Records>,
) -> String {
    let mut differences = String::new();
    let none = Records::new();
    for (did, expected) in expected {
        let printed = printed.get(did).unwrap_or(&none);
        let missing = expected.keys().filter(|path| !printed.contains_key(*path)).count();
        let unexpected = printed.keys().filter(|path| !expected.contains_key(*path)).count();
        if expected != printed {
            let count = expected.len();
            differences += &format!("{did}: {missing} of {count} missing, {unexpected} more\n");
        }
    }
    differences
}

/// Time for the last resyncs on a busy machine.
const SETTLED_WITHIN: Duration = Duration::from_secs(240);
