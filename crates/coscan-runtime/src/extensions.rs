//! Values that programs keep with a manager.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Values by their type, and calls that drop what is idle.
#[derive(Default)]
pub(crate) struct Extensions {
    values: Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    idle_calls: Mutex<Vec<IdleCall>>,
}

/// A call that drops what was not used since its last call. It returns false if it is not to be called any more.
type IdleCall = Box<dyn FnMut() -> bool + Send>;

impl Extensions {
    /// The value of a type, made if there is none yet.
    pub(crate) fn get<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(make()));
        Arc::clone(value).downcast().unwrap_or_else(|_| unreachable!("values are kept by type"))
    }

    pub(crate) fn add_idle_call(&self, call: IdleCall) {
        self.idle_calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    pub(crate) fn give_back_idle(&self) {
        let idle_calls = || self.idle_calls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut calls = std::mem::take(&mut *idle_calls());
        calls.retain_mut(|call| call()); // Not under the lock: they may take others.
        idle_calls().append(&mut calls);
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").finish_non_exhaustive()
    }
}
