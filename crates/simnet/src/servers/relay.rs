//! A relay: one stream of what all PDSs tell, and who is where. Repositories it has none; it says where
//! they are.

use std::sync::Arc;

use serde_json::json;

use super::answer::{self, Answer, Query, Question};
use super::network::Network;
use super::pds::not_a_method;
use super::spec::Server;
use super::xrpc;

pub(super) fn answer(network: &Arc<Network>, server: Server, question: &Question) -> Answer {
    match question.uri().path().strip_prefix("/xrpc/") {
        Some("_health") => answer::json(200, &json!({ "status": "ok" })),
        Some(method) => {
            xrpc::answer(network, server, method, &Query::of(question)).unwrap_or_else(not_a_method)
        }
        None => answer::text(404, "Not Found"),
    }
}
