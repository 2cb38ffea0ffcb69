//! The arguments of the admin API.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};
use net::http_server::AccessToken;

use crate::admin_api::access::{self, AdminAddress};
use crate::failure::Failure;
use crate::help::EXPERT;
use crate::stream::OPERATION;

/// The address of the admin API of a run, and who may use it.
#[derive(Clone, Debug, Default, Args)]
pub struct AdminArgs {
    /// Serve an admin API at this address: ADDRESS:PORT or unix:PATH. It lists, adds and removes accounts and
    /// collections, pauses and resumes, and shows states: `wireproof accounts`, `collections`, `status`, `pause` and
    /// `resume` use it. It needs a token.
    #[arg(long, env = "WIREPROOF_ADMIN", value_name = "ADDRESS")]
    #[arg(help_heading = OPERATION)]
    admin: Option<AdminAddress>,
    /// File with the token of --admin: 16 to 256 characters [default: the token in WIREPROOF_ADMIN_TOKEN].
    #[arg(long, env = "WIREPROOF_ADMIN_TOKEN_FILE", value_name = "FILE")]
    #[arg(value_hint = ValueHint::FilePath)]
    #[arg(help_heading = OPERATION)]
    admin_token_file: Option<PathBuf>,
    /// Allow an address of --admin that other machines reach. The token is sent unencrypted: put a TLS proxy in front
    /// of it.
    #[arg(long, env = "WIREPROOF_ADMIN_REMOTE", value_parser = FalseyValueParser::new())]
    #[arg(help_heading = EXPERT)]
    admin_remote: bool,
}

impl AdminArgs {
    /// Whether the run has an admin API.
    pub(crate) fn is_served(&self) -> bool {
        self.admin.is_some()
    }

    /// The address of the admin API, and its token.
    pub(crate) fn socket(&self) -> Result<Option<(&AdminAddress, AccessToken)>, Failure> {
        let Some(address) = &self.admin else { return Ok(None) };
        if !address.is_local() && !self.admin_remote {
            return Err(Failure::Usage(format!(
                "--admin {address}: other machines reach this address: add --admin-remote"
            )));
        }
        let token = access::read_token(self.admin_token_file.as_deref())?;
        let token = AccessToken::new(&token);
        let token = token.map_err(|error| Failure::Usage(format!("--admin: {error}")))?;
        Ok(Some((address, token)))
    }
}
