//! Where an archive is: a folder, or a bucket of an object store.
//!
//! A file is written once and never changed: under a name that was free, or under the hash of its content. In a folder it
//! is on the disk, and so is its name, when the call returns. Nothing is listed, written or deleted behind a symbolic link.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::crash_point;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Error as ObjectError, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, WriteMultipart,
};
use tempfile::NamedTempFile;
use tokio::io::AsyncReadExt;
use tokio::sync::{OnceCell, Semaphore};

use crate::error::{ArchiveError, ArchiveFault};
use crate::object_file::whole_range;
use crate::staged_file::{StagedFile, temporary_file};
use crate::store_fault::{self, StoreFault, StoreProblem};
use crate::walk::{self, StoredObject, Walked};

/// The files of an archive. Clones share them.
#[derive(Clone, Debug)]
pub struct Storage {
    objects: Arc<dyn ObjectStore>,
    /// The path of the archive within `objects`.
    root: Path,
    /// The folder, if it is one.
    folder: Option<Arc<FilePath>>,
    address: Arc<str>,
    /// Set once the object store has refused a put to a name that was taken.
    conditional_puts: Arc<OnceCell<()>>,
    /// Bytes of uploads to an object store that may be in memory.
    upload_space: Arc<Semaphore>,
}

impl Storage {
    /// The archive in this folder, or at this address: `file://`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`,
    /// `az://CONTAINER/PREFIX` or `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX`. A folder that does not exist
    /// is created. Object stores take the options that their SDKs read from the environment; nothing is requested.
    ///
    /// # Errors
    /// If the address is of another kind, the folder cannot be created, or the environment has unusable options.
    pub fn open(address: &str) -> Result<Self, ArchiveError> {
        let variables = std::env::vars_os();
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::open_with(address, &variables.filter_map(text).collect::<Vec<_>>())
    }

    /// As [`open`](Self::open), with these variables instead of the environment.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(address: &str, variables: &[(String, String)]) -> Result<Self, ArchiveError> {
        match address.split_once("://") {
            None => Self::of_folder(address, address),
            Some(("file", path)) => Self::of_folder(address, path),
            Some((scheme, place)) => Self::of_address(address, scheme, place, variables)
                .map_err(ArchiveError::at(address)),
        }
    }

    fn of_folder(address: &str, path: &str) -> Result<Self, ArchiveError> {
        let failed = ArchiveError::at::<io::Error>(address);
        let folder =
            fs::create_dir_all(path).and_then(|()| fs::canonicalize(path)).map_err(failed)?;
        let objects =
            LocalFileSystem::new_with_prefix(&folder).map_err(ArchiveError::at(address))?;
        let folder = Some(folder.into());
        let address = address.into();
        Ok(Self { folder, address, ..Self::of_objects(Arc::new(objects), Path::default()) })
    }

    fn of_address(
        address: &str,
        scheme: &str,
        place: &str,
        variables: &[(String, String)],
    ) -> Result<Self, ArchiveFault> {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let is_known = ["s3", "s3a", "gs", "az", "abfs", "abfss"].contains(&scheme);
        // Some stores keep empty parts of a path, and others leave them out.
        let is_usable = is_known && is_bucket(bucket) && !prefix.starts_with('/');
        let prefix = Path::parse(prefix.trim_end_matches('/')).ok().filter(|_| is_usable);
        let prefix = prefix.ok_or(ArchiveFault::Address)?;
        let objects = open_objects(scheme, bucket, variables)?;
        Ok(Self { address: address.into(), ..Self::of_objects(objects, prefix) })
    }

    /// The archive under `root` of this object store, whose puts with [`PutMode::Create`] must be atomic.
    pub fn of_objects(objects: Arc<dyn ObjectStore>, root: Path) -> Self {
        let address = format!("{objects}/{root}").into();
        let upload_space = Arc::new(Semaphore::new((MAX_PARTS + 1) * PART_BYTES));
        let (folder, conditional_puts) = (None, Arc::default());
        Self { objects, root, folder, address, conditional_puts, upload_space }
    }

    /// The address, for messages.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The folder of a local archive.
    pub fn folder(&self) -> Option<&FilePath> {
        self.folder.as_deref()
    }

    /// The folder `wal` of a local archive, in which its write-ahead log is unless it is elsewhere.
    ///
    /// # Errors
    /// If it is a symbolic link: name the folder to which it points.
    pub fn wal_folder(&self) -> Result<Option<PathBuf>, ArchiveError> {
        self.refuse_links(WAL)?;
        Ok(self.folder.as_ref().map(|folder| folder.join(WAL)))
    }

    /// The object store: a folder is one too.
    pub fn objects(&self) -> &Arc<dyn ObjectStore> {
        &self.objects
    }

    /// The object of a file, by its path within the archive.
    pub fn object(&self, path: &str) -> Path {
        path.split('/').fold(self.root.clone(), |parent, part| parent.join(part))
    }

    /// Refuses a path within the archive with a part that is a symbolic link.
    pub(crate) fn refuse_links(&self, path: &str) -> Result<(), ArchiveError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        match walk::first_link(folder, path).map_err(ArchiveError::at::<io::Error>(path))? {
            Some(link) => Err(ArchiveError::new(link, ArchiveFault::Link)),
            None => Ok(()),
        }
    }

    /// A temporary file for the content that [`upload`](Self::upload) stores: on the disk of a local archive.
    pub(crate) fn stage(&self) -> Result<StagedFile, ArchiveError> {
        self.refuse_links(STAGING)?;
        let staged = match self.staging() {
            Some(folder) => StagedFile::in_folder(&folder),
            None => StagedFile::unnamed(),
        };
        staged.map_err(ArchiveError::at(&self.address))
    }

    /// The folder of the temporary files of a local archive.
    pub(crate) fn staging(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(STAGING))
    }

    /// Stores a file whose name says its content: one that is there already is the same.
    pub(crate) async fn upload(&self, path: &str, staged: StagedFile) -> Result<(), ArchiveError> {
        let failed = ArchiveError::at::<io::Error>(path);
        let (folder, staged) = match (&self.folder, staged) {
            (Some(folder), StagedFile::Named(staged)) => (folder, staged),
            (_, staged) => {
                let content = staged.size().and_then(|len| Ok((len, staged.into_file()?)));
                let (len, (file, _path)) = content.map_err(failed)?;
                return self.upload_object(path, tokio::fs::File::from_std(file), len).await;
            }
        };
        self.refuse_links(path)?;
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

    async fn upload_object(
        &self,
        path: &str,
        file: tokio::fs::File,
        len: u64,
    ) -> Result<(), ArchiveError> {
        // Of a large file, the parts under way and the one that is being read are in memory.
        let bytes = len.clamp(1, ((MAX_PARTS + 1) * PART_BYTES) as u64) as u32;
        let _space = self.upload_space.acquire_many(bytes).await;
        let object = self.object(path);
        let Err(error) = self.upload_parts(path, &object, file, len).await else { return Ok(()) };
        // Perhaps only the answer to the last request was lost.
        match self.objects.head(&object).await {
            Ok(stored) if stored.size == len => Ok(()),
            _ => Err(error),
        }
    }

    /// Stores a file, a large one in parts of which some are under way at a time.
    async fn upload_parts(
        &self,
        path: &str,
        object: &Path,
        mut file: tokio::fs::File,
        len: u64,
    ) -> Result<(), ArchiveError> {
        if len <= PART_BYTES as u64 {
            let mut bytes = Vec::with_capacity(len as usize);
            file.read_to_end(&mut bytes).await.map_err(ArchiveError::at::<io::Error>(path))?;
            self.objects.put(object, bytes.into()).await.map_err(ArchiveError::at(path))?;
            return Ok(());
        }
        let upload = self.objects.put_multipart(object).await.map_err(ArchiveError::at(path))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        loop {
            let mut part = vec![0; 1 << 20];
            let read = file.read(&mut part).await.map_err(ArchiveFault::from);
            let ready = upload.wait_for_capacity(MAX_PARTS).await.map_err(ArchiveFault::from);
            match ready.and(read) {
                Ok(0) => break,
                Ok(count) => {
                    part.truncate(count);
                    upload.put(part.into());
                }
                Err(fault) => {
                    // Parts that stay cost space until the store's own rules remove them.
                    let _ = upload.abort().await;
                    return Err(ArchiveError::new(path, fault));
                }
            }
        }
        upload.finish().await.map_err(ArchiveError::at(path))?;
        Ok(())
    }

    /// Stores a file under a name that must be free; `false` if it is not. A file appears whole, and a put whose answer was
    /// lost can find its own file.
    ///
    /// # Errors
    /// If it cannot be stored, or the object store replaces files whose name is taken.
    pub async fn put_new(&self, path: &str, bytes: impl Into<Bytes>) -> Result<bool, ArchiveError> {
        let bytes = bytes.into();
        if let Some(folder) = &self.folder {
            self.refuse_links(path)?;
            return put_new_file(folder, path, &bytes).map_err(ArchiveError::at(path));
        }
        self.check_conditional_puts().await?;
        self.create(path, &bytes).await
    }

    /// Creates an empty file, unless it is there. It need not outlast a failure of the machine.
    pub(crate) async fn mark(&self, path: &str) -> Result<(), ArchiveError> {
        // One that is there, as when the answer to a put was lost, is as good.
        let Some(folder) = &self.folder else {
            return self.create(path, &Bytes::new()).await.map(drop);
        };
        self.refuse_links(path)?;
        let target = folder.join(path);
        let parent = target.parent().unwrap_or(folder);
        let marked = fs::create_dir_all(parent).and_then(|()| File::create(&target).map(drop));
        marked.map_err(ArchiveError::at(path))
    }

    /// Creates an object; `false` if there is one. A put with an unknown outcome is repeated: the object can then come from
    /// the first put.
    async fn create(&self, path: &str, bytes: &Bytes) -> Result<bool, ArchiveError> {
        let created = retried(path, || {
            let objects = self.objects.clone();
            let object = self.object(path);
            let bytes = bytes.clone();
            async move {
                match objects.put_opts(&object, bytes.into(), PutMode::Create.into()).await {
                    Ok(_) => Ok(true),
                    Err(ObjectError::AlreadyExists { .. } | ObjectError::Precondition { .. }) => {
                        Ok(false)
                    }
                    Err(error) => Err(error),
                }
            }
        });
        created.await
    }

    /// Checks, once, that the store refuses a put to a name that is taken. One that ignores the condition would let writers
    /// overwrite each other's commits.
    async fn check_conditional_puts(&self) -> Result<(), ArchiveError> {
        self.conditional_puts.get_or_try_init(|| self.put_twice()).await.map(|_| ())
    }

    /// The object stays: a put that was given up and is carried out late finds it, and leaves nothing behind.
    async fn put_twice(&self) -> Result<(), ArchiveError> {
        let path = format!("{STAGING}/{TAKEN_NAME}");
        let bytes = Bytes::from_static(b"a name that is taken");
        let is_new = self.create(&path, &bytes).await?;
        if is_new && self.create(&path, &bytes).await? {
            let fault = StoreFault::new(StoreProblem::NoConditionalPut, "a second put");
            return Err(ArchiveError::new(self.address(), fault));
        }
        Ok(())
    }

    /// The content of a file; `None` if it does not exist.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Bytes>, ArchiveError> {
        let read = retried(path, || {
            let objects = self.objects.clone();
            let object = self.object(path);
            async move {
                let read = async { objects.get(&object).await?.bytes().await };
                match read.await {
                    Err(error) if store_fault::is_missing_object(&error) => Ok(None),
                    read => read.map(Some),
                }
            }
        });
        read.await.map_err(|error| match error.fault {
            ArchiveFault::Store(fault) if fault.problem == StoreProblem::NoBucket => {
                ArchiveError::new(self.address(), fault)
            }
            _ => error,
        })
    }

    /// The size of a file in bytes; `None` if it does not exist.
    pub(crate) async fn size(&self, path: &str) -> Result<Option<u64>, ArchiveError> {
        let size = retried(path, || {
            let objects = self.objects.clone();
            let object = self.object(path);
            async move {
                match objects.head(&object).await {
                    Err(error) if store_fault::is_missing_object(&error) => Ok(None),
                    found => found.map(|found| Some(found.size)),
                }
            }
        });
        size.await
    }

    /// The content of a file of at most `max_bytes`; `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read, or is larger.
    pub async fn fetch(&self, path: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, ArchiveError> {
        let Some(size) = self.size(path).await? else { return Ok(None) };
        let mut parts = std::pin::pin!(self.read(path));
        let mut content = Vec::new();
        let too_large = |len: u64| {
            let message = format!("{len} bytes or more, and at most {max_bytes} are read");
            ArchiveError::new(path, io::Error::new(io::ErrorKind::FileTooLarge, message))
        };
        if size > max_bytes {
            return Err(too_large(size));
        }
        while let Some(part) = parts.try_next().await? {
            content.extend_from_slice(&part);
            if content.len() as u64 > max_bytes {
                return Err(too_large(content.len() as u64));
            }
        }
        Ok(Some(content))
    }

    /// The content of a file in parts, one per request: a large file takes longer than a request may.
    pub(crate) fn read(
        &self,
        path: &str,
    ) -> impl Stream<Item = Result<Bytes, ArchiveError>> + Send + use<> {
        let objects = self.objects.clone();
        let object = self.object(path);
        let path = path.to_owned();
        let parts = async move {
            let len = objects.head(&object).await?.size;
            let starts = (0..len).step_by(PART_BYTES);
            Ok::<_, ObjectError>(stream::iter(starts).then(move |start| {
                let objects = objects.clone();
                let object = object.clone();
                async move {
                    let range = start..len.min(start + PART_BYTES as u64);
                    whole_range(&range, objects.get_range(&object, range.clone()).await?)
                }
            }))
        };
        let parts = stream::once(parts).try_flatten();
        parts.map_err(move |error: ObjectError| ArchiveError::new(&*path, error))
    }

    /// The objects of a folder. A list that breaks off is asked for again from its start.
    ///
    /// # Errors
    /// If it cannot be read, or has a symbolic link: its target would be taken for absent.
    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<StoredObject>, ArchiveError> {
        without_links(folder, Ok(Ok(self.walk(folder).await?)))
    }

    /// The objects of a folder with names after this one, by path within the folder, in the order of names.
    pub(crate) async fn list_after(
        &self,
        folder: &str,
        name: &str,
    ) -> Result<Vec<StoredObject>, ArchiveError> {
        let after = format!("{folder}/{name}");
        let mut listed = match &self.folder {
            Some(root) => {
                let root = root.clone();
                let within = folder.to_owned();
                let after = after.clone();
                let walk = move || walk::walk_after(&root, &within, &after);
                without_links(folder, tokio::task::spawn_blocking(walk).await)?
            }
            None => {
                let listed = retried(folder, || {
                    let objects = self.objects.clone();
                    let prefix = self.object(folder);
                    let after = self.object(&after);
                    async move { objects.list_with_offset(Some(&prefix), &after).try_collect().await }
                });
                self.stored_objects(listed.await?)
            }
        };
        listed.retain(|object| object.path > after);
        Ok(listed)
    }

    /// The objects of a folder and the symbolic links in it, of which none is followed.
    pub(crate) async fn walk(&self, folder: &str) -> Result<Walked, ArchiveError> {
        if let Some(root) = &self.folder {
            let root = root.clone();
            let within = folder.to_owned();
            let walked = tokio::task::spawn_blocking(move || walk::walk(&root, &within)).await;
            return walked.map_err(io::Error::from).flatten().map_err(ArchiveError::at(folder));
        }
        let listed = retried(folder, || {
            let objects = self.objects.clone();
            let prefix = self.object(folder);
            async move { objects.list(Some(&prefix)).try_collect().await }
        });
        Ok(Walked { files: self.stored_objects(listed.await?), links: Vec::new() })
    }

    /// Listed objects, by path within the archive, in the order of their paths.
    fn stored_objects(&self, listed: Vec<ObjectMeta>) -> Vec<StoredObject> {
        let stored = |object: ObjectMeta| {
            let parts = object.location.prefix_match(&self.root)?;
            let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
            let modified_ms = object.last_modified.timestamp_millis();
            Some(StoredObject { path: parts.join("/"), size: object.size, modified_ms })
        };
        let mut stored: Vec<_> = listed.into_iter().filter_map(stored).collect();
        stored.sort_by(|a, b| a.path.cmp(&b.path));
        stored
    }

    /// Stores a file in place of the one with its name, if there is one.
    pub(crate) async fn put(&self, path: &str, bytes: Bytes) -> Result<(), ArchiveError> {
        if let Some(folder) = &self.folder {
            self.refuse_links(path)?;
            return replace_file(folder, path, &bytes).map_err(ArchiveError::at(path));
        }
        let stored = retried(path, || {
            let objects = self.objects.clone();
            let object = self.object(path);
            let bytes = bytes.clone();
            async move { objects.put(&object, bytes.into()).await.map(drop) }
        });
        stored.await
    }

    /// Deletes a file. A missing file is not an error.
    ///
    /// # Errors
    /// If it cannot be deleted, or is a symbolic link or behind one.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), ArchiveError> {
        self.refuse_links(path)?;
        let deleted = retried(path, || {
            let objects = self.objects.clone();
            let object = self.object(path);
            async move {
                match objects.delete(&object).await {
                    Err(error) if store_fault::is_missing_object(&error) => Ok(()),
                    deleted => deleted,
                }
            }
        });
        deleted.await
    }
}

/// The files of a folder that was walked through; a symbolic link is an error.
fn without_links(
    folder: &str,
    walked: Result<io::Result<Walked>, tokio::task::JoinError>,
) -> Result<Vec<StoredObject>, ArchiveError> {
    let walked = walked.map_err(io::Error::from).flatten().map_err(ArchiveError::at(folder))?;
    match walked.links.into_iter().next() {
        Some(link) => Err(ArchiveError::new(link, ArchiveFault::Link)),
        None => Ok(walked.files),
    }
}

/// Retries temporary failures after the retries of the client, which repeats no request that may have been carried out.
async fn retried<T, F: Future<Output = Result<T, ObjectError>>>(
    path: &str,
    mut request: impl FnMut() -> F,
) -> Result<T, ArchiveError> {
    let mut attempt = 1;
    let started = Instant::now();
    loop {
        let error = match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) => ArchiveError::new(path, error),
        };
        let is_last = attempt == MAX_ATTEMPTS || started.elapsed() > MAX_RETRY_TIME;
        if is_last || !error.is_temporary() {
            return Err(error);
        }
        tokio::time::sleep(RETRY_DELAY * attempt).await;
        attempt += 1;
    }
}

#[cfg(feature = "object-stores")]
use crate::object_stores::open as open_objects;

#[cfg(not(feature = "object-stores"))]
fn open_objects(
    _: &str,
    _: &str,
    _: &[(String, String)],
) -> Result<Arc<dyn ObjectStore>, ArchiveFault> {
    Err(ArchiveFault::NoObjectStores)
}

/// Whether a name can be the name of a bucket or container, with an account's host after it.
fn is_bucket(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_@".contains(&byte);
    !name.is_empty() && name.bytes().all(is_part)
}

/// Writes a file that appears whole, under a name that was free.
fn put_new_file(folder: &FilePath, path: &str, bytes: &[u8]) -> io::Result<bool> {
    let target = folder.join(path);
    let staged = staged_file(folder, &target, bytes)?;
    match staged.persist_noclobber(&target) {
        Ok(_) => sync_folder(&target).map(|()| true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}

/// Writes a file that appears whole, in place of the one with its name.
fn replace_file(folder: &FilePath, path: &str, bytes: &[u8]) -> io::Result<()> {
    let target = folder.join(path);
    staged_file(folder, &target, bytes)?.persist(&target)?;
    sync_folder(&target)
}

/// A file with its content on the disk, which is yet to get its name.
fn staged_file(folder: &FilePath, target: &FilePath, bytes: &[u8]) -> io::Result<NamedTempFile> {
    create_parent(folder, target)?;
    let staging = folder.join(STAGING);
    refuse_link(&staging)?;
    fs::create_dir_all(&staging)?;
    let mut staged = temporary_file(&staging)?;
    staged.write_all(bytes)?;
    staged.as_file().sync_all()?;
    Ok(staged)
}

/// Refuses a file or folder that is a symbolic link.
pub(crate) fn refuse_link(path: &FilePath) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => {
            let message = format!("{}: {}", path.display(), ArchiveFault::Link);
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
        _ => Ok(()),
    }
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

/// The folder of files that have no name yet, and in a bucket of the object that checks conditional puts;
/// `Archive::sweep` deletes the leftovers of a crash.
pub(crate) const STAGING: &str = "staging";

/// The object that checks conditional puts.
const TAKEN_NAME: &str = "taken-name";

/// The folder of the write-ahead log of a local archive.
const WAL: &str = "wal";

/// Size of a part of an upload or a download: it takes a request of 30 s at 280 KiB/s.
const PART_BYTES: usize = 8 << 20;

/// Parts of an upload that are under way at a time: with the one that is being read, 24 MiB.
const MAX_PARTS: usize = 2;

/// Attempts at a request that the client does not repeat by itself.
const MAX_ATTEMPTS: u32 = 3;

/// Time after which no further attempt begins.
const MAX_RETRY_TIME: Duration = Duration::from_secs(45);

/// Delay before the second attempt; the third one comes after twice as much.
const RETRY_DELAY: Duration = Duration::from_millis(500);
