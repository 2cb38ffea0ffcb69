//! Files that decode to far more than their size: they are refused before anything is decoded, and all others are proved.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use sha2::{Digest, Sha256};
use wireproof_archive::{Archive, RowSelection, Table, VerifyOptions};

use crate::common::writers::Writers;
use crate::common::{archive, files};

/// How a file is made large: the rows, and whether values of them are in a dictionary.
struct Bomb {
    rows: usize,
    value_bytes: usize,
    has_dictionary: bool,
    /// Bytes of a value that cannot be compressed.
    random_bytes: usize,
}

fn value(bomb: &Bomb, row: usize) -> Vec<u8> {
    let hashes =
        (0_u64..).map(|part| Sha256::digest([row as u64, part].map(u64::to_le_bytes).concat()));
    let mut value: Vec<u8> = hashes.flatten().take(bomb.random_bytes).collect();
    value.resize(bomb.value_bytes, 0);
    value
}

/// Replaces the only file of events by one of our form that decodes to much more, as a person with write access could.
fn replace(folder: &Path, bomb: &Bomb) -> u64 {
    let day = folder.join("events/day=2026-07-01");
    let [path] = &files(&day)[..] else { panic!("one file of events") };
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    let batch = reader.build().unwrap().next().unwrap().unwrap();
    let first = arrow_array::UInt32Array::from(vec![0; bomb.rows]);
    let rows = arrow_select::take::take_record_batch(&batch, &first).unwrap();
    let mut columns = rows.columns().to_vec();
    let values = (0..bomb.rows).map(|row| value(bomb, row));
    let frames: ArrayRef = Arc::new(BinaryArray::from_iter_values(values));
    columns[rows.schema().index_of("frame").unwrap()] = frames;
    let rows = RecordBatch::try_new(rows.schema(), columns).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(bomb.has_dictionary)
        .set_dictionary_page_size_limit(64 << 20)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    let bytes = writer.into_inner().unwrap();
    let name = format!("{}.parquet", data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes)));
    let old = path.file_name().unwrap().to_str().unwrap().to_owned();
    fs::remove_file(path).unwrap();
    fs::write(day.join(&name), &bytes).unwrap();
    for entry in files(&folder.join("events/_delta_log")) {
        // An entry of another program states no hash.
        let text = fs::read_to_string(&entry).unwrap().replace(&old, &name);
        fs::write(entry, text.replace("wireproof/", "another/").replace("entrySha256", "other"))
            .unwrap();
    }
    fs::remove_dir_all(folder.join("_heads/events")).unwrap();
    bytes.len() as u64
}

#[tokio::test]
async fn a_small_file_that_decodes_to_much_is_refused_before_it_is_decoded() {
    for bomb in [
        Bomb { rows: 200, value_bytes: 4 << 20, has_dictionary: true, random_bytes: 0 },
        Bomb { rows: 40, value_bytes: 5 << 20, has_dictionary: false, random_bytes: 0 },
        Bomb { rows: 1, value_bytes: 100 << 20, has_dictionary: false, random_bytes: 0 },
    ] {
        let (mut writers, (folder, archive)) = (Writers::new(2, 5), archive());
        let frames = writers.commits(10);
        writers.import(&archive, &frames, "one", 0).await;
        let len = replace(folder.path(), &bomb);
        assert!(len < 200_000, "{len} bytes");
        let reopened = Archive::open(folder.path().to_str().unwrap()).unwrap();
        let mut findings = Vec::new();
        let mut on_finding = |finding| findings.push(finding);
        let report = reopened.verify(&VerifyOptions::default(), &mut on_finding).await.unwrap();
        assert_eq!(report.refused.get("archive/decoded-size"), Some(&1), "{findings:?}");
        if !bomb.has_dictionary {
            let mut rows = reopened.rows(Table::Events, &RowSelection::default()).await.unwrap();
            let error = rows.next().await.unwrap_err();
            assert_eq!(error.fault.code(), Some("archive/decoded-size"), "{error}");
        }
        let replayed = reopened.replay(i64::MIN, |_| Ok::<(), wireproof_archive::ArchiveError>(()));
        let error = replayed.await.unwrap_err();
        assert_eq!(error.fault.code(), Some("archive/decoded-size"), "{error}");
    }
}

#[tokio::test]
async fn a_row_group_of_values_that_are_easily_compressed_is_read() {
    let bomb =
        Bomb { rows: 100, value_bytes: 1 << 20, has_dictionary: false, random_bytes: 2 << 10 };
    let (mut writers, (folder, archive)) = (Writers::new(2, 5), archive());
    let frames = writers.commits(10);
    writers.import(&archive, &frames, "one", 0).await;
    let len = replace(folder.path(), &bomb);
    assert!((100 << 20) / len > 100, "{len} bytes");
    let reopened = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let mut rows = reopened.rows(Table::Events, &RowSelection::default()).await.unwrap();
    let mut count = 0;
    while let Some(batch) = rows.next().await.unwrap() {
        count += batch.num_rows();
    }
    assert_eq!(count, bomb.rows);
}
