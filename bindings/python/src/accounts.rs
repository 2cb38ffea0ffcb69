//! The class `State`: the judges' knowledge of accounts, in memory or in a state file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use store::{Options, Store, StoreError, StoreState};
use verify::sync::{AccountState, ChainState, MemoryState, SyncState};

use crate::arguments::{boolean, value, wrong_value};
use crate::process::Owner;

/// What judges know of accounts: the newest verified commit of each, and whether its commits are accepted.
///
/// `Judge.state()` returns it, and `Judge(keys, state)` takes it: judges with the same state continue each other's chains. An
/// account belongs to one judge at a time.
///
/// Example:
///     >>> import wireproof
///     >>> state = wireproof.Judge({}).state()
///     >>> state.path, state.rev("did:web:example.com"), state.is_active("did:web:example.com")
///     (None, None, True)
#[pyclass(frozen, module = "wireproof")]
pub(crate) struct State {
    accounts: Mutex<Accounts>,
    path: Option<PathBuf>,
    owner: Owner,
}

impl State {
    /// A state in memory.
    pub(crate) fn in_memory() -> Self {
        let accounts = Mutex::new(Accounts::Memory(MemoryState::default()));
        Self { accounts, path: None, owner: Owner::current() }
    }

    /// The state in a file, which is created if it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let store = Store::open(path, Options::default())?;
        let view = Some(store.chain_state()?);
        let (changed, owner) = (HashMap::new(), Owner::current());
        let accounts = Mutex::new(Accounts::File(FileAccounts { store, view, changed, owner }));
        Ok(Self { accounts, path: Some(path.to_owned()), owner })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `RuntimeError` if the writer of the file is not in this process.
    pub(crate) fn check_process(&self) -> PyResult<()> {
        if self.path.is_some() { self.owner.check("the state file") } else { Ok(()) }
    }

    pub(crate) fn text(&self) -> String {
        self.path.as_ref().map_or("State()".to_owned(), |path| format!("State({path:?})"))
    }

    fn account(&self, py: Python<'_>, did: &Bound<'_, PyAny>) -> PyResult<AccountState> {
        self.check_process()?;
        let did: String = value("did", "str", did)?;
        py.detach(|| self.lock().get(&did)).map_err(store_error)
    }
}

#[pymethods]
impl State {
    /// The state file, or None.
    #[getter]
    fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Revision of the newest verified commit of an account; None before the first.
    ///
    /// Args:
    ///     did: the account.
    ///
    /// Raises:
    ///     OSError: if the state file cannot be read.
    ///
    /// Example:
    ///     >>> import wireproof
    ///     >>> wireproof.Judge({}).state().rev("did:web:example.com") is None
    ///     True
    fn rev(&self, py: Python<'_>, did: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        Ok(self.account(py, did)?.head.map(|head| head.rev.to_string()))
    }

    /// Whether an account missed an event that was not made up for: its repository must be fetched again.
    ///
    /// Args:
    ///     did: the account.
    ///
    /// Raises:
    ///     OSError: if the state file cannot be read.
    ///
    /// Example:
    ///     >>> import wireproof
    ///     >>> wireproof.Judge({}).state().is_desynchronized("did:web:example.com")
    ///     False
    fn is_desynchronized(&self, py: Python<'_>, did: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.account(py, did)?.sync != SyncState::Synchronized)
    }

    /// Whether commits of an account are accepted.
    ///
    /// Args:
    ///     did: the account.
    ///
    /// Raises:
    ///     OSError: if the state file cannot be read.
    ///
    /// Example:
    ///     >>> import wireproof
    ///     >>> wireproof.Judge({}).state().is_active("did:web:example.com")
    ///     True
    fn is_active(&self, py: Python<'_>, did: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.account(py, did)?.is_active)
    }

    /// Set whether commits of an account are accepted.
    ///
    /// Args:
    ///     did: the account.
    ///     active: whether they are accepted.
    ///
    /// Raises:
    ///     OSError: if the state file cannot be read.
    ///
    /// Example:
    ///     >>> import wireproof
    ///     >>> state = wireproof.Judge({}).state()
    ///     >>> state.set_active("did:web:example.com", False)
    ///     >>> state.is_active("did:web:example.com")
    ///     False
    fn set_active(
        &self,
        py: Python<'_>,
        did: &Bound<'_, PyAny>,
        active: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.check_process()?;
        let (did, active): (String, _) = (value("did", "str", did)?, boolean("active", active)?);
        py.detach(|| self.lock().set_active(&did, active)).map_err(store_error)
    }

    /// Forget all accounts, as before the first frame. A judge keeps its keys.
    ///
    /// Raises:
    ///     ValueError: if the state is in a file.
    ///
    /// Example:
    ///     >>> import wireproof
    ///     >>> state = wireproof.Judge({}).state()
    ///     >>> state.set_active("did:web:example.com", False)
    ///     >>> state.clear()
    ///     >>> state.is_active("did:web:example.com")
    ///     True
    fn clear(&self) -> PyResult<()> {
        match &mut *self.lock() {
            Accounts::Memory(memory) => {
                *memory = MemoryState::default();
                Ok(())
            }
            Accounts::File(_) => {
                Err(PyValueError::new_err("the state is in a file: remove the file"))
            }
        }
    }

    /// Write the changes since the last call to the state file; nothing without a file.
    ///
    /// Call it after you have handled the outcomes: a later judge with the file ignores the same commits as old.
    ///
    /// Args:
    ///     cursors: sequence numbers by the name of a stream, written in the same transaction.
    ///
    /// Raises:
    ///     OSError: if they cannot be written.
    ///     ValueError: if there are cursors, and no file.
    ///
    /// Example:
    ///     >>> import wireproof
    ///     >>> wireproof.Judge({}).state().save()
    #[pyo3(signature = (cursors = None))]
    fn save(&self, py: Python<'_>, cursors: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.check_process()?;
        let cursors = cursors.map(|cursors| value("cursors", "dict of str to int", cursors));
        let cursors: HashMap<String, u64> = cursors.transpose()?.unwrap_or_default();
        let cursors: Vec<(String, u64)> = cursors.into_iter().collect();
        if !cursors.is_empty() && self.path.is_none() {
            return Err(wrong_value("cursors", "the state has no file"));
        }
        py.detach(|| self.lock().save(&cursors)).map_err(store_error)
    }

    /// The cursor of a stream in the state file; None if there is none.
    ///
    /// Args:
    ///     stream: its name, as given to `save`.
    ///
    /// Raises:
    ///     OSError: if the state file cannot be read.
    ///
    /// Example:
    ///     >>> import wireproof
    ///     >>> wireproof.Judge({}).state().cursor("wss://relay.example.com") is None
    ///     True
    fn cursor(&self, py: Python<'_>, stream: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        self.check_process()?;
        let stream: String = value("stream", "str", stream)?;
        let cursor = || match &*self.lock() {
            Accounts::Memory(_) => Ok(None),
            Accounts::File(file) => file.store.cursor(&stream),
        };
        py.detach(cursor).map_err(store_error)
    }

    fn __repr__(&self) -> String {
        self.text()
    }
}

/// The accounts of a state.
pub(crate) enum Accounts {
    Memory(MemoryState),
    File(FileAccounts),
}

/// Accounts in a state file.
pub(crate) struct FileAccounts {
    store: Store,
    /// `None` only while it is dropped.
    view: Option<StoreState>,
    /// The states that are not in the file yet.
    changed: HashMap<Box<str>, AccountState>,
    owner: Owner,
}

impl Accounts {
    fn get(&mut self, did: &str) -> Result<AccountState, StoreError> {
        let mut accounts = [AccountState::UNKNOWN];
        self.load_many(&[did], &mut accounts)?;
        Ok(accounts[0])
    }

    /// Sets whether commits of an account are accepted.
    pub(crate) fn set_active(&mut self, did: &str, is_active: bool) -> Result<(), StoreError> {
        let account = AccountState { is_active, ..self.get(did)? };
        self.store_many(&[(did, account)])
    }

    fn save(&mut self, cursors: &[(String, u64)]) -> Result<(), StoreError> {
        let Self::File(file) = self else { return Ok(()) };
        let changed: Vec<_> = file.changed.iter().map(|(did, account)| (did, *account)).collect();
        file.store.checkpoint(cursors, &changed)?;
        file.changed.clear();
        Ok(())
    }
}

impl ChainState for Accounts {
    type Error = StoreError;

    fn load_many(
        &mut self,
        dids: &[&str],
        accounts: &mut [AccountState],
    ) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                let Ok(()) = memory.load_many(dids, accounts);
                Ok(())
            }
            Self::File(file) => file.view().load_many(dids, accounts),
        }
    }

    fn store_many(&mut self, changed: &[(&str, AccountState)]) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => {
                let Ok(()) = memory.store_many(changed);
                Ok(())
            }
            Self::File(file) => {
                file.view().store_many(changed)?;
                let changed = changed.iter().map(|(did, account)| (Box::from(*did), *account));
                file.changed.extend(changed);
                Ok(())
            }
        }
    }
}

impl FileAccounts {
    fn view(&mut self) -> &mut StoreState {
        self.view.as_mut().expect("only dropping takes it")
    }
}

impl Drop for FileAccounts {
    /// In a child of the process the file stays open: the thread that closes it is not there.
    fn drop(&mut self) {
        if !self.owner.is_here() {
            std::mem::forget((self.store.clone(), self.view.take()));
        }
    }
}

/// `OSError`: the state file cannot be opened, read or written.
pub(crate) fn store_error(error: StoreError) -> PyErr {
    PyOSError::new_err(error.to_string())
}
