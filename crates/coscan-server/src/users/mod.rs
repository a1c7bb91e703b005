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
pub use file::{UsersError, entry};
pub use scram::{ChannelBinding, MECHANISM_PLUS, Scram, ScramError, Verified};
use verifier::MockVerifiers;
pub use verifier::{MECHANISM, Verifier, VerifierError};

/// A user of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name to log in with.
    pub name: String,
    /// The tables that the user can see; all others are hidden.
    pub tables: Granted,
    /// The weight of the user's queries, at least 1; the most that the user's sessions may set.
    pub weight: u32,
    /// Whether the user sees and cancels the queries of others.
    pub admin: bool,
    /// `None` if the server checks no passwords.
    verifier: Option<Verifier>,
}

impl User {
    /// The verifier of the password; `None` if the server checks no passwords.
    #[must_use]
    pub fn verifier(&self) -> Option<&Verifier> {
        self.verifier.as_ref()
    }

    /// Whether the user is an administrator, and is who the name says. Without passwords everyone may take any name.
    #[must_use]
    pub fn is_known_administrator(&self) -> bool {
        self.admin && self.verifier.is_some()
    }
}

/// Tables that a user may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// All tables of the server, also those that are added later.
    All,
    /// Tables of these names.
    Only(BTreeSet<String>),
}

impl Granted {
    /// Whether a table is among them.
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
    /// Everyone is an administrator, under any name.
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
    /// For unknown names.
    mock: MockVerifiers,
}

impl ListedUsers {
    fn new(users: BTreeMap<String, Arc<User>>) -> Self {
        let mock = MockVerifiers::like(users.values().filter_map(|user| user.verifier()));
        Self { users, mock }
    }

    /// With the salts of unknown names as they were.
    fn in_place_of(mut self, others: &Self) -> Self {
        self.mock.keep_secret_of(&others.mock);
        self
    }
}

impl Users {
    /// Without security: every name may log in, without a password, and read all tables.
    #[must_use]
    pub fn anyone() -> Self {
        Self::of(Accounts::Anyone)
    }

    /// Those of a users file.
    ///
    /// # Errors
    /// If it cannot be read, or an entry is wrong; the text names all wrong entries.
    pub fn load(path: &Path) -> Result<Self, UsersError> {
        let listed = ArcSwap::from_pointee(ListedUsers::new(file::read(path)?));
        Ok(Self::of(Accounts::Listed { path: Some(path.to_owned()), listed }))
    }

    /// Those in the text of a users file.
    ///
    /// # Errors
    /// If an entry is wrong.
    pub fn parse(text: &str) -> Result<Self, UsersError> {
        let listed = ArcSwap::from_pointee(ListedUsers::new(file::parse(text)?));
        Ok(Self::of(Accounts::Listed { path: None, listed }))
    }

    fn of(accounts: Accounts) -> Self {
        Self { accounts, failed_logins: FailedLogins::default() }
    }

    /// Logins that failed.
    #[must_use]
    pub fn failed_logins(&self) -> &FailedLogins {
        &self.failed_logins
    }

    /// Whether an entry is as it was when this user logged in.
    #[must_use]
    pub fn is_unchanged(&self, user: &User) -> bool {
        match &self.accounts {
            Accounts::Anyone => true,
            Accounts::Listed { listed, .. } => {
                listed.load().users.get(&user.name).is_some_and(|entry| **entry == *user)
            }
        }
    }

    /// Reads the users file again, if there is one. Nothing changes until [`replace`](Self::replace).
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

    /// Takes the users of a file in place of those there are. Sessions of users whose entries have changed end with their
    /// next statement.
    pub fn replace(&self, users: ListedUsers) {
        if let Accounts::Listed { listed, .. } = &self.accounts {
            let users = users.in_place_of(&listed.load());
            listed.store(Arc::new(users));
        }
    }

    /// Reads the users file again, and takes its users.
    ///
    /// # Errors
    /// As [`load`](Self::load); the users then stay as they were.
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

    /// The user of this name. No proof of identity.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<User>> {
        match &self.accounts {
            Accounts::Anyone => Some(Arc::new(User {
                name: name.to_owned(),
                tables: Granted::All,
                weight: 1,
                admin: true,
                verifier: None,
            })),
            Accounts::Listed { listed, .. } => listed.load().users.get(name).cloned(),
        }
    }

    /// The verifier to check a login under this name against: the user's, or one that no password fits.
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

    /// Tables granted to someone by name.
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
