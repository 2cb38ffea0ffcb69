//! `verify`, `repo stats` and `resolve` of many inputs, and of standard input.

use std::fs;
use std::path::PathBuf;

use assert_cmd::assert::Assert;
use serde_json::Value;
use simnet::repository_corpus::{BlockOrder, Corpus, Spec};
use simnet::servers::{Server, Simulation, Spec as SimSpec};
use tempfile::TempDir;

use crate::{command, json, json_lines, run, stderr, stdout, text};

/// Archives of four accounts in a folder, one of them with a flipped byte, and the keys of all.
struct Archives {
    folder: TempDir,
    keys: PathBuf,
}

const NAMES: [&str; 4] = ["a.car", "b.car", "c.car", "d.car"];
const REFUSED: &str = "c.car";

impl Archives {
    fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut keys = serde_json::Map::new();
        for (seed, name) in NAMES.iter().enumerate() {
            let order = if seed == 1 { BlockOrder::Shuffled } else { BlockOrder::Streamable };
            let corpus =
                Corpus::generate(&Spec { seed: seed as u64, records: 60 + 40 * seed, order });
            let account = corpus.repository().account();
            keys.insert(account.did().to_owned(), account.key().did_key().into());
            let mut bytes = corpus.to_file();
            if *name == REFUSED {
                *bytes.last_mut().unwrap() ^= 1;
            }
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let keys_file = folder.path().join("accounts.json");
        fs::write(&keys_file, Value::Object(keys).to_string()).unwrap();
        Self { keys: keys_file, folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn verify(&self, args: &[&str]) -> Assert {
        run(&[&["verify", "--keys", text(&self.keys)], args].concat())
    }
}

#[test]
fn many_archives_are_verified_in_their_order_and_a_refused_one_does_not_end_the_others() {
    let archives = Archives::make();
    let (folder, missing) = (archives.path(""), archives.path("none.car"));
    let args = [&*folder, &missing, &*archives.path("a.car")];
    let mut printed = Vec::new();
    for jobs in ["1", "2", "7"] {
        let assert = archives.verify(&[&args[..], &["--jobs", jobs]].concat()).code(1);
        assert!(
            stderr(&assert).contains("4 of 6 proved, 1 refused, 1 failed"),
            "{}",
            stderr(&assert)
        );
        printed.push(stdout(&assert));
    }
    assert!(printed.windows(2).all(|pair| pair[0] == pair[1]), "{printed:?}");
    let names: Vec<_> = NAMES.iter().map(|name| archives.path(name)).collect();
    let expected = [&names[..], &[missing, archives.path("a.car")]].concat();
    for (line, name) in printed[0].lines().zip(&expected) {
        assert!(line.starts_with(&format!("{name}: ")), "{line}");
        let is_proved = line.starts_with(&format!("{name}: proved: did:plc:"));
        assert_eq!(is_proved, !name.ends_with(REFUSED) && !name.ends_with("none.car"), "{line}");
    }
    assert_eq!(printed[0].lines().count(), 6);
    assert!(printed[0].contains("refused (car/hash)"), "{}", printed[0]);
}

#[test]
fn many_archives_as_json_are_one_document_a_line() {
    let archives = Archives::make();
    let missing = archives.path("none.car");
    let assert = archives.verify(&["--json", &archives.path(""), &missing]).code(1);
    let lines = json_lines(&assert);
    let verified: Vec<_> = lines.iter().map(|line| line["verified"].as_bool().unwrap()).collect();
    assert_eq!(verified, [true, true, false, true, false]);
    for (line, name) in lines.iter().zip(NAMES) {
        assert_eq!(line["file"], archives.path(name));
    }
    assert_eq!(lines[0]["repository"]["records"], 60);
    assert_eq!(lines[2]["findings"][0]["code"], "car/hash");
    assert_eq!(
        (&lines[4]["target"], &lines[4]["findings"]),
        (&missing.into(), &serde_json::json!([]))
    );
    assert!(lines[4]["error"].as_str().unwrap().contains("none.car"));
}

#[test]
fn when_all_are_proved_the_exit_code_is_0() {
    let archives = Archives::make();
    let assert = archives.verify(&[&archives.path("a.car"), &archives.path("b.car")]).success();
    assert!(stderr(&assert).contains("2 of 2 proved, 0 refused, 0 failed"), "{}", stderr(&assert));
    fs::remove_file(archives.path(REFUSED)).unwrap();
    archives.verify(&[&archives.path("")]).success();
}

#[test]
fn a_folder_without_archives_and_a_list_with_a_bad_line_are_exit_code_2() {
    let archives = Archives::make();
    fs::create_dir(archives.path("empty")).unwrap();
    let assert = archives.verify(&[&archives.path("empty")]).code(2);
    assert!(stdout(&assert).contains("no .car file in the folder"), "{}", stdout(&assert));
    let list = archives.path("list.txt");
    let good = archives.path("a.car");
    fs::write(&list, format!("# two archives and a mistake\n{good}\nno handle!\n{good}\n"))
        .unwrap();
    let assert = archives.verify(&[&format!("@{list}")]).code(2);
    let printed = stdout(&assert);
    let printed: Vec<&str> = printed.lines().collect();
    assert!(printed[0].starts_with(&good) && printed[2].starts_with(&good), "{printed:?}");
    assert!(printed[1].starts_with(&format!("{list}:3: no handle!: ")), "{printed:?}");
    let from_input = command(&["verify", "@-", "--keys", text(&archives.keys), "--json"])
        .write_stdin(format!("{good}\n{}\n", archives.path("empty")))
        .assert()
        .code(2);
    let from_input = json_lines(&from_input);
    assert_eq!((from_input.len(), &from_input[0]["verified"]), (2, &true.into()));
    assert!(from_input[1]["error"].as_str().unwrap().contains("no .car file"));
    archives.verify(&["@/no/such/list"]).code(4);
}

#[test]
fn options_for_one_archive_are_refused_for_many() {
    let archives = Archives::make();
    for option in [&["--all"][..], &["--save", "x.car"], &["--record", "a.b.c/d"]] {
        let assert = archives.verify(&[&[&*archives.path("")], option].concat()).code(2);
        assert!(stderr(&assert).contains(option[0]), "{}", stderr(&assert));
    }
}

#[test]
fn an_archive_on_standard_input_is_verified_as_it_comes() {
    let archives = Archives::make();
    let keys = text(&archives.keys);
    let verify = |bytes: &[u8], options: &[&str]| {
        let args = [&["verify", "-", "--keys", keys], options].concat();
        command(&args).write_stdin(bytes).assert()
    };
    for name in ["a.car", "b.car"] {
        let bytes = fs::read(archives.path(name)).unwrap();
        let proof = json(&verify(&bytes, &["--json"]).success());
        let of_file = json(&archives.verify(&[&archives.path(name), "--json"]).success());
        assert_eq!(proof["repository"], of_file["repository"]);
        assert_eq!((&proof["file"], &proof["bytes"]), (&"-".into(), &bytes.len().into()));
        assert_eq!(proof["stages"][0]["stage"], "stream");
        assert!(stdout(&verify(&bytes, &[]).success()).contains("CAR, tree, records"));
        let rebuilt = json(&verify(&bytes, &["--json", "--rebuild"]).success());
        assert_eq!(rebuilt["repository"], of_file["repository"]);
        let cut = verify(&bytes[..bytes.len() - 1], &[]).code(1);
        assert!(
            stderr(&cut).contains("standard input: refused (car/truncated)"),
            "{}",
            stderr(&cut)
        );
        let all = json(&verify(&bytes[..bytes.len() / 2], &["--json", "--all"]).code(1));
        assert!(all["findings"].as_array().unwrap().len() > 1, "{all}");
    }
    let refused = json(&verify(&fs::read(archives.path(REFUSED)).unwrap(), &["--json"]).code(1));
    let of_file = json(&archives.verify(&[&archives.path(REFUSED), "--json"]).code(1));
    assert_eq!(refused["findings"], of_file["findings"]);
    let wrapped = verify(b"\x1f\x8b\x08\x00", &[]).code(1);
    assert!(stderr(&wrapped).contains("gzip-compressed"), "{}", stderr(&wrapped));
    assert!(stderr(&verify(b"", &[]).code(1)).contains("car/truncated"));
}

#[test]
fn an_archive_without_a_key_for_its_account_is_refused_from_standard_input_too() {
    let archives = Archives::make();
    let none = archives.path("none.json");
    fs::write(&none, "{}").unwrap();
    let bytes = fs::read(archives.path("a.car")).unwrap();
    let verify = |bytes: &[u8]| {
        command(&["verify", "-", "--keys", &none]).write_stdin(bytes).assert().code(1)
    };
    assert!(stderr(&verify(&bytes)).contains("no key of that account"));
    assert!(stderr(&verify(&bytes[..bytes.len() - 1])).contains("car/truncated"));
}

#[cfg(unix)]
#[test]
fn an_archive_in_a_named_pipe_is_verified_as_it_comes() {
    let archives = Archives::make();
    let pipe = archives.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let (source, target) = (archives.path("a.car"), pipe.clone());
    let writer = std::thread::spawn(move || fs::write(target, fs::read(source).unwrap()).unwrap());
    let proof = json(&archives.verify(&[&pipe, "--json"]).success());
    assert_eq!(proof["stages"][0]["stage"], "stream");
    writer.join().unwrap();
}

#[test]
fn the_content_of_many_archives_is_counted_in_their_order() {
    let archives = Archives::make();
    let assert = run(&["repo", "stats", "--json", &archives.path(""), "--jobs", "3"]).code(1);
    let counted = json_lines(&assert);
    let records: Vec<_> = counted.iter().map(|line| line["records"].as_u64()).collect();
    assert_eq!(records, [Some(60), Some(100), None, Some(180)]);
    assert!(counted[2]["error"].as_str().unwrap().contains("SHA-256"));
    assert!(stderr(&assert).contains("3 of 4 read, 1 refused, 0 failed"), "{}", stderr(&assert));
    let two = [archives.path("a.car"), archives.path("d.car")];
    let printed = stdout(&run(&["repo", "stats", &two[0], &two[1]]).success());
    assert!(printed.starts_with(&format!("{}:\ndid ", two[0])), "{printed}");
    let bytes = fs::read(&two[0]).unwrap();
    let stats = command(&["repo", "stats", "-", "--json"]).write_stdin(bytes).assert().success();
    assert_eq!(json(&stats)["records"], 60);
}

#[test]
fn many_accounts_are_resolved_and_verified_over_the_network() {
    let spec = SimSpec { accounts: 4, records: 20, jetstreams: 0, ..SimSpec::default() };
    let sim = Simulation::start(spec).expect("free ports");
    let (plc, port) = (sim.url(Server::Plc), sim.port(Server::Pds(0)).to_string());
    let options = ["--plc", &plc, "--development-port", &port, "--json"];
    let dids: Vec<String> = (0..4).map(|number| sim.account(number).did).collect();
    let list = format!("{}\n{}\nno handle!\n{}\n", dids[0], dids[1], sim.account(0).handle);
    for words in [&["resolve", "-"][..], &["verify", "@-"]] {
        let args = [words, &options].concat();
        let assert = command(&args).write_stdin(list.clone()).assert().code(2);
        let lines = json_lines(&assert);
        let found: Vec<_> = lines
            .iter()
            .map(|line| line["did"].as_str().or(line["account"]["did"].as_str()))
            .collect();
        assert_eq!(found, [Some(&*dids[0]), Some(&dids[1]), None, Some(&dids[0])]);
        assert!(lines[2]["error"].as_str().unwrap().starts_with("no handle!: "));
        assert!(stderr(&assert).contains("3 of 4"), "{}", stderr(&assert));
    }
    let args = [&["resolve", &*dids[0], &*dids[3]][..], &options[..4]].concat();
    let printed = stdout(&run(&args).success());
    let order: Vec<_> = printed.lines().filter_map(|line| line.strip_prefix("did ")).collect();
    assert_eq!(order.iter().map(|did| did.trim()).collect::<Vec<_>>(), [&*dids[0], &*dids[3]]);
}
