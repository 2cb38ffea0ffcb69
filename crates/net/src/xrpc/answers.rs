//! JSON responses of the methods.

use atproto::syntax::{DidBuf, Tid};
use codec::Cid;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// `getLatestCommit`: where a repository is, as the host says; nothing is proved of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct LatestCommit {
    /// The newest commit.
    #[serde(deserialize_with = "cid")]
    pub cid: Cid,
    /// Its revision.
    pub rev: Tid,
}

/// `getRepoStatus`: how a host stands to an account.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RepoStatus {
    /// The account.
    pub did: DidBuf,
    /// Whether the host gives its repository to anyone.
    pub active: bool,
    /// Why not: a word such as `takendown`.
    pub status: Option<Box<str>>,
    /// The revision of an active account.
    pub rev: Option<Tid>,
}

/// An account in the answer of `listRepos`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListedRepo {
    /// The account.
    pub did: DidBuf,
    /// Its newest commit.
    #[serde(deserialize_with = "cid")]
    pub head: Cid,
    /// The revision of that.
    pub rev: Tid,
    /// Whether the host gives its repository to anyone; `None` if it does not say.
    pub active: Option<bool>,
    /// Why not.
    pub status: Option<Box<str>>,
}

/// A server in the answer of `listHosts`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedHost {
    /// Its name, with a port where it is not the usual one. Anybody may have named it.
    pub hostname: Box<str>,
    /// The last event that the relay has from it.
    pub seq: Option<i64>,
    /// How many accounts of it the relay knows.
    pub account_count: Option<i64>,
    /// A word such as `active`, `idle`, `offline`, `throttled` or `banned`.
    pub status: Option<Box<str>>,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next page begins, in the server's own words; `None` behind the last one.
    pub cursor: Option<Box<str>>,
}

/// An answer that is a page.
pub(super) trait Paged: for<'de> Deserialize<'de> {
    type Item;

    fn into_page(self) -> ListPage<Self::Item>;
}

/// `listRepos`.
#[derive(Deserialize)]
pub(super) struct Repos {
    repos: Vec<ListedRepo>,
    cursor: Option<Box<str>>,
}

/// `listReposByCollection`.
#[derive(Deserialize)]
pub(super) struct Dids {
    repos: Vec<ListedDid>,
    cursor: Option<Box<str>>,
}

#[derive(Deserialize)]
struct ListedDid {
    did: DidBuf,
}

/// `listHosts`.
#[derive(Deserialize)]
pub(super) struct Hosts {
    hosts: Vec<ListedHost>,
    cursor: Option<Box<str>>,
}

impl Paged for Repos {
    type Item = ListedRepo;

    fn into_page(self) -> ListPage<ListedRepo> {
        ListPage { items: self.repos, cursor: self.cursor }
    }
}

impl Paged for Dids {
    type Item = DidBuf;

    fn into_page(self) -> ListPage<DidBuf> {
        let items = self.repos.into_iter().map(|listed| listed.did).collect();
        ListPage { items, cursor: self.cursor }
    }
}

impl Paged for Hosts {
    type Item = ListedHost;

    fn into_page(self) -> ListPage<ListedHost> {
        ListPage { items: self.hosts, cursor: self.cursor }
    }
}

fn cid<'de, D: Deserializer<'de>>(from: D) -> Result<Cid, D::Error> {
    let text = <Box<str>>::deserialize(from)?;
    text.parse().map_err(|_| D::Error::custom("not a CID of the protocol"))
}
