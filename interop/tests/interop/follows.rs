//! The client follows the reference PDS, directly and through the relay of `indigo`.

use wireproof_interop::kit;
use wireproof_interop::pds::{Pds, Plc};
use wireproof_interop::relay::Relay;

use crate::activity::Activity;
use crate::client::{Client, Mirror, resolver};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_mirrors_the_pds_through_crashes_and_restarts_of_both() {
    let kit = kit!(Pds);
    let folder = tempfile::tempdir().unwrap();
    let plc = Plc::start(&kit).await;
    let mut pds = Pds::start(&kit, &plc).await;
    let follow =
        |pds: &Pds, mirror| Client::follow(&pds.url(), resolver(&plc, pds), folder.path(), mirror);
    let mut activity = Activity::start(&pds).await;
    activity.write_records(&pds, "before the client follows").await;
    let client = follow(&pds, Mirror::default());
    activity.assert_mirrored(&client, &plc, &pds).await;

    activity.write_records(&pds, "followed").await;
    pds.rename(&mut activity.accounts[0], "anna").await;
    pds.deactivate(&activity.accounts[1]).await;
    pds.activate(&activity.accounts[1]).await;
    activity.write_until_killed(&pds).await;
    pds.kill();
    pds.restart().await;
    activity.write_records(&pds, "after the crash").await;
    activity.assert_mirrored(&client, &plc, &pds).await;
    let connections = client.mirror().connections;

    let mirror = client.end().await;
    activity.write_records(&pds, "while the client was stopped").await;
    let client = follow(&pds, mirror);
    let deleted = activity.accounts.pop().unwrap();
    pds.delete_account(&deleted).await;
    activity.assert_mirrored(&client, &plc, &pds).await;
    client
        .wait_until("the deletion", |mirror| mirror.replicas[&deleted.did].status.is_some())
        .await;

    let mirror = client.end().await;
    assert_eq!(mirror.faults, [""; 0]);
    assert_eq!(connections, 2, "one for each run of the PDS");
    assert_eq!(mirror.connections, 3);
    assert_eq!(mirror.replicas.len(), 3);
    assert_eq!(mirror.replicas[&deleted.did].status.as_deref(), Some("deleted"));
    assert!(mirror.replicas[&deleted.did].records.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_relay_mirrors_the_pds() {
    let kit = kit!(Pds, Relay);
    let plc = Plc::start(&kit).await;
    let mut pds = Pds::start(&kit, &plc).await;
    let relay = Relay::start(&kit, &plc, &[&pds]).await;
    let (folder, resolver) = (tempfile::tempdir().unwrap(), resolver(&plc, &pds));
    let client = Client::follow(&relay.url(), resolver, folder.path(), Mirror::default());
    let mut activity = Activity::start(&pds).await;
    activity.write_records(&pds, "through the relay").await;
    pds.rename(&mut activity.accounts[0], "anna").await;
    pds.deactivate(&activity.accounts[1]).await;
    pds.activate(&activity.accounts[1]).await;
    activity.assert_mirrored(&client, &plc, &pds).await;

    pds.kill();
    pds.restart().await;
    activity.write_records(&pds, "after the crash of the PDS").await;
    activity.assert_mirrored(&client, &plc, &pds).await;

    let mirror = client.end().await;
    assert_eq!(mirror.faults, [""; 0]);
    assert_eq!((mirror.replicas.len(), mirror.connections), (3, 1));
}
