//! A guard against panics in decoders, which trust their input in places: a damaged file must not abort the process.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs work on bytes that may be damaged and turns a panic into an error. If it fails, the state that the work changed
/// must not be used again.
pub(super) fn caught<T, E: ToString>(work: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(panic) => Err(panic_text(&*panic)),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "the decoder stopped without saying why".to_owned())
}
