//! Users, their passwords, and the tables granted to them.
//!
//! `file` reads the users file, which keeps a `verifier` of each password; `scram` checks a login without seeing the
//! password, with channel binding; unknown names get mock verifiers. `failures` slows down the guessing of passwords.

mod failures;
mod file;
mod scram;
mod verifier;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;

pub use failures::FailedLogins;
pub use file::{UsersError, entry, entry_of_writes};
pub use scram::{ChannelBinding, MECHANISM_PLUS, Scram, ScramError, Verified};
use verifier::MockVerifiers;
pub use verifier::{MECHANISM, Verifier, VerifierError};

/// A user of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name to log in with.
    pub name: String,
    /// The tables that the user can see. All others are hidden.
    pub tables: Granted,
    /// The tables of the server's database that the user may change, among those that the user can see. With
    /// [`Granted::All`], also which tables there are.
    pub writes: Granted,
    /// The weight of the user's queries, at least 1. The user's sessions may set lower weights.
    pub weight: u32,
    /// Whether the user sees and cancels the queries of other users.
    pub admin: bool,
    /// `None` if the server checks no passwords.
    verifier: Option<Verifier>,
}

impl User {
    /// The verifier of the password, or `None` if the server checks no passwords.
    #[must_use]
    pub fn verifier(&self) -> Option<&Verifier> {
        self.verifier.as_ref()
    }

    /// Whether the user is an administrator whose name is proved. Without passwords everyone may use any name.
    #[must_use]
    pub fn is_known_administrator(&self) -> bool {
        self.admin && self.verifier.is_some()
    }
}

/// Tables that a user may read, or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// All tables of the server, including those added later.
    All,
    /// The tables with these names.
    Only(BTreeSet<String>),
}

impl Granted {
    /// No tables.
    #[must_use]
    pub fn none() -> Self {
        Self::Only(BTreeSet::new())
    }

    /// Whether a table is one of them.
    #[must_use]
    pub fn includes(&self, table: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(tables) => tables.contains(table),
        }
    }
}

/// The users of a server. They can be [reloaded](Self::reload) while it runs.
#[derive(Debug)]
pub struct Users {
    accounts: Accounts,
    failed_logins: FailedLogins,
}

#[derive(Debug)]
enum Accounts {
    /// Everyone is an administrator, with any name.
    Anyone,
    Listed {
        path: Option<PathBuf>,
        listed: ArcSwap<ListedUsers>,
    },
}

/// The users of a file.
#[derive(Debug)]
pub struct ListedUsers {
    users: BTreeMap<String, Arc<User>>,
    /// Verifiers for unknown names.
    mock: MockVerifiers,
}

impl ListedUsers {
    fn new(users: BTreeMap<String, Arc<User>>) -> Self {
        let mock = MockVerifiers::like(users.values().filter_map(|user| user.verifier()));
        Self { users, mock }
    }

    /// Keeps the salts of unknown names.
    fn in_place_of(mut self, others: &Self) -> Self {
        self.mock.keep_secret_of(&others.mock);
        self
    }
}

impl Users {
    /// Creates users without security. Every name may log in, without a password, and read all tables.
    #[must_use]
    pub fn anyone() -> Self {
        Self::of(Accounts::Anyone)
    }

    /// Reads the users of a users file.
    ///
    /// # Errors
    /// If it cannot be read, or entries are invalid. The text names all invalid entries.
    pub fn load(path: &Path) -> Result<Self, UsersError> {
        let listed = ArcSwap::from_pointee(ListedUsers::new(file::read(path)?));
        Ok(Self::of(Accounts::Listed { path: Some(path.to_owned()), listed }))
    }

    /// Reads the users in the text of a users file.
    ///
    /// # Errors
    /// If an entry is invalid.
    pub fn parse(text: &str) -> Result<Self, UsersError> {
        let listed = ArcSwap::from_pointee(ListedUsers::new(file::parse(text)?));
        Ok(Self::of(Accounts::Listed { path: None, listed }))
    }

    fn of(accounts: Accounts) -> Self {
        Self { accounts, failed_logins: FailedLogins::default() }
    }

    /// The logins that failed.
    #[must_use]
    pub fn failed_logins(&self) -> &FailedLogins {
        &self.failed_logins
    }

    /// Whether an entry is the same as when this user logged in.
    #[must_use]
    pub fn is_unchanged(&self, user: &User) -> bool {
        match &self.accounts {
            Accounts::Anyone => true,
            Accounts::Listed { listed, .. } => {
                listed.load().users.get(&user.name).is_some_and(|entry| **entry == *user)
            }
        }
    }

    /// Reads the users file again, if there is one, without using it before [`replace`](Self::replace).
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn read_again(&self) -> Result<Option<ListedUsers>, UsersError> {
        match &self.accounts {
            Accounts::Listed { path: Some(path), .. } => {
                Ok(Some(ListedUsers::new(file::read(path)?)))
            }
            _ => Ok(None),
        }
    }

    /// Replaces the users by those of a file. Sessions of users whose entries have changed end with their next
    /// statement.
    pub fn replace(&self, users: ListedUsers) {
        if let Accounts::Listed { listed, .. } = &self.accounts {
            let users = users.in_place_of(&listed.load());
            listed.store(Arc::new(users));
        }
    }

    /// Reads the users file again, and replaces the users by those in it.
    ///
    /// # Errors
    /// As [`load`](Self::load). The users then stay unchanged.
    pub fn reload(&self) -> Result<(), UsersError> {
        if let Some(users) = self.read_again()? {
            self.replace(users);
        }
        Ok(())
    }

    /// Whether logins need a password.
    #[must_use]
    pub fn check_passwords(&self) -> bool {
        matches!(self.accounts, Accounts::Listed { .. })
    }

    /// The user with this name. This does not prove an identity.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<User>> {
        match &self.accounts {
            Accounts::Anyone => Some(Arc::new(User {
                name: name.to_owned(),
                tables: Granted::All,
                writes: Granted::none(),
                weight: 1,
                admin: true,
                verifier: None,
            })),
            Accounts::Listed { listed, .. } => listed.load().users.get(name).cloned(),
        }
    }

    /// The verifier for a login under this name, which is the user's, or one that no password matches.
    #[must_use]
    pub fn verifier_of(&self, name: &str) -> Verifier {
        let Accounts::Listed { listed, .. } = &self.accounts else {
            return MockVerifiers::like(std::iter::empty()).verifier(name);
        };
        let listed = listed.load();
        let user = listed.users.get(name).and_then(|user| user.verifier.clone());
        user.unwrap_or_else(|| listed.mock.verifier(name))
    }

    /// The names in a users file.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match &self.accounts {
            Accounts::Anyone => Vec::new(),
            Accounts::Listed { listed, .. } => listed.load().users.keys().cloned().collect(),
        }
    }

    /// The tables that are granted to users by name.
    #[must_use]
    pub fn granted_tables(&self) -> BTreeSet<String> {
        let Accounts::Listed { listed, .. } = &self.accounts else { return BTreeSet::new() };
        let listed = listed.load();
        let granted = listed.users.values().filter_map(|user| match &user.tables {
            Granted::All => None,
            Granted::Only(tables) => Some(tables),
        });
        granted.flatten().cloned().collect()
    }
}
