//! Arguments of `wireproof sim serve`, and the syntax of `--fault`.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use simnet::servers::{
    Attack, Fault, FaultSchedule, HostConditions, Placement, Ports, RepositorySizes, Server, Spec,
    WriteRate,
};

use super::labeler::LabelerArgs;
use super::nostr::NostrRelayArgs;

/// Serve a simulated network of accounts and servers, a labeler, or a Nostr relay.
#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Serve a PLC directory, PDSs, relays and Jetstreams on this machine until Ctrl-C.
    ///
    /// Accounts, keys, repositories and writes follow from the seed; ports and the times in events do not. All servers
    /// listen on 127.0.0.1 and make no other connections. Prints the URLs and commands to try, and at the end the
    /// requests to every server, its answers, and its largest number of requests in a second.
    #[command(after_help = examples())]
    Serve(Box<ServeArgs>),
    /// Serve a labeler on this machine until Ctrl-C, with keys and labels from a seed.
    ///
    /// It serves its DID document, its stream of labels and queries, and listens on 127.0.0.1.
    Labeler(LabelerArgs),
    /// Serve a Nostr relay on this machine until Ctrl-C, with events from a seed.
    ///
    /// It answers requests (NIP-01) and compares ids (NIP-77), and listens on 127.0.0.1.
    Nostr(NostrRelayArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Seed of the network.
    #[arg(long, value_name = "N", default_value_t = Spec::default().seed)]
    pub(crate) seed: u64,
    /// Number of accounts.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) accounts: u32,
    /// Number of records per account at the start; `realistic` for few in most accounts and many in some, as on the
    /// live network, or `realistic:MAX` with at most MAX. Realistic accounts are derived from the seed for every
    /// request and kept only from their first change on, so that 100,000 take little memory.
    #[arg(long, value_name = "N|realistic[:MAX]", default_value = "60", value_parser = records)]
    pub(crate) records: RecordsArg,
    /// Number of PDSs that host the accounts.
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=200))]
    pub(crate) pds: u16,
    /// Put many accounts on a few PDSs and few on the others, instead of equal numbers.
    #[arg(long)]
    pub(crate) uneven: bool,
    /// Let PDSs differ: steady, limited with and without saying until when, slow, breaking off repositories, silent, refusing
    /// connections; the first also hosts repositories of the hostile set.
    #[arg(long)]
    pub(crate) hosts_vary: bool,
    /// Number of accounts that change, one a second: they move, are taken down, write, are deleted and created, in turn.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) changes: u32,
    /// Number of relays; they have separate sequence numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(..=100))]
    pub(crate) relays: u16,
    /// Number of Jetstreams.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(..=100))]
    pub(crate) jetstreams: u16,
    /// Commits per second; 0 for as many as are read, `none` for no writes.
    #[arg(long, value_name = "COMMITS/S", default_value = "20", value_parser = rate)]
    pub(crate) rate: WriteRate,
    /// Number of commits made before the servers open; cursor 0 replays them.
    #[arg(long, value_name = "N", default_value_t = 500)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub(crate) prepared: u32,
    /// Number of past events that a server keeps for replay [default: 20000, or the number of --prepared if larger].
    #[arg(long, value_name = "N")]
    pub(crate) window: Option<u32>,
    /// A fault to inject, as `relay:cut` or `pds1:429:times=3,of=5`; see below.
    #[arg(long = "fault", value_name = "SERVER:FAULT[:SCHEDULE]")]
    pub(crate) faults: Vec<FaultArg>,
    /// Set the clocks of all servers and accounts this far ahead of this machine's clock: new commits have the
    /// revisions of that time, as for a reader whose clock is behind.
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=31_536_000))]
    pub(crate) skew: Option<u32>,
    /// Send the cases of the hostile set too, one per second, and the attacks below in turn.
    #[arg(long)]
    pub(crate) hostile: bool,
    /// Number of events per attack of --hostile.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "hostile")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) attack_events: u32,
    /// Port of the directory; PDSs, relays and Jetstreams take the following ports in this order. 0 takes
    /// free ports.
    #[arg(long, value_name = "PORT", default_value_t = 4480)]
    pub(crate) port: u16,
    /// Print JSON: one line when the servers are open, one at the end.
    #[arg(long)]
    pub(crate) json: bool,
}

impl ServeArgs {
    /// The specification of the network.
    pub(crate) fn to_spec(&self) -> Spec {
        let default = Spec::default();
        let prepared = self.prepared as usize;
        Spec {
            seed: self.seed,
            accounts: self.accounts as usize,
            records: self.records.most as usize,
            sizes: self.records.sizes,
            pds: self.pds.into(),
            placement: if self.uneven { Placement::Uneven } else { Placement::InTurn },
            conditions: if self.hosts_vary {
                HostConditions::Varied
            } else {
                HostConditions::Alike
            },
            relays: self.relays.into(),
            jetstreams: self.jetstreams.into(),
            ports: self.ports(),
            initial_commits: prepared,
            clock_skew: self.skew.map(|seconds| Duration::from_secs(seconds.into())),
            write_rate: self.rate,
            retained_events: self
                .window
                .map_or(default.retained_events, |window| window as usize)
                .max(prepared),
            ..default
        }
    }

    fn ports(&self) -> Ports {
        let after = |servers: u16| match self.port {
            0 => 0,
            port => port.saturating_add(1).saturating_add(servers),
        };
        Ports {
            plc: self.port,
            pds: after(0),
            relay: after(self.pds),
            jetstream: after(self.pds + self.relays),
        }
    }
}

/// The numbers of records of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordsArg {
    sizes: RepositorySizes,
    /// The number of all, or the most that one has.
    most: u32,
}

fn records(text: &str) -> Result<RecordsArg, String> {
    let (sizes, number) = match text.strip_prefix("realistic") {
        Some("") => (RepositorySizes::Realistic, None),
        // Without a colon it is not a number.
        Some(rest) => (RepositorySizes::Realistic, Some(rest.strip_prefix(':').unwrap_or(""))),
        None => (RepositorySizes::Equal, Some(text)),
    };
    let most = number.map_or(Some(MAX_RECORDS), |number| number.parse().ok());
    let most = most.filter(|most| (1..=MAX_RECORDS).contains(most));
    let most = most.ok_or_else(|| {
        format!("expected a number from 1 to {MAX_RECORDS}, `realistic` or `realistic:MAX`")
    })?;
    Ok(RecordsArg { sizes, most })
}

/// Records of an account.
const MAX_RECORDS: u32 = 1_000_000;

fn rate(text: &str) -> Result<WriteRate, String> {
    match text {
        "none" => Ok(WriteRate::Off),
        _ => match text.parse().map_err(|_| "expected a whole number or `none`".to_owned())? {
            0 => Ok(WriteRate::MatchReaders),
            rate => Ok(WriteRate::PerSecond(rate)),
        },
    }
}

/// A fault, the server that has it, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FaultArg {
    pub(crate) server: Server,
    pub(crate) fault: Fault,
    pub(crate) schedule: FaultSchedule,
}

impl FromStr for FaultArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let server = server(parts.next().unwrap_or_default())?;
        let name = parts.next().ok_or("expected a server and a fault, as in `relay:cut`")?;
        let fault = Fault::from_name(name).ok_or_else(|| {
            format!("unknown fault `{name}`: a {server} can have {}", names_of(server))
        })?;
        if !fault.injection_point().exists_on(server) {
            let names = names_of(server);
            return Err(format!("a {server} cannot have the fault `{name}`, only {names}"));
        }
        let schedule = parts.next().map_or(Ok(FaultSchedule::ONCE), schedule)?;
        Ok(Self { server, fault, schedule })
    }
}

/// `relay`, `pds1`: a kind of server, and a number, 0 by default.
fn server(text: &str) -> Result<Server, String> {
    let digits = text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(text.len());
    let (kind, number) = text.split_at(digits);
    let number = match number {
        "" => Some(0),
        number => number.parse().ok(),
    };
    match (kind, number) {
        ("plc", Some(0)) => Ok(Server::Plc),
        ("pds", Some(number)) => Ok(Server::Pds(number)),
        ("relay", Some(number)) => Ok(Server::Relay(number)),
        ("jetstream", Some(number)) => Ok(Server::Jetstream(number)),
        _ => Err(format!("unknown server `{text}`: expected plc, pds0, relay0 or jetstream0")),
    }
}

/// `times=3,after=100,every=50,of=7,each` in any order; `always` for every occasion.
fn schedule(text: &str) -> Result<FaultSchedule, String> {
    let is_counted = text.split(',').any(|word| word.starts_with("times="));
    let is_repeated = text.split(',').any(|word| word == "always" || word.starts_with("every="));
    let first =
        if is_repeated && !is_counted { FaultSchedule::ALWAYS } else { FaultSchedule::ONCE };
    text.split(',').try_fold(first, |schedule, word| {
        let (name, number) = word.split_once('=').unwrap_or((word, ""));
        let number = || {
            let number = number.parse::<u64>();
            number.map_err(|_| format!("`{word}`: expected a number, as in `{name}=3`"))
        };
        match name {
            "always" => Ok(schedule),
            "times" => Ok(FaultSchedule { times: number()?, ..schedule }),
            "after" => Ok(schedule.after(number()?)),
            "every" => Ok(schedule.every(number()?)),
            "of" => Ok(schedule.with_amount(number()?)),
            "each" => Ok(schedule.per_connection()),
            _ => Err(format!("unknown part of a schedule `{word}`: expected {SCHEDULE_PARTS}")),
        }
    })
}

fn names_of(server: Server) -> String {
    let faults = Fault::ALL.iter().filter(|fault| fault.injection_point().exists_on(server));
    faults.map(|fault| fault.name()).collect::<Vec<_>>().join(", ")
}

fn examples() -> String {
    let faults = [Server::Plc, Server::Pds(0), Server::Relay(0)];
    let line = |server: Server| format!("  {:<10}{}\n", server_name(server), names_of(server));
    let faults: String = faults.map(line).concat();
    let attacks: Vec<&str> = Attack::ALL.iter().map(|attack| attack.name()).collect();
    let attacks = attacks.join(", ");
    format!(
        "{EXAMPLES}\n\nFaults by server (a Jetstream has the faults of a relay):\n{faults}\n{SCHEDULES}\n\n\
         Attacks of --hostile: {attacks}"
    )
}

/// The name of a server in `--fault` and in JSON.
pub(super) fn server_name(server: Server) -> String {
    match server {
        Server::Plc => "plc".to_owned(),
        Server::Pds(number) => format!("pds{number}"),
        Server::Relay(number) => format!("relay{number}"),
        Server::Jetstream(number) => format!("jetstream{number}"),
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof sim serve                                    prints commands to try
  wireproof sim serve --relays 2 --rate 1000             two relays, 1000 commits per second
  wireproof sim serve --prepared 100000 --rate none      100,000 commits to replay
  wireproof sim serve --fault relay:cut:every=3,of=50000 every third stream ends after 50 kB
  wireproof sim serve --hostile --port 0 --json
  wireproof sim serve --accounts 100000 --records realistic --pds 200 --uneven --hosts-vary \\
    --rate none --prepared 0 --changes 600               a network for `backfill`";

const SCHEDULES: &str = "\
A schedule selects the occasions (connections, requests, frames) of a fault: `times=3` the next three,
`after=100` none of the first hundred, `every=50` one in fifty, `always` all, `each` counts the frames of
every connection separately; `of=N` is the amount in bytes, milliseconds or seconds. The default is the
next occasion only.";

const SCHEDULE_PARTS: &str = "always, times=N, after=N, every=N, of=N or each";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<FaultArg, String> {
        text.parse()
    }

    fn scheduled(text: &str) -> FaultSchedule {
        parsed(&format!("relay:cut:{text}")).unwrap().schedule
    }

    #[test]
    fn a_fault_without_a_schedule_happens_once() {
        let once =
            FaultArg { server: Server::Relay(0), fault: Fault::Cut, schedule: FaultSchedule::ONCE };
        assert_eq!(parsed("relay:cut"), Ok(once));
        assert_eq!(parsed("pds3:429").unwrap().server, Server::Pds(3));
        assert_eq!(parsed("plc:wrong-key:always").unwrap().schedule, FaultSchedule::ALWAYS);
    }

    #[test]
    fn a_schedule_has_its_parts_in_any_order() {
        assert_eq!(scheduled("of=7,times=3"), FaultSchedule::times(3).with_amount(7));
        assert_eq!(scheduled("every=50"), FaultSchedule::ALWAYS.every(50));
        assert_eq!(
            scheduled("every=50,times=2,after=9"),
            FaultSchedule::times(2).every(50).after(9)
        );
        assert_eq!(scheduled("each,always"), FaultSchedule::ALWAYS.per_connection());
    }

    #[test]
    fn an_unknown_fault_is_refused_with_the_known_ones() {
        assert!(parsed("relay").unwrap_err().contains("relay:cut"));
        assert!(parsed("moon:cut").unwrap_err().contains("plc, pds0"));
        assert!(parsed("plc7:drop").unwrap_err().contains("plc7"));
        assert!(parsed("relay:flood").unwrap_err().contains("stall"));
        assert!(parsed("plc:cut-repo").unwrap_err().contains("wrong-document"));
        assert!(parsed("relay:cut:often").unwrap_err().contains("every=N"));
        assert!(parsed("relay:cut:times=x").unwrap_err().contains("a number"));
    }

    #[test]
    fn records_are_as_many_for_all_or_realistic() {
        let equal = RecordsArg { sizes: RepositorySizes::Equal, most: 7 };
        assert_eq!(records("7"), Ok(equal));
        let realistic = |most| Ok(RecordsArg { sizes: RepositorySizes::Realistic, most });
        assert_eq!(records("realistic"), realistic(1_000_000));
        assert_eq!(records("realistic:300"), realistic(300));
        for wrong in ["0", "", "many", "realistic:", "realistic:0", "realistic9", "1000001"] {
            assert!(records(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_rate_is_a_number_or_none() {
        assert_eq!(rate("7"), Ok(WriteRate::PerSecond(7)));
        assert_eq!(rate("0"), Ok(WriteRate::MatchReaders));
        assert_eq!(rate("none"), Ok(WriteRate::Off));
        assert!(rate("fast").is_err());
    }
}
