//! Who asks, and with which settings.

use std::sync::Arc;

use crate::engine::Settings;
use crate::engine::catalog::UserCatalogs;
use crate::engine::session_settings::{SessionSettings, SharedSettings};
use crate::queries::QueryError;
use crate::users::User;

/// A user who is logged in. A connection has one.
#[derive(Debug)]
pub struct Session {
    /// The user, as granted when the session began.
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

    /// The settings, as they are now.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings.now()
    }

    pub(super) fn shared_settings(&self) -> &Arc<SessionSettings> {
        &self.settings
    }

    /// Sets a value, as SET does; `None` for the default.
    ///
    /// # Errors
    /// If there is no such setting, or it cannot have this value.
    pub fn set(&self, name: &str, value: Option<&str>) -> Result<(), QueryError> {
        self.settings.change(false, |settings| settings.set(name, value, &self.user))
    }

    /// Ends a transaction that has failed: settings that it made are gone.
    pub fn roll_back(&self) {
        self.settings.roll_back();
    }
}
