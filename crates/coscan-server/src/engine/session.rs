//! The user and the settings of a connection.

use std::sync::Arc;

use coscan_datafusion::SessionTransaction;

use crate::engine::Settings;
use crate::engine::catalog::UserCatalogs;
use crate::engine::errors::from_engine;
use crate::engine::session_settings::{SessionSettings, SharedSettings};
use crate::queries::QueryError;
use crate::users::User;

/// A logged-in user. Each connection has one session.
#[derive(Debug)]
pub struct Session {
    /// The user, with the grants at the start of the session.
    pub user: Arc<User>,
    pub(super) catalogs: Arc<UserCatalogs>,
    settings: SharedSettings,
    transaction: Arc<SessionTransaction>,
}

impl Session {
    pub(super) fn new(
        user: Arc<User>,
        catalogs: Arc<UserCatalogs>,
        settings: SharedSettings,
    ) -> Self {
        Self { user, catalogs, settings, transaction: Arc::default() }
    }

    /// The changes of tables that it has begun.
    pub(super) fn transaction(&self) -> &Arc<SessionTransaction> {
        &self.transaction
    }

    /// Begins a transaction, unless one is open.
    pub(super) fn begin(&self) -> Result<(), QueryError> {
        self.settings.begin();
        match self.transaction.is_open() {
            true => Ok(()),
            false => self.transaction.begin().map_err(from_engine),
        }
    }

    /// Ends the transaction, if there is one, and makes what it has changed durable. It has ended also if this fails.
    pub(super) async fn commit(&self) -> Result<(), QueryError> {
        if self.transaction.is_open()
            && let Err(error) = self.transaction.commit().await
        {
            self.settings.roll_back();
            return Err(from_engine(error));
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
