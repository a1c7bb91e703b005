//! The user and the settings of a connection.

use std::sync::Arc;

use crate::engine::Settings;
use crate::engine::catalog::UserCatalogs;
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
}

impl Session {
    pub(super) fn new(
        user: Arc<User>,
        catalogs: Arc<UserCatalogs>,
        settings: SharedSettings,
    ) -> Self {
        Self { user, catalogs, settings }
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

    /// Ends a failed transaction, and drops the settings that it made.
    pub fn roll_back(&self) {
        self.settings.roll_back();
    }
}
