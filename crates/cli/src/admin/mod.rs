//! `wireproof accounts`, `collections`, `status`, `pause` and `resume`: the admin API of a running `follow`.

mod client;
mod text;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::inputs::{InputKind, Inputs};
use crate::names;
use crate::output::Output;
use client::Client;
use follower::admin_api::access::AdminAddress;
use follower::admin_api::documents::{
    AccountList, AccountPage, AccountStatus, Changed, CollectionList, Collections, PauseTarget,
    Paused, RunStatus,
};

/// Where the admin API of a run is, and how its answer is printed.
#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    /// The address of --admin of the run: ADDRESS:PORT, or unix:PATH.
    #[arg(long, env = "WIREPROOF_ADMIN", value_name = "ADDRESS")]
    admin: AdminAddress,
    /// File with the token of the run [default: the token in WIREPROOF_ADMIN_TOKEN].
    #[arg(long, env = "WIREPROOF_ADMIN_TOKEN_FILE", value_name = "FILE")]
    #[arg(value_hint = ValueHint::FilePath)]
    admin_token_file: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Show and change the accounts that a running `follow` selects.
///
/// A change applies from the next event on. It is stored, and takes precedence over --dids in later runs with the same
/// state folder, until you make the opposite change.
#[derive(Debug, Subcommand)]
#[command(after_help = ACCOUNTS_EXAMPLES)]
pub(crate) enum AccountsCommand {
    /// Select accounts; if the run has --backfill, their history is delivered first.
    Add(AccountsArgs),
    /// Stop selecting accounts. Events that are stored for destinations are still delivered.
    Remove(AccountsArgs),
    /// List the selected accounts.
    List(AdminArgs),
    /// Show the state of an account, and why it is behind (exit code 1 if it is).
    Status(AccountArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AccountsArgs {
    /// DIDs or handles, which the run resolves; `@FILE` names a file with one per line, `-` reads standard input.
    #[arg(value_name = "ACCOUNT|@FILE|-", required = true)]
    dids: Vec<String>,
    #[command(flatten)]
    admin: AdminArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AccountArgs {
    /// The account: a DID or a handle.
    #[arg(value_name = "ACCOUNT")]
    did: String,
    #[command(flatten)]
    admin: AdminArgs,
}

/// Show and change the collections that a running `follow` selects.
///
/// A change applies from the next event on, and is stored like a change of accounts. Records that were written before a
/// collection was added are not delivered.
#[derive(Debug, Subcommand)]
#[command(after_help = COLLECTIONS_EXAMPLES)]
pub(crate) enum CollectionsCommand {
    /// Select collections.
    Add(CollectionsArgs),
    /// Stop selecting collections, by the names in the list.
    Remove(CollectionsArgs),
    /// List the selected collections.
    List(AdminArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CollectionsArgs {
    /// Collections: app.bsky.feed.post, or app.bsky.graph.* for a prefix.
    #[arg(value_name = "COLLECTION", required = true)]
    collections: Vec<String>,
    #[command(flatten)]
    admin: AdminArgs,
}

/// Show the state of a running `follow`: hosts, outbox, destinations and pauses.
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    admin: AdminArgs,
}

/// Pause a running `follow`: the intake of events, or a destination. Later runs with its state folder stay paused.
#[derive(Debug, Args)]
#[command(after_help = PAUSE_EXAMPLES)]
pub(crate) struct PauseArgs {
    /// The destination, by its name in `wireproof status` [default: the intake of events].
    destination: Option<String>,
    #[command(flatten)]
    admin: AdminArgs,
}

/// Resume a running `follow` after `wireproof pause`: the intake of events, or a destination.
#[derive(Debug, Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// The destination, by its name in `wireproof status` [default: the intake of events].
    destination: Option<String>,
    #[command(flatten)]
    admin: AdminArgs,
}

pub(crate) fn accounts(command: &AccountsCommand, output: Output) -> Result<(), Failure> {
    match command {
        AccountsCommand::Add(args) => edit_accounts(args, "/accounts/add", output),
        AccountsCommand::Remove(args) => edit_accounts(args, "/accounts/remove", output),
        AccountsCommand::List(args) => list_accounts(args, output),
        AccountsCommand::Status(AccountArgs { did, admin }) => {
            let account = names::account(did)?;
            let status: AccountStatus = get(admin, &format!("/accounts/{account}"))?;
            output.document(&status, admin.json, text::account_status)?;
            if status.behind.is_empty() {
                Ok(())
            } else {
                Err(Failure::Refused(format!("{did}: the account is behind")))
            }
        }
    }
}

fn edit_accounts(args: &AccountsArgs, path: &str, output: Output) -> Result<(), Failure> {
    let client = args.admin.client()?;
    let mut total = Changed { changed: 0, selected: 0 };
    let mut names = Inputs::new(&args.dids, InputKind::Names).map(|of| of.map(|of| of.name));
    loop {
        let dids: Vec<_> = names.by_ref().take(MAX_REQUEST_ACCOUNTS).collect::<Result<_, _>>()?;
        if dids.is_empty() {
            break;
        }
        let changed: Changed = client.post(path, &AccountList { dids })?;
        total = Changed { changed: total.changed + changed.changed, ..changed };
    }
    output.document(&total, args.admin.json, text::changed)
}

fn list_accounts(args: &AdminArgs, output: Output) -> Result<(), Failure> {
    let client = args.client()?;
    let mut all: AccountPage = client.get("/accounts")?;
    while let Some(cursor) = all.cursor.take() {
        let page: AccountPage = client.get(&format!("/accounts?cursor={cursor}"))?;
        all.accounts.extend(page.accounts);
        // The server sorts them: a cursor that does not rise would never end.
        all.cursor = page.cursor.filter(|next| *next > cursor);
    }
    output.document(&all, args.json, text::accounts)
}

pub(crate) fn collections(command: &CollectionsCommand, output: Output) -> Result<(), Failure> {
    let edit = |CollectionsArgs { collections, admin }: &CollectionsArgs, path| {
        let collections = collections.clone();
        let changed: Changed = post(admin, path, &CollectionList { collections })?;
        output.document(&changed, admin.json, text::changed)
    };
    match command {
        CollectionsCommand::Add(args) => edit(args, "/collections/add"),
        CollectionsCommand::Remove(args) => edit(args, "/collections/remove"),
        CollectionsCommand::List(admin) => {
            let list: Collections = get(admin, "/collections")?;
            output.document(&list, admin.json, text::collections)
        }
    }
}

pub(crate) fn status(StatusArgs { admin }: &StatusArgs, output: Output) -> Result<(), Failure> {
    let status: RunStatus = get(admin, "/status")?;
    output.document(&status, admin.json, text::run_status)
}

pub(crate) fn pause(args: &PauseArgs, output: Output) -> Result<(), Failure> {
    set_paused(&args.admin, "/pause", &args.destination, output)
}

pub(crate) fn resume(args: &ResumeArgs, output: Output) -> Result<(), Failure> {
    set_paused(&args.admin, "/resume", &args.destination, output)
}

fn set_paused(
    admin: &AdminArgs,
    path: &str,
    destination: &Option<String>,
    output: Output,
) -> Result<(), Failure> {
    let paused: Paused = post(admin, path, &PauseTarget { destination: destination.clone() })?;
    output.document(&paused, admin.json, text::paused)
}

impl AdminArgs {
    fn client(&self) -> Result<Client, Failure> {
        let token = follower::admin_api::access::read_token(
            self.admin_token_file.as_deref().map(Path::new),
        )?;
        Client::new(self.admin.clone(), &token)
    }
}

fn get<T: DeserializeOwned>(admin: &AdminArgs, path: &str) -> Result<T, Failure> {
    admin.client()?.get(path)
}

fn post<T: DeserializeOwned>(
    admin: &AdminArgs,
    path: &str,
    body: &impl Serialize,
) -> Result<T, Failure> {
    admin.client()?.post(path, body)
}

/// Number of accounts in a request: their size is within the limit of the server, whatever their length.
const MAX_REQUEST_ACCOUNTS: usize = 400;

const ACCOUNTS_EXAMPLES: &str = "\
Examples:
  wireproof accounts add did:plc:… --admin 127.0.0.1:2490 --admin-token-file token
  wireproof accounts add @dids.txt
  wireproof accounts status did:plc:… --json";

const COLLECTIONS_EXAMPLES: &str = "\
Examples:
  wireproof collections add 'app.bsky.graph.*' --admin unix:/run/wireproof/admin.sock
  wireproof collections list";

const STATUS_EXAMPLES: &str = "\
Example:
  wireproof status --admin 127.0.0.1:2490 --admin-token-file token --json";

const PAUSE_EXAMPLES: &str = "\
Examples:
  wireproof pause --admin 127.0.0.1:2490 --admin-token-file token
  wireproof pause sqlite-posts.db-8a3f21cc";

const RESUME_EXAMPLES: &str = "\
Examples:
  wireproof resume --admin 127.0.0.1:2490 --admin-token-file token
  wireproof resume sqlite-posts.db-8a3f21cc";
