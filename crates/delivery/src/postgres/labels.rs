//! The table of labels: a row for every source, subject and value.

use std::borrow::Cow;

use kernels::sha256;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, GenericClient, Statement};

use super::tables::{Layout, storable};
use crate::label_rows::LabelRow;

/// The statement that applies labels.
#[derive(Debug)]
pub(super) struct UpsertStatement(Statement);

impl UpsertStatement {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        client.prepare(UPSERT).await.map(Self)
    }

    /// Applies labels, of which no two are about the same. Returns the number of changed rows.
    pub(super) async fn run(
        &self,
        client: &impl GenericClient,
        rows: &[&LabelRow<'_>],
    ) -> Result<u64, Error> {
        let column = |of: for<'a> fn(&'a LabelRow<'_>) -> &'a str| -> Vec<Cow<'_, str>> {
            rows.iter().map(|row| storable(of(row))).collect()
        };
        let optional = |of: for<'a> fn(&'a LabelRow<'_>) -> Option<&'a str>| {
            rows.iter().map(|row| of(row).map(storable)).collect::<Vec<Option<Cow<'_, str>>>>()
        };
        let negations: Vec<Option<bool>> = rows.iter().map(|row| row.line.neg).collect();
        let created: Vec<i64> = rows.iter().map(|row| row.created).collect();
        let expires: Vec<Option<i64>> = rows.iter().map(|row| row.expires).collect();
        let subjects: Vec<Vec<u8>> =
            rows.iter().map(|row| subject(LabelRow::text(&row.line.uri))).collect();
        let seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
        let columns: [&(dyn ToSql + Sync); 14] = [
            &column(|row| LabelRow::text(&row.line.src)),
            &column(|row| LabelRow::text(&row.line.uri)),
            &column(|row| LabelRow::text(&row.line.val)),
            &optional(|row| row.line.cid.as_deref()),
            &negations,
            &column(|row| LabelRow::text(&row.line.cts)),
            &optional(|row| row.line.exp.as_deref()),
            &created,
            &expires,
            &column(|row| LabelRow::text(&row.line.service)),
            &seqs,
            &column(|row| LabelRow::text(&row.line.sig)),
            &column(|row| LabelRow::text(&row.line.key)),
            &subjects,
        ];
        client.execute(&self.0, &columns).await
    }
}

/// The part of the key for a subject.
fn subject(uri: &str) -> Vec<u8> {
    sha256::digest(storable(uri).as_bytes()).to_vec()
}

const UPSERT: &str = "
INSERT INTO label_state AS known
    (src, uri, val, cid, neg, cts, exp, created, expires, service, seq, sig, key, subject)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::text[], $7::text[], $8::bigint[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[], $13::text[], $14::bytea[])
ON CONFLICT (src, val, subject) DO UPDATE SET
    cid = excluded.cid, neg = excluded.neg, cts = excluded.cts, exp = excluded.exp, created = excluded.created,
    expires = excluded.expires, service = excluded.service, seq = excluded.seq, sig = excluded.sig, key = excluded.key
WHERE (excluded.created, excluded.seq) >= (known.created, known.seq)";

/// The tables of labels.
pub(super) const LAYOUT: Layout = Layout {
    names: &["cursor", "label", "label_of_subject", "label_state"],
    mark: "wireproof tables of labels, version ",
    version: "1",
    schema: SCHEMA,
    from_version_1: None,
};

/// `subject` is the SHA-256 of `uri`, which may be longer than an entry of a B-tree.
const SCHEMA: &str = r#"
CREATE TABLE label_state (
    src text COLLATE "C" NOT NULL,
    uri text COLLATE "C" NOT NULL,
    val text COLLATE "C" NOT NULL,
    cid text COLLATE "C",
    neg boolean,
    cts text COLLATE "C" NOT NULL,
    exp text COLLATE "C",
    created bigint NOT NULL,
    expires bigint,
    service text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    sig text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    subject bytea NOT NULL,
    PRIMARY KEY (src, val, subject)
);

CREATE INDEX label_of_subject ON label_state USING hash (uri);

CREATE VIEW label AS SELECT src, uri, val, cid, cts, exp FROM label_state
WHERE neg IS NOT TRUE AND (expires IS NULL OR expires > (extract(epoch FROM now()) * 1000000)::bigint);

CREATE TABLE cursor (
    outbox text COLLATE "C" PRIMARY KEY,
    position bigint NOT NULL
);

COMMENT ON TABLE cursor IS 'wireproof tables of labels, version 1';
"#;
