//! Our client and the reference PDS.

use wireproof_interop::kit;
use wireproof_interop::pds::Pds;
use wireproof_interop::plc::Plc;

use crate::client::{Client, resolver};
use crate::life::Life;
use crate::mirror::Mirror;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_what_the_pds_lists_through_deaths_and_restarts_of_both() {
    let kit = kit!(Pds);
    let folder = tempfile::tempdir().unwrap();
    let plc = Plc::start(&kit).await;
    let mut pds = Pds::start(&kit, &plc).await;
    let follow =
        |pds: &Pds, mirror| Client::follow(&pds.url(), resolver(&plc, pds), folder.path(), mirror);
    let mut life = Life::begin(&pds).await;
    life.go_on(&pds, "before anybody follows").await;
    let client = follow(&pds, Mirror::default());
    life.is_mirrored(&client, &plc, &pds).await;

    life.go_on(&pds, "followed").await;
    pds.rename(&mut life.people[0], "anna").await;
    pds.deactivate(&life.people[1]).await;
    pds.activate(&life.people[1]).await;
    life.write_until_it_is_gone(&pds).await;
    pds.kill();
    pds.restart().await;
    life.go_on(&pds, "after its death").await;
    life.is_mirrored(&client, &plc, &pds).await;
    let connections = client.mirror().connections;

    let mirror = client.end().await;
    life.go_on(&pds, "while nobody followed").await;
    let client = follow(&pds, mirror);
    let gone = life.people.pop().unwrap();
    pds.delete_account(&gone).await;
    life.is_mirrored(&client, &plc, &pds).await;
    client.wait_until("the deletion", |mirror| mirror.replicas[&gone.did].status.is_some()).await;

    let mirror = client.end().await;
    assert_eq!(mirror.faults, [""; 0]);
    assert_eq!(connections, 2, "once for each life of the PDS");
    assert_eq!(mirror.connections, 3);
    assert_eq!(mirror.replicas.len(), 3);
    assert_eq!(mirror.replicas[&gone.did].status.as_deref(), Some("deleted"));
    assert!(mirror.replicas[&gone.did].records.is_empty());
}
