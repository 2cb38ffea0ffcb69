//! Clients of `com.atproto.sync.subscribeRepos` follow `wireproof serve`: each receives every event of the network, although it
//! and the server are killed.

use simnet::servers::Server;
use wireproof_interop::kit;
use wireproof_interop::rainbow::Rainbow;
use wireproof_interop::reader::{Reader, StreamOptions};

use crate::served::{Served, records_of};
use crate::served_client::{Client, Form, follows_through_kills};

#[test]
fn atproto_sync_verifies_every_event_although_it_and_the_server_are_killed() {
    let kit = kit!(Readers);
    follows_through_kills(Form::Frames, |served, cursor| {
        Reader::atproto_sync(&kit, &served.url(), &plc(served), cursor)
    });
}

#[test]
fn indigo_verifies_every_event_although_it_and_the_server_are_killed() {
    let kit = kit!(Relay);
    follows_through_kills(Form::Frames, |served, cursor| {
        Reader::indigo(&kit, &served.url(), &plc(served), cursor)
    });
}

#[test]
fn atcute_firehose_receives_every_event_although_it_and_the_server_are_killed() {
    let kit = kit!(Readers);
    follows_through_kills(Form::Frames, |served, cursor| {
        Reader::atcute_firehose(&kit, &served.url(), cursor)
    });
}

#[test]
fn atproto_of_python_receives_every_event_although_it_and_the_server_are_killed() {
    let kit = kit!(SdkPython);
    follows_through_kills(Form::Frames, |served, cursor| {
        Reader::atproto_of_python(&kit, &served.url(), cursor)
    });
}

#[test]
fn shrike_receives_every_event_although_it_and_the_server_are_killed() {
    let kit = kit!(SdkRust);
    follows_through_kills(Form::FramesWithoutSync, |served, cursor| {
        let options = StreamOptions::from(cursor);
        Reader::sdk_of_rust(&kit, "shrike-frames", &served.url(), &options)
    });
}

#[test]
fn jacquard_receives_every_event_although_it_and_the_server_are_killed() {
    let kit = kit!(SdkRust);
    follows_through_kills(Form::Frames, |served, cursor| {
        let options = StreamOptions::from(cursor);
        Reader::sdk_of_rust(&kit, "jacquard-frames", &served.url(), &options)
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn rainbow_passes_every_event_on_although_it_and_the_server_are_killed() {
    let kit = kit!(Relay, Readers);
    let mut served = Served::start();
    let mut rainbow = Rainbow::start(&kit, &served.http_url()).await;
    let url = rainbow.url();
    let start = |_: &Served, cursor| Reader::atcute_firehose(&kit, &url, cursor);
    let mut client = Client::new(&served, Form::Frames, start);
    client.receive_all(&served);
    served.sim.write_commits(60);
    served.kill_and_restart();
    client.receive_all(&served);
    served.sim.write_commits(60);
    rainbow.restart().await;
    served.change();
    client.receive_all(&served);
    client.ends_with(&records_of(&served.sim));
}

fn plc(served: &Served) -> String {
    served.sim.url(Server::Plc)
}
