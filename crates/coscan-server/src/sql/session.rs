//! The user and the settings of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coscan_datafusion::SessionTransaction;

use crate::queries::{ErrorKind, QueryError};
use crate::sql::Settings;
use crate::sql::catalog::UserCatalogs;
use crate::sql::errors::from_datafusion;
use crate::sql::settings::transactional::{SessionSettings, SharedSettings};
use crate::users::User;

/// A logged-in user. Each connection has one session.
#[derive(Debug)]
pub struct Session {
    /// The user, with the grants at the start of the session.
    pub user: Arc<User>,
    pub(super) catalogs: Arc<UserCatalogs>,
    settings: SharedSettings,
    transaction: Arc<SessionTransaction>,
    /// Whether the transaction that is open is read-only, and whether those are that do not say it.
    is_read_only: AtomicBool,
    is_read_only_by_default: AtomicBool,
}

impl Session {
    pub(super) fn new(
        user: Arc<User>,
        catalogs: Arc<UserCatalogs>,
        settings: SharedSettings,
    ) -> Self {
        Self {
            user,
            catalogs,
            settings,
            transaction: Arc::default(),
            is_read_only: AtomicBool::default(),
            is_read_only_by_default: AtomicBool::default(),
        }
    }

    /// The changes of tables that it has begun.
    pub(super) fn transaction(&self) -> &Arc<SessionTransaction> {
        &self.transaction
    }

    /// Begins a transaction, unless one is open.
    pub(super) fn begin(&self, is_read_only: Option<bool>) -> Result<(), QueryError> {
        self.settings.begin();
        if self.transaction.is_open() {
            return Ok(());
        }
        let default = self.is_read_only_by_default.load(Ordering::Relaxed);
        self.is_read_only.store(is_read_only.unwrap_or(default), Ordering::Relaxed);
        self.transaction.begin().map_err(from_datafusion)
    }

    /// Makes the transaction that is open read-only or not, or all later ones.
    pub(super) fn set_read_only(&self, is_read_only: bool, is_default: bool) {
        if is_default {
            self.is_read_only_by_default.store(is_read_only, Ordering::Relaxed);
        } else if self.transaction.is_open() {
            self.is_read_only.store(is_read_only, Ordering::Relaxed);
        }
    }

    /// Checks that statements may change tables.
    ///
    /// # Errors
    /// If the transaction is read-only.
    pub(super) fn check_writable(&self) -> Result<(), QueryError> {
        let is_read_only = match self.transaction.is_open() {
            true => &self.is_read_only,
            false => &self.is_read_only_by_default,
        };
        match is_read_only.load(Ordering::Relaxed) {
            false => Ok(()),
            true => {
                let text = "the transaction is READ ONLY: begin one that is not";
                Err(QueryError::new(ErrorKind::ReadOnly, text))
            }
        }
    }

    /// Ends the transaction, if there is one, and makes what it has changed durable. It has ended also if this fails.
    pub(super) async fn commit(&self) -> Result<(), QueryError> {
        if self.transaction.is_open()
            && let Err(error) = self.transaction.commit().await
        {
            self.settings.roll_back();
            return Err(from_datafusion(error));
        }
        self.settings.commit();
        Ok(())
    }

    /// The current settings.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings.now()
    }

    pub(super) fn shared_settings(&self) -> &Arc<SessionSettings> {
        &self.settings
    }

    /// Sets a value, as SET does. `None` sets the default.
    ///
    /// # Errors
    /// If there is no such setting, or it cannot have this value.
    pub fn set(&self, name: &str, value: Option<&str>) -> Result<(), QueryError> {
        self.settings.change(false, |settings| settings.set(name, value, &self.user))
    }

    /// Ends the transaction, if there is one, and drops the settings and the changes that it made.
    pub fn roll_back(&self) {
        self.settings.roll_back();
        if self.transaction.is_open() {
            // It fails only if there is none.
            self.transaction.roll_back().ok();
        }
    }
}
