//! Prints the bytes of each column of an archive of frames: `measure frames.bin accounts.json`.

use std::error::Error;
use std::fs;

use atproto::corpus;
use parquet::file::reader::{FileReader, SerializedFileReader};
use verify::identity::AccountKeys;
use verify::sync::Policy;
use wireproof_archive::{Archive, ImportOptions, VerifyOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(keys)) = (args.next(), args.next()) else {
        return Err("two files".into());
    };
    let (file, keys) = (fs::read(file)?, AccountKeys::from_json(&fs::read(keys)?)?);
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(folder.path().to_str().ok_or("a path")?)?;
    let options = ImportOptions {
        host: "relay.example".to_owned(),
        name: "measured".to_owned(),
        now_micros: 1_800_000_000_000_000,
        policy: Policy::default(),
    };
    let imported = archive.import_frames(corpus::frames(&file)?, &keys, &options).await?;
    let events = imported.sealed.events;
    println!("{imported:?}, {} keys", keys.len());
    println!("{:?}", archive.verify(&VerifyOptions::default(), &mut |_| ()).await?);
    println!(
        "{} bytes an event raw, {} stored",
        file.len() as u64 / events,
        imported.sealed.bytes / events
    );
    for table in ["events", "ops"] {
        let day = fs::read_dir(folder.path().join(table))?
            .filter_map(Result::ok)
            .find(|entry| entry.file_name() != "_delta_log");
        for entry in fs::read_dir(day.ok_or("a day")?.path())? {
            let reader = SerializedFileReader::new(fs::File::open(entry?.path())?)?;
            let mut columns = std::collections::BTreeMap::<String, i64>::new();
            for group in reader.metadata().row_groups() {
                for column in group.columns() {
                    *columns.entry(column.column_path().string()).or_default() +=
                        column.compressed_size();
                }
            }
            for (column, bytes) in columns {
                println!("{table}.{column}: {:.2}", bytes as f64 / events as f64);
            }
        }
    }
    Ok(())
}
