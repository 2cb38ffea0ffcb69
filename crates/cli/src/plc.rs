//! `wireproof plc`: does this log make that identity?

use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;
use wireproof::atproto::plc::UnsignedOperation;
use wireproof::atproto::syntax::DidBuf;
use wireproof::verify::plc::{self, AcceptedOperation, History, Options};

use crate::args::plc::{PlcCommand, PlcVerifyArgs};
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(command: &PlcCommand, output: Output) -> Result<(), Failure> {
    let PlcCommand::Verify(args) = command;
    verify(args, output)
}

fn verify(args: &PlcVerifyArgs, output: Output) -> Result<(), Failure> {
    let (name, json) = read(&args.log)?;
    let mut options = Options::default();
    options.did = did(args)?;
    let history = plc::verify(&json, &options).map_err(|rejection| {
        Failure::Refused(format!("{name}: refused ({}): {rejection}", rejection.code()))
    })?;
    let told = Told::of(&history);
    let mut out = output.stdout();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &told).map_err(io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    Ok(out.write_all(told.to_text().as_bytes())?)
}

/// The bytes, and what to call them.
fn read(file: &Path) -> Result<(String, Vec<u8>), Failure> {
    if file == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(("standard input".to_owned(), bytes));
    }
    let bytes = std::fs::read(file).map_err(Failure::file(file))?;
    Ok((file.display().to_string(), bytes))
}

fn did(args: &PlcVerifyArgs) -> Result<Option<DidBuf>, Failure> {
    let Some(text) = &args.did else { return Ok(None) };
    text.parse().map(Some).map_err(|error| Failure::Usage(format!("--did {text}: {error}")))
}

/// What is told of a history that holds.
#[derive(Serialize)]
struct Told {
    did: String,
    tombstoned: bool,
    handle: Option<String>,
    signing_key: Option<String>,
    pds: Option<String>,
    rotation_keys: Vec<String>,
    operations: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    cid: String,
    kind: &'static str,
    /// Which of the rotation keys before it signed it, from 0.
    signer: usize,
    nullified: bool,
}

impl Told {
    fn of(history: &History) -> Self {
        let data = history.data();
        Self {
            did: history.did().to_string(),
            tombstoned: history.is_tombstoned(),
            handle: data.and_then(|data| data.handle()).map(|handle| handle.to_string()),
            signing_key: history.signing_key().map(|key| key.to_did_key()),
            pds: data.and_then(|data| data.host()).map(str::to_owned),
            rotation_keys: data.map_or(Vec::new(), |data| data.rotation_keys.clone()),
            operations: history.operations().iter().map(Line::of).collect(),
        }
    }

    fn to_text(&self) -> String {
        let none = || "none".to_owned();
        let mut text = format!("{} holds\n", self.did);
        for (index, line) in self.operations.iter().enumerate() {
            let Line { cid, kind, signer, .. } = line;
            let undone = if line.nullified { ", undone" } else { "" };
            text += &format!("  {index:>3} {kind:<9} {cid} by rotation key {signer}{undone}\n");
        }
        if self.tombstoned {
            return text + "the identity is tombstoned\n";
        }
        text += &format!("handle       {}\n", self.handle.clone().unwrap_or_else(none));
        text += &format!("signing key  {}\n", self.signing_key.clone().unwrap_or_else(none));
        text += &format!("server       {}\n", self.pds.clone().unwrap_or_else(none));
        for key in &self.rotation_keys {
            text += &format!("rotation key {key}\n");
        }
        text
    }
}

impl Line {
    fn of(judged: &AcceptedOperation) -> Self {
        Self {
            cid: judged.cid.to_string(),
            kind: match judged.operation.unsigned() {
                UnsignedOperation::Update(_) => "update",
                UnsignedOperation::Tombstone { .. } => "tombstone",
                UnsignedOperation::Create(_) => "create",
            },
            signer: judged.signer,
            nullified: judged.nullified,
        }
    }
}
