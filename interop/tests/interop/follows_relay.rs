//! Our client, and the relay of `indigo` between it and the reference PDS.

use wireproof_interop::kit;
use wireproof_interop::pds::Pds;
use wireproof_interop::plc::Plc;
use wireproof_interop::relay::Relay;

use crate::client::{Client, resolver};
use crate::life::Life;
use crate::mirror::Mirror;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_relay_has_what_the_pds_lists() {
    let kit = kit!(Pds, Relay);
    let plc = Plc::start(&kit).await;
    let mut pds = Pds::start(&kit, &plc).await;
    let relay = Relay::start(&kit, &plc, &pds).await;
    let (folder, resolver) = (tempfile::tempdir().unwrap(), resolver(&plc, &pds));
    let client = Client::follow(&relay.url(), resolver, folder.path(), Mirror::default());
    let mut life = Life::begin(&pds).await;
    life.go_on(&pds, "through the relay").await;
    pds.rename(&mut life.people[0], "anna").await;
    pds.deactivate(&life.people[1]).await;
    pds.activate(&life.people[1]).await;
    life.is_mirrored(&client, &plc, &pds).await;

    pds.kill();
    pds.restart().await;
    life.go_on(&pds, "after the death of the PDS").await;
    life.is_mirrored(&client, &plc, &pds).await;

    let mirror = client.end().await;
    assert_eq!(mirror.faults, [""; 0]);
    assert_eq!((mirror.replicas.len(), mirror.connections), (3, 1));
}
