//! Requests per processor second of servers of a directory, one after the other in every pass.
//!
//! ```text
//! measure make FILE ACCOUNTS                 a mirror of a simulated directory
//! measure serve FILE PORT                    serves it
//! measure run FILE PASSES REQUESTS NAME=PORT=PID …
//! ```
//!
//! `run` sends every server the same requests over 8 connections that stay open, and prints the processor time of the process and
//! its descendants per request, by kind of request, as medians of the passes. Linux only.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use base::StopSignal;
use bytes::Bytes;
use directory::{MirrorOptions, MirrorRun, Options, Server};
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper_util::rt::TokioIo;
use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::http::Client;
use simnet::servers::{Simulation, Spec};
use store::{PlcMirror, PlcMirrorReader};
use tokio::net::TcpStream;
use wireproof_directory as directory;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["make", file, accounts] => make(Path::new(file), accounts.parse()?).await,
        ["serve", file, port] => serve(Path::new(file), port.parse()?).await,
        ["run", file, passes, requests, ref servers @ ..] => {
            run(Path::new(file), passes.parse()?, requests.parse()?, servers).await
        }
        _ => Err("see the first lines of the example".into()),
    }
}

async fn make(file: &Path, accounts: usize) -> Result<(), Box<dyn Error>> {
    let spec = Spec { accounts, records: 0, jetstreams: 0, relays: 0, ..Spec::default() };
    let sim = Simulation::start(spec)?;
    let url = sim.url(simnet::servers::Server::Plc);
    let mirror = PlcMirror::open(file, &url)?;
    let http = Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns))?;
    let mut options = MirrorOptions::default();
    options.max_rate = 1000.0;
    let mut run = MirrorRun::new(http, url.parse()?, mirror, options);
    run.catch_up(&mut |_| {}).await?;
    println!("{} operations", run.counts().accepted);
    Ok(())
}

async fn serve(file: &Path, port: u16) -> Result<(), Box<dyn Error>> {
    let address = format!("127.0.0.1:{port}").parse()?;
    let server = Server::bind(Options::new(file.to_owned(), address)).await?;
    println!("{} {}", server.address(), std::process::id());
    server.run(&StopSignal::new()).await;
    Ok(())
}

/// A server under measurement.
struct Measured<'a> {
    name: &'a str,
    port: u16,
    pid: u32,
    /// Microseconds of processor time per request of every pass, by kind.
    micros: BTreeMap<&'static str, Vec<f64>>,
}

async fn run(
    file: &Path,
    passes: usize,
    requests: usize,
    servers: &[&str],
) -> Result<(), Box<dyn Error>> {
    let mirror = PlcMirrorReader::open(file)?;
    let rows = mirror.operations_after(0, 20_000)?;
    let newest = mirror.totals()?.cursor;
    let mut measured = Vec::new();
    for server in servers {
        let parts: Vec<&str> = server.split('=').collect();
        let [name, port, pid] = parts[..] else { return Err("NAME=PORT=PID".into()) };
        let (port, pid) = (port.parse()?, pid.parse()?);
        measured.push(Measured { name, port, pid, micros: BTreeMap::new() });
    }
    let of_account = |view: &'static str| {
        let paths = rows.iter().map(move |row| format!("/{}{view}", row.did));
        paths.collect::<Vec<_>>()
    };
    let pages = (0..50).map(|page| format!("/export?count=1000&after={}", newest * page / 50));
    let kinds = [
        ("document", of_account(""), requests),
        ("data", of_account("/data"), requests),
        ("log", of_account("/log"), requests),
        ("audit log", of_account("/log/audit"), requests),
        ("last operation", of_account("/log/last"), requests),
        ("page of 1,000 operations", pages.collect(), requests / 100),
    ];
    for pass in 0..=passes {
        for (kind, paths, requests) in &kinds {
            for server in &mut measured {
                let before = processor_seconds(server.pid)?;
                let started = Instant::now();
                let bytes = load(server.port, paths, *requests, pass).await?;
                let spent = processor_seconds(server.pid)? - before;
                // The first pass warms caches and compilers up.
                if pass > 0 {
                    let micros = spent * 1e6 / *requests as f64;
                    server.micros.entry(kind).or_default().push(micros);
                    let (name, wall) = (server.name, started.elapsed().as_secs_f64());
                    eprintln!("{pass} {kind} {name}: {micros:.1} µs, {wall:.2} s, {bytes} bytes");
                }
            }
        }
    }
    println!("| µs of processor time a request | {} |", servers_line(&measured));
    for (kind, ..) in &kinds {
        let medians = measured.iter_mut().map(|server| {
            let micros = server.micros.get_mut(kind).map_or(0.0, |micros| median(micros));
            format!("{micros:.1}")
        });
        println!("| {kind} | {} |", medians.collect::<Vec<_>>().join(" | "));
    }
    Ok(())
}

fn servers_line(measured: &[Measured<'_>]) -> String {
    measured.iter().map(|server| server.name).collect::<Vec<_>>().join(" | ")
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Sends requests over open connections. The bytes of all answers.
async fn load(
    port: u16,
    paths: &[String],
    requests: usize,
    pass: usize,
) -> Result<usize, Box<dyn Error>> {
    let mut clients = Vec::new();
    for client in 0..CONNECTIONS {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let count = requests / CONNECTIONS;
        let first = client * count + pass * 7;
        let paths: Vec<String> =
            (0..count).map(|at| paths[(first + at) % paths.len()].clone()).collect();
        clients.push(tokio::spawn(async move {
            let mut bytes = 0;
            for path in paths {
                let request = Request::get(path).header("host", "localhost");
                let request = request.body(Empty::<Bytes>::new()).map_err(|_| "request")?;
                let response = sender.send_request(request).await.map_err(|_| "response")?;
                if response.status() != 200 {
                    return Err("status");
                }
                bytes += response.into_body().collect().await.map_err(|_| "body")?.to_bytes().len();
            }
            Ok::<usize, &'static str>(bytes)
        }));
    }
    let mut bytes = 0;
    for client in clients {
        bytes += client.await??;
    }
    Ok(bytes)
}

/// The processor time of a process and its living descendants, in seconds.
fn processor_seconds(pid: u32) -> Result<f64, Box<dyn Error>> {
    let mut ticks = 0;
    let mut family = vec![pid];
    while let Some(member) = family.pop() {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{member}/stat")) else { continue };
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        for field in [11, 12] {
            ticks += fields.get(field).and_then(|text| text.parse().ok()).unwrap_or(0_u64);
        }
        let tasks = std::fs::read_dir(format!("/proc/{member}/task"))?;
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            family.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    Ok(ticks as f64 / TICKS_PER_SECOND)
}

const CONNECTIONS: usize = 8;

/// `USER_HZ` of Linux.
const TICKS_PER_SECOND: f64 = 100.0;
