//! The settings of a session across its transactions. SET lasts if the transaction is committed, SET LOCAL until it
//! ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coscan_datafusion::SavedTransaction;

use crate::queries::{ErrorKind, QueryError};
use crate::sql::Settings;

/// The most savepoints of a transaction.
const SAVEPOINTS_MAX: usize = 1000;

/// The settings of a session, which its `pg_settings` shows.
pub(in crate::sql) type SharedSettings = Arc<SessionSettings>;

/// Settings that can be changed.
#[derive(Debug, Default)]
pub(in crate::sql) struct SessionSettings(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    current: Versions,
    transaction: Option<Transaction>,
}

/// The current settings, and those after the transaction.
#[derive(Clone, Debug, Default)]
struct Versions {
    now: Settings,
    committed: Settings,
}

#[derive(Debug)]
struct Transaction {
    before: Settings,
    savepoints: Savepoints,
}

impl SessionSettings {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::sql) fn now(&self) -> Settings {
        self.state().current.now.clone()
    }

    /// Changes settings, for the current transaction only if `is_local`. Outside of a transaction such a change has no
    /// effect. If `change` fails, the settings stay.
    ///
    /// # Errors
    /// Those of `change`.
    pub(in crate::sql) fn change(
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

    /// Begins a transaction, unless one is open.
    pub(in crate::sql) fn begin(&self) {
        let mut state = self.state();
        if state.transaction.is_none() {
            let before = state.current.now.clone();
            state.current.committed = before.clone();
            state.transaction = Some(Transaction { before, savepoints: Vec::new() });
        }
    }

    /// Ends the transaction, if there is one.
    pub(in crate::sql) fn commit(&self) {
        let mut state = self.state();
        if state.transaction.take().is_some() {
            state.current.now = state.current.committed.clone();
        }
    }

    /// Rolls back the transaction, if there is one.
    pub(in crate::sql) fn roll_back(&self) {
        let mut state = self.state();
        if let Some(transaction) = state.transaction.take() {
            state.current =
                Versions { now: transaction.before.clone(), committed: transaction.before };
        }
    }

    /// Saves the settings under a name, and the changes of tables so far.
    ///
    /// # Errors
    /// If there are too many savepoints.
    pub(in crate::sql) fn save(
        &self,
        name: &str,
        changes: SavedTransaction,
    ) -> Result<(), QueryError> {
        let mut state = self.state();
        let current = state.current.clone();
        if let Some(transaction) = &mut state.transaction {
            if transaction.savepoints.len() >= SAVEPOINTS_MAX {
                let text =
                    format!("a transaction has at most {SAVEPOINTS_MAX} savepoints: release some");
                return Err(QueryError::new(ErrorKind::TooComplex, text));
            }
            transaction.savepoints.push((name.to_owned(), current, changes));
        }
        Ok(())
    }

    /// Restores the settings saved under a name, and returns the changes of tables. The savepoint stays.
    ///
    /// # Errors
    /// If there is no such savepoint.
    pub(in crate::sql) fn roll_back_to(&self, name: &str) -> Result<SavedTransaction, QueryError> {
        let mut state = self.state();
        let State { current, transaction } = &mut *state;
        let (savepoints, at) = savepoint(transaction, name)?;
        savepoints.truncate(at + 1);
        let (_, settings, changes) = &savepoints[at];
        *current = settings.clone();
        Ok(changes.clone())
    }

    /// Removes a savepoint and later ones.
    ///
    /// # Errors
    /// If there is no such savepoint.
    pub(in crate::sql) fn release(&self, name: &str) -> Result<(), QueryError> {
        let mut state = self.state();
        let (savepoints, at) = savepoint(&mut state.transaction, name)?;
        savepoints.truncate(at);
        Ok(())
    }
}

type Savepoints = Vec<(String, Versions, SavedTransaction)>;

fn savepoint<'a>(
    transaction: &'a mut Option<Transaction>,
    name: &str,
) -> Result<(&'a mut Savepoints, usize), QueryError> {
    let unknown =
        || QueryError::new(ErrorKind::NoSavepoint, format!("there is no savepoint \"{name}\""));
    let savepoints = &mut transaction.as_mut().ok_or_else(unknown)?.savepoints;
    let at = savepoints.iter().rposition(|(saved, ..)| saved == name).ok_or_else(unknown)?;
    Ok((savepoints, at))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::users::Users;

    #[test]
    fn settings_follow_their_transaction() {
        let user = Users::anyone().find("ann").unwrap();
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
        let save = |name| {
            settings.save(name, coscan_datafusion::SessionTransaction::default().save()).unwrap()
        };
        save("a");
        set(false, "6");
        save("b");
        settings.roll_back_to("a").unwrap();
        is("5ms");
        assert!(settings.roll_back_to("b").is_err(), "it is gone");
        settings.release("a").unwrap();
        assert!(settings.roll_back_to("a").is_err());
        set(true, "9");
        settings.begin();
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
