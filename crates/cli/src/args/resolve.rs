//! What can be asked about identities?

use clap::Args;

use super::network::NetworkArgs;

/// Tells who is behind a handle or a DID: DID, handle, server, signing key.
///
/// A handle is asked for in the DNS and at its host, of which the DNS counts; a DID in the directory of
/// did:plc or at its host. A handle is verified if it leads to the DID and the DID's document claims
/// it. Exit code 1 if nobody is there, or the account behind a handle does not claim it; an account
/// without a verified handle is an account all the same.
#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// Who.
    #[arg(value_name = "HANDLE|DID")]
    pub(crate) who: String,
    /// One JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  wireproof resolve atproto.com
  wireproof resolve did:plc:ewvi7nxzyoun6zhxrhs64oiz --json | jq -r .signing_key
  wireproof resolve ada.test --plc http://localhost:4480 --development-port 4481";
