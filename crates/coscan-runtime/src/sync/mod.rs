//! What threads tell each other: the bell that wakes the pump, and the mark of destructors, which never lock the state.

pub(crate) mod bell;
pub(crate) mod destructor;
