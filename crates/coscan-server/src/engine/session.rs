//! Who asks, and with which settings.

use std::sync::Arc;

use crate::engine::catalog::UserCatalogs;
use crate::engine::settings::{Settings, SharedSettings};
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
        self.settings.lock().clone()
    }

    /// Changes settings; if that fails, they stay.
    ///
    /// # Errors
    /// What `change` returns.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Settings) -> T) -> T {
        change(&mut self.settings.lock())
    }

    /// Sets a value, as SET does; `None` for the default.
    ///
    /// # Errors
    /// If there is no such setting, or it cannot have this value.
    pub fn set(&self, name: &str, value: Option<&str>) -> Result<(), crate::queries::QueryError> {
        self.change(|settings| settings.set(name, value, &self.user))
    }
}
