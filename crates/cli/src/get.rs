//! `wireproof get`: a record of an account, proved.

use std::io::Write;

use clap::{Args, ValueHint};
use codec::json::append_item;
use codec::printable::escape_json;
use net::http::Url;
use verify::record::{self, Options};

use crate::account::{ResolvedAccount, Signer};
use crate::failure::Failure;
use crate::log::{self, Level};
use crate::names::{self, RecordName};
use crate::network::{self, LazyNetwork, NETWORK, NetworkArgs};
use crate::output::Output;
use crate::stage::Stages;

/// Print a record of an account as JSON, proved as `verify` proves it.
///
/// The account's server sends the record with the part of the tree that proves it. Exit code 1 if the proof fails, or proves
/// that there is no such record. `verify` with the same name prints the proof.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GetArgs {
    /// The record: at://ACCOUNT/COLLECTION/RKEY, the same without at://, or the URL of a post. The account is a handle or a DID.
    #[arg(value_name = "RECORD", value_hint = ValueHint::Other)]
    record: String,
    /// Print the record's bytes as they were signed [default: JSON].
    #[arg(long)]
    raw: bool,
    /// Server to ask: a mirror or a relay. The proof is the same [default: the account's own].
    #[arg(long, value_name = "URL", help_heading = NETWORK)]
    from: Option<Url>,
    #[command(flatten)]
    network: NetworkArgs,
}

pub(crate) fn run(args: &GetArgs, output: Output) -> Result<(), Failure> {
    let RecordName { who, collection, rkey } = names::record(&args.record)?;
    let network = LazyNetwork::new(&args.network, args.from.as_slice(), true);
    let online = network.open()?;
    let (network, runtime) = (&online.network, &online.runtime);
    let account = ResolvedAccount::look_up(network, runtime, who, &mut Stages::default())?;
    let Signer { did, key, host } = account.signer(args.from.as_ref())?;
    let slice = network.xrpc.get_record(&host, did.as_did(), collection, rkey);
    let slice = runtime.block_on(slice).map_err(super::verify::record_failure)?;
    let path = format!("{collection}/{rkey}");
    let from = network::origin(&host);
    let proof = record::verify(&slice, &path, Some(did.as_str()), &key, &Options::default());
    let proof = proof.map_err(|why| {
        Failure::Refused(format!("{path}: refused ({}): {why} (from {from})", why.code()))
    })?;
    let Some((_, block)) = proof.record() else {
        let rev = proof.commit().rev;
        return Err(Failure::Refused(format!(
            "{path}: proved absent: {did} signed a repository without it (revision {rev})"
        )));
    };
    if let Some(invalid) = proof.invalid_record() {
        log::print(Level::Warning, &format!("{path}: the record is invalid: {}", invalid.error))?;
    }
    if args.raw {
        return Ok(output.bytes().write_all(block)?);
    }
    let mut json = Vec::new();
    append_item(&mut json, block)
        .map_err(|error| Failure::Refused(format!("{path}: {error}; --raw prints the bytes")))?;
    escape_json(&mut json, 0);
    json.push(b'\n');
    Ok(output.stdout().write_all(&json)?)
}

const EXAMPLES: &str = "\
Examples:
  wireproof get atproto.com/app.bsky.actor.profile/self
  wireproof get at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.actor.profile/self | jq .description
  wireproof get https://bsky.app/profile/atproto.com/post/3l6oveex3ii2l";
