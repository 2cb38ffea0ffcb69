//! A host with one account that has blobs, some of them altered on the way, until standard input ends.
//!
//! ```text
//! blob_host BLOBS BYTES ALTERED
//! ```
//!
//! Prints the DID, the URL of the directory and the one of the host.

use std::collections::HashMap;
use std::io::Error;

use wireproof_simnet::blob_account::{BlobAccount, Spec as BlobSpec};
use wireproof_simnet::servers::{Server, Simulation, Spec};

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |what: &str| -> Result<usize, Error> {
        let argument = arguments.next().ok_or_else(|| Error::other(format!("no {what}")))?;
        argument.parse().map_err(Error::other)
    };
    let (blobs, blob_len, altered) = (number("count")?, number("size")?, number("altered")?);
    let spec = BlobSpec { blobs: blobs as u64, blob_len, ..BlobSpec::default() };
    let account = with_altered(BlobAccount::generate(&spec), altered);
    let spec = Spec { accounts: 1, records: 1, pds: 1, jetstreams: 0, ..Spec::default() };
    let network = Simulation::start(spec).map_err(Error::other)?;
    println!("{}", account.did());
    network.serve_blob_account(0, account);
    println!("{}\n{}", network.url(Server::Plc), network.url(Server::Pds(0)));
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).map(drop)
}

/// The account with one other bit in every blob of the first `altered` ones.
fn with_altered(account: BlobAccount, altered: usize) -> BlobAccount {
    let mut cids: Vec<_> = account.cids().copied().collect();
    cids.sort_unstable();
    let mut sent: HashMap<_, _> =
        cids.iter().filter_map(|cid| Some((*cid, account.blob(cid)?))).collect();
    for cid in cids.iter().take(altered) {
        sent.entry(*cid).and_modify(|content| content[0] ^= 1);
    }
    let (did, key) = (account.did().to_owned(), account.signing_key().to_owned());
    BlobAccount::new(did, key, account.archive().to_vec(), sent)
}
