//! Where an archive is: a folder, or a bucket of an object store.
//!
//! A file is written once and never changed: under a name that was free, or under the hash of its content. In a folder it
//! is on the disk, and so is its name, when the call returns.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt, PutMode};
use store::crash_point;
use tempfile::NamedTempFile;

use crate::error::{ArchiveError, ArchiveFault};

/// The files of an archive. Clones share them.
#[derive(Clone, Debug)]
pub struct Storage {
    objects: Arc<dyn ObjectStore>,
    /// The path of the archive within `objects`.
    root: Path,
    /// The folder, if it is one.
    folder: Option<Arc<FilePath>>,
    address: Arc<str>,
}

impl Storage {
    /// The archive in this folder, or at this `file://` address. A folder that does not exist is created by the first
    /// write.
    ///
    /// # Errors
    /// If the address is of another kind, or the folder cannot be created.
    pub fn open(address: &str) -> Result<Self, ArchiveError> {
        let path = match address.split_once("://") {
            None => address,
            Some(("file", path)) => path,
            Some(_) => return Err(ArchiveError::new(address, ArchiveFault::Address("file://"))),
        };
        let failed = ArchiveError::at::<io::Error>(address);
        let folder =
            fs::create_dir_all(path).and_then(|()| fs::canonicalize(path)).map_err(failed)?;
        let objects =
            LocalFileSystem::new_with_prefix(&folder).map_err(ArchiveError::at(address))?;
        Ok(Self {
            objects: Arc::new(objects),
            root: Path::default(),
            folder: Some(folder.into()),
            address: address.into(),
        })
    }

    /// The archive under `root` of this object store, whose puts with [`PutMode::Create`] must be atomic.
    pub fn of_objects(objects: Arc<dyn ObjectStore>, root: Path) -> Self {
        let address = format!("{objects}/{root}").into();
        Self { objects, root, folder: None, address }
    }

    /// The address, for messages.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The folder of a local archive.
    pub fn folder(&self) -> Option<&FilePath> {
        self.folder.as_deref()
    }

    /// The object store: a folder is one too.
    pub fn objects(&self) -> &Arc<dyn ObjectStore> {
        &self.objects
    }

    /// The object of a file, by its path within the archive.
    pub fn object(&self, path: &str) -> Path {
        path.split('/').fold(self.root.clone(), |parent, part| parent.join(part))
    }

    /// A temporary file for what [`upload`](Self::upload) stores: on the disk of a local archive.
    pub(crate) fn stage(&self) -> Result<NamedTempFile, ArchiveError> {
        let staged = match self.staging() {
            Some(folder) => fs::create_dir_all(&folder).and_then(|()| temporary_file(&folder)),
            None => NamedTempFile::new(),
        };
        staged.map_err(ArchiveError::at(&self.address))
    }

    /// The folder of the temporary files of a local archive.
    pub(crate) fn staging(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(STAGING))
    }

    /// Stores a file whose name says its content: one that is there already is the same.
    pub(crate) async fn upload(
        &self,
        path: &str,
        staged: NamedTempFile,
    ) -> Result<(), ArchiveError> {
        let Some(folder) = &self.folder else { return self.upload_object(path, staged).await };
        let failed = ArchiveError::at::<io::Error>(path);
        let target = folder.join(path);
        let stored = staged.as_file().sync_all().and_then(|()| {
            create_parent(folder, &target)?;
            crash_point("archive/synced");
            staged.persist(&target)?;
            crash_point("archive/renamed");
            sync_folder(&target)
        });
        stored.map_err(failed)
    }

    async fn upload_object(&self, path: &str, staged: NamedTempFile) -> Result<(), ArchiveError> {
        let mut upload =
            object_store::buffered::BufWriter::new(self.objects.clone(), self.object(path));
        let copied = async {
            let mut file = tokio::fs::File::from_std(staged.reopen()?);
            tokio::io::copy(&mut file, &mut upload).await?;
            tokio::io::AsyncWriteExt::shutdown(&mut upload).await
        };
        copied.await.map_err(ArchiveError::at(path))
    }

    /// Stores a file under a name that must be free; `false` if it is not.
    pub(crate) async fn put_new(&self, path: &str, bytes: Bytes) -> Result<bool, ArchiveError> {
        if let Some(folder) = &self.folder {
            return put_new_file(folder, path, &bytes).map_err(ArchiveError::at(path));
        }
        let object = self.object(path);
        match self.objects.put_opts(&object, bytes.into(), PutMode::Create.into()).await {
            Ok(_) => Ok(true),
            Err(ObjectError::AlreadyExists { .. } | ObjectError::Precondition { .. }) => Ok(false),
            Err(error) => Err(ArchiveError::new(path, error)),
        }
    }

    /// The content of a file; `None` if it does not exist.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Bytes>, ArchiveError> {
        let read = async { self.objects.get(&self.object(path)).await?.bytes().await };
        match read.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(ObjectError::NotFound { .. }) => Ok(None),
            Err(error) => Err(ArchiveError::new(path, error)),
        }
    }

    /// Deletes a file. One that does not exist is no error.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), ArchiveError> {
        match self.objects.delete(&self.object(path)).await {
            Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
            Err(error) => Err(ArchiveError::new(path, error)),
        }
    }
}

/// Writes a file that appears whole, under a name that was free.
fn put_new_file(folder: &FilePath, path: &str, bytes: &[u8]) -> io::Result<bool> {
    let target = folder.join(path);
    create_parent(folder, &target)?;
    let staging = folder.join(STAGING);
    fs::create_dir_all(&staging)?;
    let mut staged = temporary_file(&staging)?;
    staged.write_all(bytes)?;
    staged.as_file().sync_all()?;
    match staged.persist_noclobber(&target) {
        Ok(_) => sync_folder(&target).map(|()| true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}

/// A temporary file, to be renamed, with the permissions of an ordinary new file.
pub(crate) fn temporary_file(folder: &FilePath) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Creates the folders of a file, durably.
fn create_parent(archive: &FilePath, file: &FilePath) -> io::Result<()> {
    let missing: Vec<PathBuf> = file
        .ancestors()
        .skip(1)
        .take_while(|folder| *folder != archive && !folder.exists())
        .map(FilePath::to_owned)
        .collect();
    for folder in missing.iter().rev() {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => sync_folder(folder)?,
        }
    }
    Ok(())
}

/// Makes the name of a file durable.
fn sync_folder(file: &FilePath) -> io::Result<()> {
    match file.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// The folder of files that have no name yet; `Archive::sweep` deletes those of a crash.
const STAGING: &str = "staging";
