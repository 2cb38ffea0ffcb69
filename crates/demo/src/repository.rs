//! Verifies the repository of an account, from its handle to the last block.

use std::io::Write;
use std::time::Instant;

use atproto::syntax::Handle;
use net::http::Limits;
use net::xrpc;
use tokio::runtime::Runtime;
use verify::repository;

use crate::Failure;
use crate::network::Network;

/// Resolves an account, fetches its repository from its server, and verifies it.
pub(crate) fn verify(network: &Network, out: &mut impl Write) -> Result<(), Failure> {
    Runtime::new()?.block_on(verify_account(network, out))
}

async fn verify_account(network: &Network, out: &mut impl Write) -> Result<(), Failure> {
    let handle = network.simulation.account(0).handle;
    let identity = network.resolver.identity_of_handle(Handle::parse(&handle)?).await?;
    let (did, account) = (identity.did(), &identity.account);
    let host = account.host.as_ref().ok_or("an account without a server")?;
    let key = account.key.as_ref().ok_or("an account without a key")?;
    writeln!(out, "   @{handle} is {did}, hosted by {host}")?;

    let mut export = Vec::new();
    let client = xrpc::Client::new(network.http.clone());
    client.fetch_repo(host, did, &mut export, &Limits::REPOSITORY).await?;

    let since = Instant::now();
    let options = repository::Options::default();
    let whole = repository::verify(&export, Some(did.as_str()), key, &options)?;
    writeln!(
        out,
        "   {} records in {} bytes verified in {:.1} ms: every hash, the signature, the whole tree",
        whole.tree().records,
        export.len(),
        since.elapsed().as_secs_f64() * 1e3
    )?;
    Ok(())
}
