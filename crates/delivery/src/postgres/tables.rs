//! The tables of a [`PostgresSink`](super::PostgresSink): their rows in SQL, a few statements per batch.

use std::borrow::Cow;
use std::collections::HashMap;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, GenericClient, Statement};

use crate::database::OutboxIdentity;
use crate::tables::{
    Account, Changes, ParsedEvent, RecordChange, RecordPath, RecordRow, Step, dids,
};

/// The statements of the cursor, which every batch uses.
#[derive(Debug)]
pub(super) struct CursorStatements {
    position: Statement,
    set_position: Statement,
}

impl CursorStatements {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            position: client.prepare("SELECT position FROM cursor WHERE outbox = $1").await?,
            set_position: client.prepare(SET_POSITION).await?,
        })
    }

    /// The position of the last event of an outbox in these tables.
    pub(super) async fn position(
        &self,
        client: &impl GenericClient,
        outbox: OutboxIdentity,
    ) -> Result<Option<u64>, Error> {
        let row = client.query_opt(&self.position, &[&outbox.to_string()]).await?;
        row.map(|row| row.try_get(0).map(i64::cast_unsigned)).transpose()
    }

    /// Stores the position of the last event of an outbox.
    pub(super) async fn set_position(
        &self,
        client: &impl GenericClient,
        outbox: OutboxIdentity,
        position: u64,
    ) -> Result<(), Error> {
        let row: [&(dyn ToSql + Sync); 2] = [&outbox.to_string(), &position.cast_signed()];
        client.execute(&self.set_position, &row).await.map(drop)
    }
}

/// The statements of records, accounts and events.
#[derive(Debug)]
pub(super) struct Statements {
    accounts: Statement,
    insert_events: Statement,
    delete_old_events: Statement,
    put_accounts: Statement,
    put_records: Statement,
    delete_records: Statement,
    delete_outdated: Statement,
}

impl Statements {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            accounts: client.prepare(ACCOUNTS).await?,
            insert_events: client.prepare(INSERT_EVENTS).await?,
            delete_old_events: client.prepare(DELETE_OLD_EVENTS).await?,
            put_accounts: client.prepare(PUT_ACCOUNTS).await?,
            put_records: client.prepare(PUT_RECORDS).await?,
            delete_records: client.prepare(DELETE_RECORDS).await?,
            delete_outdated: client.prepare(DELETE_OUTDATED).await?,
        })
    }

    /// Applies events. Returns the number of written and deleted rows of `record`.
    pub(super) async fn apply(
        &self,
        client: &impl GenericClient,
        events: &[ParsedEvent<'_>],
        has_json: bool,
        max_events: u64,
    ) -> Result<u64, Error> {
        let known = self.accounts(client, &dids(events)).await?;
        let mut changes = Changes::new(known);
        events.iter().for_each(|event| changes.apply(&event.line));
        self.insert_events(client, events).await?;
        self.put_accounts(client, &changes).await?;
        for step in changes.steps() {
            self.apply_step(client, step, has_json).await?;
        }
        self.delete_old_events(client, max_events).await?;
        Ok(changes.rows())
    }

    /// Deletes all but the last `max` rows of `event`.
    async fn delete_old_events(&self, client: &impl GenericClient, max: u64) -> Result<(), Error> {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        client.execute(&self.delete_old_events, &[&max]).await.map(drop)
    }

    /// The rows of those accounts that have one.
    async fn accounts<'l>(
        &self,
        client: &impl GenericClient,
        dids: &[&'l str],
    ) -> Result<HashMap<&'l str, Account>, Error> {
        let cleaned: Vec<Cow<'_, str>> = dids.iter().map(|did| storable(did)).collect();
        let mut found = HashMap::with_capacity(dids.len());
        for row in client.query(&self.accounts, &[&cleaned]).await? {
            let number: i64 = row.try_get(0)?;
            let did = usize::try_from(number - 1).ok().and_then(|at| dids.get(at));
            let Some(did) = did else { continue };
            let account = Account {
                rev: row.try_get(1)?,
                claimed_handle: row.try_get(2)?,
                active: row.try_get(3)?,
                status: row.try_get(4)?,
                complete: row.try_get(5)?,
                complete_in: row.try_get::<_, Option<String>>(6)?.map(|names| read_names(&names)),
                generation: row.try_get(7)?,
                next_piece: row.try_get(8)?,
            };
            found.insert(*did, account);
        }
        Ok(found)
    }

    async fn insert_events(
        &self,
        client: &impl GenericClient,
        events: &[ParsedEvent<'_>],
    ) -> Result<(), Error> {
        let column = |of: for<'a> fn(&'a ParsedEvent<'_>) -> &'a str| -> Vec<Cow<'_, str>> {
            events.iter().map(|event| storable(of(event))).collect()
        };
        let revs: Vec<_> = events.iter().map(|event| event.line.rev().map(storable)).collect();
        let live: Vec<bool> = events.iter().map(|event| event.line.is_live()).collect();
        let lines: Vec<_> = events.iter().map(ParsedEvent::text).collect();
        let columns: [&(dyn ToSql + Sync); 8] = [
            &column(|event| event.event.id()),
            &column(|event| event.line.did()),
            &column(|event| event.line.kind().as_str()),
            &revs,
            &column(|event| event.line.verdict.as_str()),
            &column(|event| event.line.code.as_str()),
            &live,
            &lines,
        ];
        client.execute(&self.insert_events, &columns).await.map(drop)
    }

    async fn put_accounts(
        &self,
        client: &impl GenericClient,
        changes: &Changes<'_>,
    ) -> Result<(), Error> {
        let (dids, accounts): (Vec<_>, Vec<&Account>) =
            changes.accounts().map(|(did, account)| (storable(did), account)).unzip();
        if dids.is_empty() {
            return Ok(());
        }
        let text = |of: fn(&Account) -> &Option<String>| -> Vec<Option<Cow<'_, str>>> {
            accounts.iter().map(|account| of(account).as_deref().map(storable)).collect()
        };
        let active: Vec<bool> = accounts.iter().map(|account| account.active).collect();
        let complete: Vec<bool> = accounts.iter().map(|account| account.complete).collect();
        let complete_in: Vec<Option<String>> = accounts
            .iter()
            .map(|account| account.complete_in.as_ref().map(|of| of.join(",")))
            .collect();
        let generations: Vec<i64> = accounts.iter().map(|account| account.generation).collect();
        let pieces: Vec<Option<i64>> = accounts.iter().map(|account| account.next_piece).collect();
        let columns: [&(dyn ToSql + Sync); 9] = [
            &dids,
            &text(|account| &account.rev),
            &text(|account| &account.claimed_handle),
            &active,
            &text(|account| &account.status),
            &complete,
            &complete_in,
            &generations,
            &pieces,
        ];
        client.execute(&self.put_accounts, &columns).await.map(drop)
    }

    /// Writes a step. Its JSON goes into `record` where `jsonb` can hold it and `has_json` allows that, else into
    /// `record_text`.
    async fn apply_step(
        &self,
        client: &impl GenericClient,
        step: &Step<'_>,
        has_json: bool,
    ) -> Result<(), Error> {
        let mut deleted = Paths::default();
        let mut put = [false, true].map(|_| RecordColumns::default());
        for (path, change) in &step.records {
            match change {
                RecordChange::Delete => deleted.push(*path),
                RecordChange::Put(row) => {
                    put[usize::from(row.is_replaced)].push(*path, row, has_json)
                }
            }
        }
        if !deleted.dids.is_empty() {
            let columns: [&(dyn ToSql + Sync); 3] =
                [&deleted.dids, &deleted.collections, &deleted.rkeys];
            client.execute(&self.delete_records, &columns).await?;
        }
        for (put, is_replaced) in put.iter().zip([false, true]) {
            if !put.paths.dids.is_empty() {
                client.execute(&self.put_records, &put.values(&is_replaced)).await?;
            }
        }
        if !step.outdated.is_empty() {
            let dids: Vec<Cow<'_, str>> = step.outdated.keys().map(|did| storable(did)).collect();
            let generations: Vec<i64> = step.outdated.values().copied().collect();
            client.execute(&self.delete_outdated, &[&dids, &generations]).await?;
        }
        Ok(())
    }
}

/// The columns of a path.
#[derive(Default)]
struct Paths<'l> {
    dids: Vec<Cow<'l, str>>,
    collections: Vec<Cow<'l, str>>,
    rkeys: Vec<Cow<'l, str>>,
}

impl<'l> Paths<'l> {
    fn push(&mut self, (did, collection, rkey): RecordPath<'l>) {
        self.dids.push(storable(did));
        self.collections.push(storable(collection));
        self.rkeys.push(storable(rkey));
    }
}

/// The columns of `record`.
#[derive(Default)]
struct RecordColumns<'l> {
    paths: Paths<'l>,
    cids: Vec<Option<Cow<'l, str>>>,
    revs: Vec<Cow<'l, str>>,
    live: Vec<bool>,
    records: Vec<Option<&'l str>>,
    texts: Vec<Option<&'l str>>,
    invalid: Vec<Option<&'l str>>,
    generations: Vec<i64>,
}

impl<'l> RecordColumns<'l> {
    fn push(&mut self, path: RecordPath<'l>, row: &RecordRow<'l>, has_json: bool) {
        let is_json = row.record.is_some_and(|text| has_json && jsonb_can_hold(text));
        self.paths.push(path);
        self.cids.push(row.cid.map(storable));
        self.revs.push(storable(row.rev));
        self.live.push(row.live);
        self.records.push(row.record.filter(|_| is_json));
        self.texts.push(row.record.filter(|_| !is_json));
        self.invalid.push(row.invalid);
        self.generations.push(row.generation);
    }

    fn values<'v>(&'v self, is_replaced: &'v bool) -> [&'v (dyn ToSql + Sync); 11] {
        let Paths { dids, collections, rkeys } = &self.paths;
        let Self { cids, revs, live, records, texts, invalid, generations, .. } = self;
        [
            dids,
            collections,
            rkeys,
            cids,
            revs,
            live,
            records,
            texts,
            invalid,
            generations,
            is_replaced,
        ]
    }
}

/// A text as PostgreSQL stores it, which has no U+0000.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// Whether a text in JSON has no U+0000, which `jsonb` does not store.
fn jsonb_can_hold(json: &str) -> bool {
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        // Outside of strings there is no backslash. The letter after it is one byte, or no escape at all.
        let escape = &rest[at + 1..];
        if escape.starts_with("u0000") {
            return false;
        }
        rest = escape.get(1..).unwrap_or_default();
    }
    true
}

/// The names in the column `complete_in`, joined: no name has a comma.
fn read_names(names: &str) -> Vec<String> {
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

const ACCOUNTS: &str = "
SELECT number, rev, claimed_handle, active, status, complete, array_to_string(complete_in, ','), generation, next_piece
FROM unnest($1::text[]) WITH ORDINALITY AS named (did, number) JOIN account USING (did)";

const INSERT_EVENTS: &str = "
INSERT INTO event (id, did, kind, rev, verdict, code, live, line)
SELECT id, did, kind, rev, verdict, code, live, line
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::boolean[], $8::text[])
WITH ORDINALITY AS row (id, did, kind, rev, verdict, code, live, line, number) ORDER BY row.number";

const DELETE_OLD_EVENTS: &str =
    "DELETE FROM event WHERE number <= (SELECT max(number) FROM event) - $1::bigint";

const PUT_ACCOUNTS: &str = "
INSERT INTO account (did, rev, claimed_handle, active, status, complete, complete_in, generation, next_piece)
SELECT did, rev, claimed_handle, active, status, complete, string_to_array(complete_in, ','), generation, next_piece
FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[], $5::text[], $6::boolean[], $7::text[], $8::bigint[], $9::bigint[])
AS row (did, rev, claimed_handle, active, status, complete, complete_in, generation, next_piece)
ON CONFLICT (did) DO UPDATE SET
    rev = excluded.rev, claimed_handle = excluded.claimed_handle, active = excluded.active, status = excluded.status,
    complete = excluded.complete, complete_in = excluded.complete_in, generation = excluded.generation, next_piece = excluded.next_piece";

/// A record that has not changed keeps `rev` and `live`; `$11` is whether all of these were replaced within the batch.
const PUT_RECORDS: &str = "
INSERT INTO record (did, collection, rkey, cid, rev, live, record, record_text, invalid, generation)
SELECT did, collection, rkey, cid, rev, live, record::jsonb, record_text, invalid, generation
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::text[], $8::text[],
    $9::text[], $10::bigint[])
AS row (did, collection, rkey, cid, rev, live, record, record_text, invalid, generation)
ON CONFLICT (did, collection, rkey) DO UPDATE SET
    rev = CASE WHEN record.cid IS NOT DISTINCT FROM excluded.cid AND NOT $11 THEN record.rev ELSE excluded.rev END,
    live = CASE WHEN record.cid IS NOT DISTINCT FROM excluded.cid AND NOT $11 THEN record.live ELSE excluded.live END,
    cid = excluded.cid, record = excluded.record, record_text = excluded.record_text, invalid = excluded.invalid,
    generation = excluded.generation";

const DELETE_RECORDS: &str = "
DELETE FROM record USING unnest($1::text[], $2::text[], $3::text[]) AS gone (did, collection, rkey)
WHERE record.did = gone.did AND record.collection = gone.collection AND record.rkey = gone.rkey";

const DELETE_OUTDATED: &str = "
DELETE FROM record USING unnest($1::text[], $2::bigint[]) AS current (did, generation)
WHERE record.did = current.did AND record.generation < current.generation";

const SET_POSITION: &str = "
INSERT INTO cursor (outbox, position) VALUES ($1, $2)
ON CONFLICT (outbox) DO UPDATE SET position = excluded.position";

/// The parts of the tables in a schema.
#[derive(Debug)]
pub(super) struct Layout {
    /// The names of everything that is created.
    pub(super) names: &'static [&'static str],
    /// The comment of the table `cursor`, before the version.
    pub(super) mark: &'static str,
    pub(super) version: &'static str,
    /// Statements that create the tables.
    pub(super) schema: &'static str,
    /// Statements that bring tables of version 1 to a later one.
    pub(super) from_version_1: Option<&'static str>,
}

/// The tables of records.
pub(super) const LAYOUT: Layout = Layout {
    names: &["account", "active_record", "cursor", "event", "record"],
    mark: "wireproof tables, version ",
    version: "2",
    schema: SCHEMA,
    from_version_1: Some(FROM_VERSION_1),
};

/// The tables. `COLLATE "C"` orders keys by their bytes, as repositories do, whatever the database's language.
const SCHEMA: &str = r#"
CREATE TABLE record (
    did text COLLATE "C" NOT NULL,
    collection text COLLATE "C" NOT NULL,
    rkey text COLLATE "C" NOT NULL,
    cid text COLLATE "C",
    rev text COLLATE "C" NOT NULL,
    live boolean NOT NULL,
    record jsonb,
    record_text text,
    invalid text,
    generation bigint NOT NULL,
    PRIMARY KEY (did, collection, rkey)
);

CREATE TABLE account (
    did text COLLATE "C" PRIMARY KEY,
    rev text COLLATE "C",
    claimed_handle text,
    active boolean NOT NULL,
    status text,
    complete boolean NOT NULL,
    complete_in text[] DEFAULT '{}',
    generation bigint NOT NULL,
    next_piece bigint
);

CREATE TABLE event (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    did text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    rev text COLLATE "C",
    verdict text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    live boolean NOT NULL,
    line text
);

CREATE TABLE cursor (
    outbox text COLLATE "C" PRIMARY KEY,
    position bigint NOT NULL
);

CREATE VIEW active_record AS
SELECT did, collection, rkey, cid, record.rev AS rev, live, record, record_text, invalid
FROM record JOIN account USING (did) WHERE active;

COMMENT ON TABLE cursor IS 'wireproof tables, version 2';
"#;

/// Tables of version 1 name no collections: they do after the next repository.
const FROM_VERSION_1: &str = "
ALTER TABLE account ADD COLUMN complete_in text[] DEFAULT '{}';
COMMENT ON TABLE cursor IS 'wireproof tables, version 2';
";

/// The names of the tables in the current schema, and the comment that has their version.
pub(super) const FOUND: &str = "
SELECT array_agg(relname::text), max(obj_description(oid, 'pg_class')) FILTER (WHERE relname = 'cursor')
FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname = ANY($1::text[])";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_with_a_null_character_is_found_and_no_other() {
        for json in [r#"{"a":"\u0000"}"#, r#""x\\\u0000""#, r#"{"\u0000":1}"#] {
            assert!(!jsonb_can_hold(json), "{json}");
        }
        for json in ["{}", r#""\\u0000""#, r#""\u0001\"\\""#, r#""ü\\\\u0000""#, r#""u0000""#] {
            assert!(jsonb_can_hold(json), "{json}");
        }
    }
}
