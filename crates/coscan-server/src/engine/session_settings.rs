//! The settings of a session through its transactions: SET lasts if the transaction is committed, SET LOCAL until it ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::Settings;
use crate::queries::QueryError;

/// The settings of a session, which its `pg_settings` shows.
pub(super) type SharedSettings = Arc<SessionSettings>;

/// Settings that change.
#[derive(Debug, Default)]
pub(super) struct SessionSettings(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    current: Versions,
    transaction: Option<Transaction>,
}

/// Settings as they are, and as they are after the transaction.
#[derive(Clone, Debug, Default)]
struct Versions {
    now: Settings,
    committed: Settings,
}

#[derive(Debug)]
struct Transaction {
    before: Settings,
    savepoints: Vec<(String, Versions)>,
}

impl SessionSettings {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Settings {
        self.state().current.now.clone()
    }

    /// Changes settings, for the transaction only if `is_local`: outside of one, nothing changes then. If it fails, they
    /// stay.
    ///
    /// # Errors
    /// Those of `change`.
    pub(super) fn change(
        &self,
        is_local: bool,
        change: impl Fn(&mut Settings) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let mut state = self.state();
        let mut changed = state.current.clone();
        change(&mut changed.now)?;
        if is_local && state.transaction.is_none() {
            return Ok(());
        }
        if !is_local {
            change(&mut changed.committed)?;
        }
        state.current = changed;
        Ok(())
    }

    /// Begins a transaction, unless there is one.
    pub(super) fn begin(&self) {
        let mut state = self.state();
        let now = state.current.now.clone();
        state.current.committed = now.clone();
        let transaction = Transaction { before: now, savepoints: Vec::new() };
        state.transaction.get_or_insert(transaction);
    }

    /// Ends the transaction, if there is one.
    pub(super) fn commit(&self) {
        let mut state = self.state();
        if state.transaction.take().is_some() {
            state.current.now = state.current.committed.clone();
        }
    }

    /// Ends the transaction, if there is one, as if it had never been.
    pub(super) fn roll_back(&self) {
        let mut state = self.state();
        if let Some(transaction) = state.transaction.take() {
            state.current =
                Versions { now: transaction.before.clone(), committed: transaction.before };
        }
    }

    /// Notes the settings under a name.
    pub(super) fn save(&self, name: &str) {
        let mut state = self.state();
        let current = state.current.clone();
        if let Some(transaction) = &mut state.transaction {
            transaction.savepoints.push((name.to_owned(), current));
        }
    }

    /// Goes back to the settings under a name.
    pub(super) fn roll_back_to(&self, name: &str) {
        let mut state = self.state();
        let State { current, transaction } = &mut *state;
        let Some(Transaction { savepoints, .. }) = transaction else { return };
        if let Some(at) = savepoints.iter().rposition(|(saved, _)| saved == name) {
            *current = savepoints[at].1.clone();
            savepoints.truncate(at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::users::Users;

    #[test]
    fn settings_follow_their_transaction() {
        let user = Users::anyone().unwrap().find("ann").unwrap();
        let settings = SessionSettings::default();
        let set = |is_local, value: &str| {
            let change = |to: &mut Settings| to.set("statement_timeout", Some(value), &user);
            settings.change(is_local, change).unwrap();
        };
        let is = |expected: &str| {
            assert_eq!(settings.now().get("statement_timeout", &user).unwrap(), expected);
        };
        set(true, "1");
        is("0");
        settings.begin();
        set(true, "2");
        is("2ms");
        settings.commit();
        is("0");
        settings.begin();
        set(false, "3");
        set(true, "4");
        is("4ms");
        settings.commit();
        is("3ms");
        settings.begin();
        set(false, "5");
        settings.save("a");
        set(false, "6");
        settings.save("b");
        settings.roll_back_to("a");
        is("5ms");
        settings.roll_back();
        is("3ms");
        settings.commit();
        is("3ms");
        let refused = settings.change(false, |to| {
            to.set("statement_timeout", Some("7"), &user)?;
            to.set("nope", None, &user)
        });
        assert!(refused.is_err());
        is("3ms");
    }
}
