//! The table of Nostr events: a row an event.

use std::borrow::Cow;

use events::NostrEvent;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, GenericClient, Statement};

use super::tables::{Layout, storable};

/// The statement that inserts events.
#[derive(Debug)]
pub(super) struct InsertStatement(Statement);

impl InsertStatement {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        client.prepare(INSERT).await.map(Self)
    }

    /// Inserts the events that the table has not. Returns their number.
    pub(super) async fn run(
        &self,
        client: &impl GenericClient,
        events: &[NostrEvent<'_>],
    ) -> Result<u64, Error> {
        let column = |of: for<'a> fn(&'a NostrEvent<'_>) -> &'a str| -> Vec<Cow<'_, str>> {
            events.iter().map(|event| storable(of(event))).collect()
        };
        let created: Vec<i64> = events.iter().map(|event| event.created_at).collect();
        let kinds: Vec<i32> = events.iter().map(|event| event.kind.into()).collect();
        let columns: [&(dyn ToSql + Sync); 7] = [
            &column(|event| &event.id),
            &column(|event| &event.pubkey),
            &created,
            &kinds,
            &column(|event| event.tags.get()),
            &column(|event| &event.content),
            &column(|event| &event.sig),
        ];
        client.execute(&self.0, &columns).await
    }
}

const INSERT: &str = "
INSERT INTO event (id, pubkey, created_at, kind, tags, content, sig)
SELECT id, pubkey, created_at, kind, tags::json, content, sig
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::integer[], $5::text[], $6::text[], $7::text[])
WITH ORDINALITY AS row (id, pubkey, created_at, kind, tags, content, sig, number) ORDER BY row.number
ON CONFLICT (id) DO NOTHING";

/// The tables of Nostr events.
pub(super) const LAYOUT: Layout = Layout {
    names: &["cursor", "event"],
    mark: "wireproof tables of Nostr events, version ",
    version: "1",
    schema: SCHEMA,
    from_version_1: None,
};

/// `json`, unlike `jsonb`, holds U+0000 in a tag.
const SCHEMA: &str = r#"
CREATE TABLE event (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    pubkey text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    kind integer NOT NULL,
    tags json NOT NULL,
    content text NOT NULL,
    sig text COLLATE "C" NOT NULL
);

CREATE TABLE cursor (
    outbox text COLLATE "C" PRIMARY KEY,
    position bigint NOT NULL
);

COMMENT ON TABLE cursor IS 'wireproof tables of Nostr events, version 1';
"#;
