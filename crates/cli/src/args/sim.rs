//! What can be asked of the simulated network?

use std::str::FromStr;

use clap::{Args, Subcommand};
use simnet::servers::{Fault, FaultSchedule, Ports, Server, Spec, WriteRate};

/// A network of simulated accounts and servers, to try things on.
#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Starts a PLC directory, PDSs, relays and Jetstreams on this machine, and serves until Ctrl-C.
    ///
    /// Accounts, keys, repositories and what is written follow from the seed; ports and the times in
    /// events do not. Nothing listens anywhere but on 127.0.0.1, and nobody else is ever asked. Prints
    /// where everything is and what to try, and at the end how often what was asked for.
    #[command(after_help = examples())]
    Serve(Box<ServeArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// What everything follows from.
    #[arg(long, value_name = "N", default_value_t = Spec::default().seed)]
    pub(crate) seed: u64,
    /// How many accounts there are.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) accounts: u32,
    /// How many records each of them has at first.
    #[arg(long, value_name = "N", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) records: u32,
    /// How many PDSs they are spread over.
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) pds: u16,
    /// How many relays there are, each with sequence numbers of its own.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(..=100))]
    pub(crate) relays: u16,
    /// How many Jetstreams there are.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(..=100))]
    pub(crate) jetstreams: u16,
    /// How fast accounts write; 0 for as fast as it is read, `none` for not at all.
    #[arg(long, value_name = "COMMITS/S", default_value = "20", value_parser = rate)]
    pub(crate) rate: WriteRate,
    /// How many commits have been told before the servers open: a cursor of 0 gets them.
    #[arg(long, value_name = "N", default_value_t = 500)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    pub(crate) prepared: u32,
    /// How many events each server keeps for those who come back [default: 20000, or what is
    /// prepared].
    #[arg(long, value_name = "N")]
    pub(crate) window: Option<u32>,
    /// Something that goes wrong, as `relay:cut` or `pds1:429:times=3,of=5`; see below.
    #[arg(long = "fault", value_name = "SERVER:FAULT[:DOSE]")]
    pub(crate) faults: Vec<FaultArg>,
    /// Accounts of the hostile set too, which send what nobody may send: a case a second.
    #[arg(long)]
    pub(crate) hostile: bool,
    /// The directory's port; PDSs, relays and Jetstreams have the ports behind it, in this order. 0 for
    /// any that are free.
    #[arg(long, value_name = "PORT", default_value_t = 4480)]
    pub(crate) port: u16,
    /// What is printed, as JSON: a line when the servers are open, a line at the end.
    #[arg(long)]
    pub(crate) json: bool,
}

impl ServeArgs {
    /// The network that is asked for.
    pub(crate) fn to_spec(&self) -> Spec {
        let usual = Spec::default();
        let prepared = self.prepared as usize;
        Spec {
            seed: self.seed,
            accounts: self.accounts as usize,
            records: self.records as usize,
            pds: self.pds.into(),
            relays: self.relays.into(),
            jetstreams: self.jetstreams.into(),
            ports: self.ports(),
            initial_commits: prepared,
            write_rate: self.rate,
            retained_events: self
                .window
                .map_or(usual.retained_events, |window| window as usize)
                .max(prepared),
            ..usual
        }
    }

    fn ports(&self) -> Ports {
        let behind = |servers: u16| match self.port {
            0 => 0,
            port => port.saturating_add(1).saturating_add(servers),
        };
        Ports {
            plc: self.port,
            pds: behind(0),
            relay: behind(self.pds),
            jetstream: behind(self.pds + self.relays),
        }
    }
}

fn rate(text: &str) -> Result<WriteRate, String> {
    match text {
        "none" => Ok(WriteRate::Off),
        _ => match text.parse().map_err(|_| "a whole number or `none` is wanted".to_owned())? {
            0 => Ok(WriteRate::MatchReaders),
            rate => Ok(WriteRate::PerSecond(rate)),
        },
    }
}

/// A fault, whom it befalls, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FaultArg {
    pub(crate) server: Server,
    pub(crate) fault: Fault,
    pub(crate) dose: FaultSchedule,
}

impl FromStr for FaultArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':');
        let server = server(parts.next().unwrap_or_default())?;
        let name = parts.next().ok_or("a server and a fault are wanted, as in `relay:cut`")?;
        let fault = Fault::from_name(name).ok_or_else(|| {
            format!("no fault is called `{name}`; a {server} can have {}", names_of(server))
        })?;
        if !fault.injection_point().exists_on(server) {
            return Err(format!("`{name}` does not happen to a {server}; {}", names_of(server)));
        }
        let dose = parts.next().map_or(Ok(FaultSchedule::ONCE), dose)?;
        Ok(Self { server, fault, dose })
    }
}

/// `relay`, `pds1`: a kind, and a number that is 0 if it is not there.
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
        _ => Err(format!("no server is called `{text}`: plc, pds0, relay0, jetstream0 are")),
    }
}

/// `times=3,after=100,every=50,of=7,each`, in any order; `always` for every occasion.
fn dose(text: &str) -> Result<FaultSchedule, String> {
    let is_counted = text.split(',').any(|word| word.starts_with("times="));
    let is_repeated = text.split(',').any(|word| word == "always" || word.starts_with("every="));
    let first =
        if is_repeated && !is_counted { FaultSchedule::ALWAYS } else { FaultSchedule::ONCE };
    text.split(',').try_fold(first, |dose, word| {
        let (name, number) = word.split_once('=').unwrap_or((word, ""));
        let number = || {
            let number = number.parse::<u64>();
            number.map_err(|_| format!("`{word}` of a dose wants a number, as in `{name}=3`"))
        };
        match name {
            "always" => Ok(dose),
            "times" => Ok(FaultSchedule { times: number()?, ..dose }),
            "after" => Ok(dose.after(number()?)),
            "every" => Ok(dose.every(number()?)),
            "of" => Ok(dose.with_amount(number()?)),
            "each" => Ok(dose.per_connection()),
            _ => Err(format!("`{word}` is not part of a dose: {DOSE_WORDS} are")),
        }
    })
}

fn names_of(server: Server) -> String {
    let faults = Fault::ALL.iter().filter(|fault| fault.injection_point().exists_on(server));
    faults.map(|fault| fault.name()).collect::<Vec<_>>().join(", ")
}

fn examples() -> String {
    let faults = [Server::Plc, Server::Pds(0), Server::Relay(0)];
    let of = |server: Server| format!("  {:<10}{}\n", word(server), names_of(server));
    let faults: String = faults.map(of).concat();
    format!(
        "{EXAMPLES}\n\nFaults, by who can have them (a Jetstream those of a relay):\n{faults}\n{DOSES}"
    )
}

fn word(server: Server) -> &'static str {
    match server {
        Server::Plc => "plc",
        Server::Pds(_) => "pds0",
        Server::Relay(_) => "relay0",
        Server::Jetstream(_) => "jetstream0",
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof sim serve                                    then try what it prints
  wireproof sim serve --relays 2 --rate 1000             two relays, a thousand commits a second
  wireproof sim serve --prepared 100000 --rate none      a hundred thousand commits to replay
  wireproof sim serve --fault relay:cut:every=3,of=50000 every third stream ends after 50 kB
  wireproof sim serve --hostile --port 0 --json";

const DOSES: &str = "\
A dose says which occasions (connections, requests, frames) are struck: `times=3` the next three,
`after=100` not before a hundred have passed, `every=50` one in fifty, `always` all, `each` counting the
frames of every connection for themselves; `of=N` is how much: bytes, milliseconds, seconds. Without a
dose the next occasion is struck, and no other.";

const DOSE_WORDS: &str = "always, times=N, after=N, every=N, of=N and each";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<FaultArg, String> {
        text.parse()
    }

    fn dosed(text: &str) -> FaultSchedule {
        parsed(&format!("relay:cut:{text}")).unwrap().dose
    }

    #[test]
    fn a_fault_without_a_dose_strikes_once() {
        let once =
            FaultArg { server: Server::Relay(0), fault: Fault::Cut, dose: FaultSchedule::ONCE };
        assert_eq!(parsed("relay:cut"), Ok(once));
        assert_eq!(parsed("pds3:429").unwrap().server, Server::Pds(3));
        assert_eq!(parsed("plc:wrong-key:always").unwrap().dose, FaultSchedule::ALWAYS);
    }

    #[test]
    fn a_dose_is_words_in_any_order() {
        assert_eq!(dosed("of=7,times=3"), FaultSchedule::times(3).with_amount(7));
        assert_eq!(dosed("every=50"), FaultSchedule::ALWAYS.every(50));
        assert_eq!(dosed("every=50,times=2,after=9"), FaultSchedule::times(2).every(50).after(9));
        assert_eq!(dosed("each,always"), FaultSchedule::ALWAYS.per_connection());
    }

    #[test]
    fn what_is_no_fault_is_refused_with_what_there_is() {
        assert!(parsed("relay").unwrap_err().contains("relay:cut"));
        assert!(parsed("moon:cut").unwrap_err().contains("plc, pds0"));
        assert!(parsed("plc7:drop").unwrap_err().contains("plc7"));
        assert!(parsed("relay:flood").unwrap_err().contains("stall"));
        assert!(parsed("plc:cut").unwrap_err().contains("wrong-document"));
        assert!(parsed("relay:cut:often").unwrap_err().contains("every=N"));
        assert!(parsed("relay:cut:times=x").unwrap_err().contains("a number"));
    }

    #[test]
    fn a_rate_is_a_number_or_none() {
        assert_eq!(rate("7"), Ok(WriteRate::PerSecond(7)));
        assert_eq!(rate("0"), Ok(WriteRate::MatchReaders));
        assert_eq!(rate("none"), Ok(WriteRate::Off));
        assert!(rate("fast").is_err());
    }
}
