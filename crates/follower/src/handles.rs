//! Handles among the accounts of `--dids`: each is resolved once, at the start, to the account that claims it.

use atproto::syntax::AtIdentifier;

use crate::account::claimant;
use crate::failure::Failure;
use crate::log::{self, Level};
use crate::network::Network;

/// The accounts with a DID in the place of each handle, and a notice which one it is. `@FILE` and other texts stay.
pub(super) async fn resolve(
    mut accounts: Vec<String>,
    network: &Network,
) -> Result<Vec<String>, Failure> {
    for account in &mut accounts {
        let Ok(who) = AtIdentifier::parse(account) else { continue };
        if who.as_handle().is_none() {
            continue;
        }
        let did = claimant(network, who).await.map_err(|failure| of_option(account, failure))?;
        // If standard error is closed, the lines name the account.
        let _ = log::print(Level::Info, &format!("--dids {account}: {did}"));
        *account = did.to_string();
    }
    Ok(accounts)
}

/// A handle that leads to no account is an error of usage.
fn of_option(account: &str, failure: Failure) -> Failure {
    match failure.after(&format!("--dids {account}: ")) {
        Failure::Refused(message) => Failure::Usage(message),
        other => other,
    }
}
