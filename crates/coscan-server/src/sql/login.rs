//! Logins, which check who a client is and create its session.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::catalog::UserCatalog;
use super::settings::transactional::SharedSettings;
use super::{Session, SqlService};
use crate::system_tables::SystemTables;
use crate::users::{User, Verified};

/// The proof of a client's identity.
#[derive(Debug)]
pub enum Proof<'a> {
    /// No proof, which is accepted only by servers that check no passwords.
    None,
    /// The password. Checking it takes some milliseconds of processor time.
    Password(&'a str),
    /// A SCRAM dialogue.
    Scram(Verified),
    /// A proof that the protocol has already found wrong.
    Wrong,
}

/// The reason why a login is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The name or the proof is wrong. The client does not learn which.
    #[error("wrong user or password")]
    Wrong,
    /// Too many logins have failed, so the proof was not checked.
    #[error("too many logins have failed; try again in {} s", .0.as_secs() + 1)]
    TooMany(Duration),
}

impl SqlService {
    /// Logs a user in without a known address. See [`login_from`](Self::login_from).
    ///
    /// # Errors
    /// If the proof is wrong, there is no such user, or too many logins under this name have failed.
    pub async fn login(&self, name: &str, proof: Proof<'_>) -> Result<Session, LoginError> {
        self.login_from(None, name, proof).await
    }

    /// Logs a user in. Failed logins [count](crate::users::FailedLogins) against the name and the address of the
    /// client.
    ///
    /// # Errors
    /// If the proof is wrong, there is no such user, or too many logins have failed.
    pub async fn login_from(
        &self,
        address: Option<IpAddr>,
        name: &str,
        proof: Proof<'_>,
    ) -> Result<Session, LoginError> {
        if !self.users.check_passwords() {
            return self.session(self.users.find(name).ok_or(LoginError::Wrong)?);
        }
        let failed = self.users.failed_logins();
        failed.check(name, address).map_err(LoginError::TooMany)?;
        let is_proved = match proof {
            Proof::None | Proof::Wrong => false,
            Proof::Scram(verified) => verified.user() == name,
            Proof::Password(password) => {
                let _permit = self.password_checks.acquire().await;
                // Other logins may have failed meanwhile.
                failed.check(name, address).map_err(LoginError::TooMany)?;
                let (verifier, password) = (self.users.verifier_of(name), password.to_owned());
                let checked = tokio::task::spawn_blocking(move || verifier.accepts(&password));
                checked.await.unwrap_or(false)
            }
        };
        let user = self.users.find(name).filter(|_| is_proved);
        failed.settle(name, address, user.is_some()).map_err(LoginError::TooMany)?;
        self.session(user.ok_or(LoginError::Wrong)?)
    }

    fn session(&self, user: Arc<User>) -> Result<Session, LoginError> {
        let system = SystemTables {
            user: Arc::clone(&user),
            queries: Arc::clone(&self.queries),
            manager: self.coscan.manager().clone(),
            transport: self.transport().cloned(),
            workers: self.known_workers(),
        };
        let settings = SharedSettings::default();
        let catalogs = UserCatalog::listed(
            &user,
            &self.tables,
            self.database(),
            system,
            &self.pg_tables,
            &settings,
        );
        let catalogs = catalogs.map_err(|error| {
            log::error!("cannot make the catalog of a user: {error}");
            LoginError::Wrong
        })?;
        Ok(Session::new(user, catalogs, settings))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::pin::pin;

    use coscan_runtime::{BufferManager, Options};

    use super::*;
    use crate::config::Limits;
    use crate::sql::PASSWORD_CHECKS_MAX;
    use crate::users::{Users, Verifier, entry};

    fn service() -> SqlService {
        let manager = BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap();
        let verifier = Verifier::of_password("pencil").unwrap();
        let users = Users::parse(&entry("ann", &verifier, &[])).unwrap();
        SqlService::new(&manager, Arc::new(users), &Limits::default()).unwrap()
    }

    // The clock is paused while a password is checked.
    #[tokio::test(start_paused = true)]
    async fn passwords_are_checked_a_few_at_a_time_and_not_once_too_many_were_wrong() {
        let service = service();
        let checks = u32::try_from(PASSWORD_CHECKS_MAX).unwrap();
        let busy = service.password_checks.acquire_many(checks).await.unwrap();
        let mut login = pin!(service.login("ann", Proof::Password("pencil")));
        let checked = tokio::time::timeout(Duration::from_secs(60), &mut login).await;
        assert!(checked.is_err(), "others are being checked");
        // Other logins fail while it waits.
        while service.login("ann", Proof::Wrong).await.err() == Some(LoginError::Wrong) {}
        drop(busy);
        assert!(matches!(login.await, Err(LoginError::TooMany(_))));
    }
}
