//! Requests to cancel the statements of a connection, which arrive over another connection with a secret.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

/// The bytes of a secret in version 3.0 of the protocol, and from 3.2 on.
const KEY_BYTES: (usize, usize) = (4, 32);

/// The connections whose statements can be cancelled, by number.
#[derive(Debug, Default)]
pub(super) struct CancelKeys(Mutex<HashMap<i32, Key>>);

#[derive(Debug)]
struct Key {
    secret: Bytes,
    current: Arc<Current>,
}

/// The token of the statements that a connection currently runs.
#[derive(Debug, Default)]
pub(super) struct Current(Mutex<CancellationToken>);

impl Current {
    /// A token for the next statements, which is not affected by earlier requests.
    pub(super) fn begin(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *self.lock() = token.clone();
        token
    }

    fn cancel(&self) {
        self.lock().cancel();
    }

    fn lock(&self) -> MutexGuard<'_, CancellationToken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered connection, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Registered {
    keys: Arc<CancelKeys>,
    pub(super) pid: i32,
    pub(super) secret: Bytes,
    pub(super) current: Arc<Current>,
}

impl CancelKeys {
    /// Registers a connection that uses version 3.`minor`. Returns `None` if the system provides no random bytes.
    pub(super) fn register(self: &Arc<Self>, minor: i32) -> Option<Registered> {
        let mut secret = vec![0; if minor < 2 { KEY_BYTES.0 } else { KEY_BYTES.1 }];
        let random = SystemRandom::new();
        random.fill(&mut secret).ok()?;
        let (secret, current) = (Bytes::from(secret), Arc::new(Current::default()));
        let mut keys = self.lock();
        let pid = loop {
            let mut pid = [0; 4];
            random.fill(&mut pid).ok()?;
            let pid = i32::from_be_bytes(pid) & i32::MAX;
            if pid > 0 && !keys.contains_key(&pid) {
                break pid;
            }
        };
        keys.insert(pid, Key { secret: secret.clone(), current: Arc::clone(&current) });
        drop(keys);
        Some(Registered { keys: Arc::clone(self), pid, secret, current })
    }

    /// Cancels the statements of a connection, if the secret is right.
    pub(super) fn cancel(&self, pid: i32, secret: &[u8]) {
        let keys = self.lock();
        let key = keys.get(&pid).filter(|key| bool::from(key.secret.ct_eq(secret)));
        let current = key.map(|key| Arc::clone(&key.current));
        drop(keys);
        if let Some(current) = current {
            current.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.keys.lock().remove(&self.pid);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_the_secret_cancels_and_only_the_current_statement() {
        let keys = Arc::new(CancelKeys::default());
        let registered = keys.register(0).unwrap();
        let first = registered.current.begin();
        keys.cancel(registered.pid, b"1234");
        keys.cancel(registered.pid, b"");
        keys.cancel(registered.pid ^ 1, &registered.secret);
        assert!(!first.is_cancelled());
        keys.cancel(registered.pid, &registered.secret);
        assert!(first.is_cancelled());
        assert!(!registered.current.begin().is_cancelled());
        drop(registered);
        assert!(keys.lock().is_empty());
    }
}
