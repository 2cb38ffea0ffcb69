//! The accounts that were erased: keyed hashes of their DIDs, under a secret that is not in the archive.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;

use hmac::{Hmac, KeyInit, Mac};
use kernels::{hex, sha256};
use sha2::Sha256;

use crate::error::{ArchiveError, ArchiveFault};
use crate::ids::uuid;

/// The secret under which DIDs of erased accounts are hashed. With the secret and an archive, anyone can tell whether a
/// DID was erased from it.
#[derive(Clone, PartialEq, Eq)]
pub struct ErasureKey([u8; 32]);

impl ErasureKey {
    /// A key of these bytes, which must be secret and random.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads the key in a file: 64 hexadecimal digits. `None` without the file.
    ///
    /// # Errors
    /// If the file cannot be read, or has something else.
    pub fn read(path: &Path) -> Result<Option<Self>, ArchiveError> {
        let failed = |error: io::Error| ArchiveError::new(path.display().to_string(), error);
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(failed)?,
        };
        let mut key = [0; 32];
        if hex::decode(text.trim().as_bytes(), &mut key) {
            return Ok(Some(Self(key)));
        }
        Err(failed(io::Error::other("an erasure key has 64 hexadecimal digits")))
    }

    /// Reads the key in a file, which is created with a new key if it is missing. Only its owner can read it.
    ///
    /// # Errors
    /// If the file cannot be read or created.
    pub fn read_or_create(path: &Path) -> Result<Self, ArchiveError> {
        if let Some(key) = Self::read(path)? {
            return Ok(key);
        }
        let failed = |error: io::Error| ArchiveError::new(path.display().to_string(), error);
        // 122 random bits each.
        let key = sha256::digest([uuid(), uuid()].concat().as_bytes());
        match write_new(path, &format!("{}\n", hex::encode(&key))) {
            Ok(()) => Ok(Self(key)),
            // Another process was first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Self::read(path)?.ok_or_else(|| failed(error))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Where the key of this user is: `wireproof/erasure.key` in `$XDG_STATE_HOME`, or in `~/.local/state`. `None` without a home.
    pub fn default_path() -> Option<PathBuf> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let in_home = || Some(PathBuf::from(variable("HOME")?).join(".local").join("state"));
        let folder = variable("XDG_STATE_HOME").map(PathBuf::from).or_else(in_home)?;
        Some(folder.join("wireproof").join("erasure.key"))
    }

    /// The key of this user, if there is one that can be read.
    pub fn read_default() -> Option<Self> {
        Self::read(&Self::default_path()?).ok().flatten()
    }

    /// The name of the key, which tells nothing about it.
    fn id(&self) -> KeyId {
        let digest = hash(&self.0, b"wireproof erasure key");
        *digest.first_chunk().expect("32 bytes")
    }
}

impl fmt::Debug for ErasureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErasureKey(…)")
    }
}

/// Asks an account's own server whether the account is active: nothing else brings an erased account back.
pub trait ActiveAccounts: Send + Sync {
    /// Whether the account's own server says that it is active. A server that cannot be asked has not confirmed it.
    fn is_active<'a>(&'a self, did: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>>;
}

/// Confirms no account: for work without a network, and for imports.
#[derive(Clone, Copy, Debug)]
pub struct NoConfirmation;

impl ActiveAccounts for NoConfirmation {
    fn is_active<'a>(&'a self, _: &'a str) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(std::future::ready(false))
    }
}

/// The erasures of an archive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Erasures {
    /// The last one of every account.
    accounts: HashMap<AccountHash, Erasure>,
    /// The keys of the hashes, as far as they are known.
    keys: Vec<(Option<KeyId>, Vec<u8>)>,
    /// Names of keys under which accounts were erased, and which are not known.
    unknown: BTreeSet<String>,
}

/// When an account was erased, and from when on it is stored again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Erasure {
    pub(crate) at: i64,
    pub(crate) restored: Option<i64>,
}

/// A hash, and the name of its key. Hashes without one are of archives of earlier versions, whose key was in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AccountHash {
    digest: [u8; 32],
    key: Option<KeyId>,
}

type KeyId = [u8; 8];

impl AccountHash {
    /// Reads the value of the column `account`.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (digest, key) = bytes.split_first_chunk()?;
        match key {
            [] => Some(Self { digest: *digest, key: None }),
            _ => Some(Self { digest: *digest, key: Some(key.try_into().ok()?) }),
        }
    }

    /// The value of the column `account`.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let key = self.key.as_ref().map_or(&[][..], |key| &key[..]);
        [&self.digest[..], key].concat()
    }
}

impl Erasures {
    /// Without erasures, to be read with the keys of an archive: its own, of earlier versions, and the secret.
    pub(crate) fn of(table_id: &str, secret: Option<&ErasureKey>) -> Self {
        let mut keys = vec![(None, table_id.as_bytes().to_vec())];
        keys.extend(secret.map(|key| (Some(key.id()), key.0.to_vec())));
        Self { keys, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Number of accounts that were erased and not restored.
    pub(crate) fn count(&self) -> usize {
        self.accounts.values().filter(|erasure| erasure.restored.is_none()).count()
    }

    /// Adds the row of an erasure.
    pub(crate) fn erase(&mut self, account: AccountHash, at: i64) {
        if let Some(key) = account.key
            && !self.keys.iter().any(|(id, _)| *id == Some(key))
        {
            self.unknown.insert(hex::encode(&key));
        }
        self.accounts.insert(account, Erasure { at, restored: None });
    }

    /// Adds the row of a restoration.
    pub(crate) fn restore(&mut self, account: AccountHash, at: i64) {
        if let Some(erasure) = self.accounts.get_mut(&account) {
            erasure.restored = Some(at);
        }
    }

    /// The last erasure of an account, if there was one.
    pub(crate) fn find(&self, did: &str) -> Option<(AccountHash, Erasure)> {
        if self.accounts.is_empty() {
            return None;
        }
        let hashes = self
            .keys
            .iter()
            .map(|(id, key)| AccountHash { digest: hash(key, did.as_bytes()), key: *id });
        let found = hashes.filter_map(|account| Some((account, *self.accounts.get(&account)?)));
        found.max_by_key(|(_, erasure)| erasure.at)
    }

    /// The hash of a DID under the secret.
    ///
    /// # Errors
    /// Without the secret.
    pub(crate) fn hash(&self, did: &str) -> Result<AccountHash, ArchiveFault> {
        let secret = self.keys.iter().find(|(id, _)| id.is_some());
        let (key, bytes) = secret.ok_or(ArchiveFault::NoErasureKey)?;
        Ok(AccountHash { digest: hash(bytes, did.as_bytes()), key: *key })
    }

    /// Refuses to go on where an account may be erased and cannot be recognized.
    ///
    /// # Errors
    /// If accounts were erased under another secret.
    pub(crate) fn check_keys(&self) -> Result<(), ArchiveFault> {
        match self.unknown.first() {
            None => Ok(()),
            Some(key) => Err(ArchiveFault::OtherErasureKey(key.clone())),
        }
    }

    /// The keys of the hashes of erased accounts, and the hashes.
    pub(crate) fn by_key(&self) -> Vec<(&[u8], Vec<&[u8; 32]>)> {
        let of = |id: Option<KeyId>| {
            let accounts = self.accounts.iter().filter(|(_, erasure)| erasure.restored.is_none());
            accounts.filter(|(of, _)| of.key == id).map(|(of, _)| &of.digest).collect()
        };
        self.keys.iter().map(|(id, key)| (key.as_slice(), of(*id))).collect()
    }
}

impl Erasure {
    /// Whether an event of the account that came at this time is left out.
    pub(crate) fn drops(self, received: i64) -> bool {
        self.restored.is_none_or(|restored| received < restored)
    }
}

fn hash(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// Creates a file that only its owner can read.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DID: &str = "did:web:a.test";

    fn erasures(secret: u8) -> Erasures {
        Erasures::of("table", Some(&ErasureKey::from_bytes([secret; 32])))
    }

    #[test]
    fn an_account_is_found_under_the_secret_alone() {
        let mut list = erasures(1);
        let account = list.hash(DID).unwrap();
        list.erase(account, 5);
        assert_eq!(list.find(DID).unwrap().1, Erasure { at: 5, restored: None });
        assert_eq!((list.find("did:web:b.test"), list.count()), (None, 1));
        for mut other in [erasures(2), Erasures::of("table", None)] {
            other.erase(account, 5);
            assert_eq!(other.find(DID), None);
            assert!(matches!(other.check_keys(), Err(ArchiveFault::OtherErasureKey(_))));
        }
        assert!(list.check_keys().is_ok());
        assert!(matches!(Erasures::of("table", None).hash(DID), Err(ArchiveFault::NoErasureKey)));
    }

    #[test]
    fn an_erasure_of_an_earlier_version_is_found_by_the_key_in_the_archive() {
        let mut list = erasures(1);
        let account = AccountHash { digest: hash(b"table", DID.as_bytes()), key: None };
        assert_eq!(AccountHash::read(&account.to_bytes()), Some(account));
        list.erase(account, 5);
        assert!(list.find(DID).is_some() && list.check_keys().is_ok());
    }

    #[test]
    fn what_came_before_the_restoration_stays_dropped() {
        let mut list = erasures(1);
        let account = list.hash(DID).unwrap();
        assert_eq!(AccountHash::read(&account.to_bytes()), Some(account));
        list.erase(account, 5);
        list.restore(account, 9);
        let erasure = list.find(DID).unwrap().1;
        assert!(erasure.drops(4) && erasure.drops(8) && !erasure.drops(9));
        list.erase(account, 11);
        assert!(list.find(DID).unwrap().1.drops(i64::MAX), "erased again");
    }

    #[test]
    fn a_key_is_created_once_for_its_owner_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/erasure.key");
        assert_eq!(ErasureKey::read(&path).unwrap(), None);
        let key = ErasureKey::read_or_create(&path).unwrap();
        assert_eq!(ErasureKey::read_or_create(&path).unwrap(), key);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(format!("{key:?}"), "ErasureKey(…)");
        for text in ["", "00", &"0".repeat(63), &"x".repeat(64)] {
            fs::write(&path, text).unwrap();
            assert!(ErasureKey::read(&path).is_err(), "{text:?}");
        }
    }
}
