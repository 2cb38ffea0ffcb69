//! A PDS: repositories, the handles of the network, and the stream of what is written here.

use std::sync::Arc;

use hyper::header::HOST;
use serde_json::json;

use super::answer::{self, Answer, Query, Question, Refusal, either, error};
use super::fault::Fault;
use super::network::Network;
use super::spec::Server;
use super::xrpc;

pub(super) fn answer(network: &Arc<Network>, server: Server, question: &Question) -> Answer {
    let (path, query) = (question.uri().path(), Query::of(question));
    match path.strip_prefix("/xrpc/") {
        Some("_health") => answer::json(200, &json!({ "version": "simnet" })),
        Some("com.atproto.identity.resolveHandle") => either(resolve(network, server, &query)),
        Some(method) => xrpc::answer(network, server, method, &query).unwrap_or_else(not_a_method),
        None if path == "/.well-known/atproto-did" => well_known(network, server, question),
        None => answer::text(404, "Not Found"),
    }
}

/// What a method is answered by that a server does not have.
pub(super) fn not_a_method() -> Answer {
    error(501, "MethodNotImplemented", "Method Not Implemented").into_answer()
}

/// The DID behind the name that is asked for. On loopback all names have one address, so that any PDS
/// answers for the accounts of all.
fn well_known(network: &Network, server: Server, question: &Question) -> Answer {
    let host = question.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.split(':').next().unwrap_or_default();
    match did(network, server, name) {
        Some(did) => answer::text(200, &did),
        None => answer::text(404, "User not found"),
    }
}

fn resolve(network: &Network, server: Server, query: &Query) -> Result<Answer, Refusal> {
    let did = did(network, server, query.need("handle")?);
    let did = did.ok_or_else(|| error(400, "InvalidRequest", "Unable to resolve handle"))?;
    Ok(answer::json(200, &json!({ "did": did })))
}

fn did(network: &Network, server: Server, handle: &str) -> Option<String> {
    let did = network.did_by_handle(handle)?;
    match network.faults.hit(server, Fault::WrongHandle) {
        Some(_) => Some("did:plc:ewvi7nxzyoun6zhxrhs64oiz".to_owned()),
        None => Some(did),
    }
}
