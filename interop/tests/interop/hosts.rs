//! The judgement of real servers: what breaks the protocol is named, and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use host_judge::{Clients, Judgement, Options, judge};
use serde_json::json;
use wireproof_interop::arroba::Arroba;
use wireproof_interop::kit;
use wireproof_interop::pds::{Pds, Plc};
use wireproof_interop::relay::Relay;

use crate::activity::Activity;
use crate::client::resolver_at;

async fn judged(url: &str, plc: &Plc, handle_port: u16) -> Judgement {
    let (http, resolver) = resolver_at(plc, handle_port);
    let clients = Clients { http, resolver, directory: plc.url().parse().unwrap() };
    let mut options = Options::default();
    (options.listen, options.requests_per_s) = (Duration::from_secs(6), 100);
    judge(&url.parse().unwrap(), &clients, &options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_pds_breaks_no_rule() {
    let kit = kit!(Pds);
    let plc = Plc::start(&kit).await;
    let pds = Pds::start(&kit, &plc).await;
    let activity = Activity::start(&pds).await;
    activity.write_records(&pds, "before").await;
    let away = pds.create_account("dan").await;
    pds.deactivate(&away).await;
    let url = pds.url();
    let writes = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        activity.write_records(&pds, "meanwhile").await;
    };
    let (judgement, ()) = tokio::join!(judged(&url, &plc, pds.port()), writes);
    assert_eq!(judgement.verdict, "sound", "{judgement:#?}");
    assert_eq!((judgement.kind, judgement.repositories), ("pds", 3), "{judgement:#?}");
    assert!(judgement.stream.live > 0 && judgement.stream.without_key == 0, "{judgement:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_relay_of_indigo_joins_a_future_cursor_to_the_live_stream_and_breaks_no_other_rule() {
    let kit = kit!(Pds, Relay);
    let plc = Plc::start(&kit).await;
    let pds = Pds::start(&kit, &plc).await;
    let relay = Relay::start(&kit, &plc, &[&pds]).await;
    let activity = Activity::start(&pds).await;
    let url = relay.url();
    let writes = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        activity.write_records(&pds, "meanwhile").await;
    };
    let (judgement, ()) = tokio::join!(judged(&url, &plc, pds.port()), writes);
    assert_eq!(judgement.violations(), BTreeSet::from(["cursor/future"]), "{judgement:#?}");
    assert_eq!(judgement.kind, "relay", "{judgement:#?}");
    assert!(judgement.stream.proved > 0, "{judgement:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pds_of_arroba_sends_incomplete_proofs_of_records_and_breaks_no_other_rule() {
    let kit = kit!(Pds, Arroba);
    let plc = Plc::start(&kit).await;
    let pds = Arroba::start(&kit, &plc, &["eve.test"]).await;
    let did = pds.did("eve.test").await;
    let collection = "app.test.note";
    let record = |number: u32| json!({ "$type": collection, "number": number });
    let records: Vec<_> = (0..60).map(|number| (format!("{number:05}"), record(number))).collect();
    pds.create(&did, collection, &records).await;
    let judgement = judged(&pds.url(), &plc, pds.port()).await;
    assert_eq!(judgement.violations(), BTreeSet::from(["tree/missing-node"]), "{judgement:#?}");
    assert!(judgement.findings.iter().all(|found| found.method == "getRecord"), "{judgement:#?}");
    assert_eq!(judgement.repositories, 1, "{judgement:#?}");
}
