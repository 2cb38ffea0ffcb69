//! `wireproof doctor host URL`: arguments, and the judgement as text, JSON and HTML.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use host_judge::{Clients, Finding, Judgement, Kind, Options, html};
use net::hosts::parse_host_url;
use net::http::Url;

use crate::failure::Failure;
use crate::files;
use crate::network::{self, Network, NetworkArgs};
use crate::output::Output;
use crate::stream::http_origin;

#[derive(Debug, Args)]
pub(super) struct HostArgs {
    /// A PDS or a relay.
    #[arg(value_name = "URL")]
    url: String,
    /// Number of accounts whose status, commit, repository, blocks and records are asked for.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    accounts: u16,
    /// Seconds for which the live stream is heard.
    #[arg(long, value_name = "N", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Maximum number of requests per second.
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    requests: u32,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    /// Print the verdict in one line.
    #[arg(long, conflicts_with = "json")]
    line: bool,
    /// Write the judgement to this file as a page.
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    html: Option<PathBuf>,
    #[command(flatten)]
    network: NetworkArgs,
}

pub(super) fn run(args: &HostArgs, output: Output) -> Result<(), Failure> {
    let url = host_url(&args.url)?;
    let Network { http, resolver, directory, .. } =
        Network::open(&args.network, std::slice::from_ref(&url))?;
    let clients = Clients { http, resolver, directory };
    let mut options = Options::default();
    options.accounts = args.accounts.into();
    options.listen = Duration::from_secs(args.seconds);
    options.requests_per_s = args.requests;
    let judgement = network::runtime()?.block_on(host_judge::judge(&url, &clients, &options));
    if let Some(path) = &args.html {
        files::write(path, html::page(&judgement))?;
    }
    let text = if args.line { |judgement: &Judgement| judgement.line() + "\n" } else { to_text };
    output.document(&judgement, args.json, text)?;
    match judgement.verdict {
        "faulty" => Err(Failure::Refused(judgement.line())),
        "unanswered" => Err(Failure::Network(judgement.line())),
        _ => Ok(()),
    }
}

/// The URL of a host, with the scheme of HTTP.
fn host_url(given: &str) -> Result<Url, Failure> {
    let url = parse_host_url(given).map_err(|error| error.to_string());
    let url =
        url.and_then(|url| http_origin(&url).parse().map_err(|_| format!("`{given}`: no host")));
    url.map_err(Failure::Usage)
}

fn to_text(judgement: &Judgement) -> String {
    let Judgement { host, kind, accounts, repositories, stream, answers, .. } = judgement;
    let mut text = format!(
        "host          {host}\nkind          {kind}\nanswers       {answers}\n\
         repositories  {repositories} of {accounts} proved\n\
         messages      {} live, {} of the oldest\n\
         events        {} proved, {} without a key\n\n",
        stream.live, stream.oldest, stream.proved, stream.without_key
    );
    for Finding { code, kind, method, account, seq, message, action, command } in
        &judgement.findings
    {
        let kind = match kind {
            Kind::Violation => "wrong",
            Kind::Unknown => "unknown",
            Kind::Note => "note",
        };
        text += &format!("{kind}: {code}: {method}");
        text += &seq.map(|seq| format!(" at {seq}")).unwrap_or_default();
        text += &account.as_ref().map(|did| format!(" of {did}")).unwrap_or_default();
        text += &format!(": {message}\n  to do: {action}\n");
        if !command.is_empty() {
            text += &format!("  see it: {command}\n");
        }
    }
    let shown = judgement.findings.len() as u64;
    let all: u64 = judgement.codes.iter().map(|count| count.count).sum();
    if all > shown {
        text += &format!("{} more findings of these codes\n", all - shown);
    }
    text + &judgement.line() + "\n"
}

pub(super) const EXAMPLES: &str = "\
Examples:
  wireproof doctor host https://pds.example.com
  wireproof doctor host https://pds.example.com --accounts 100 --seconds 120 --html pds.html
  wireproof doctor host https://relay1.us-east.bsky.network --line";
