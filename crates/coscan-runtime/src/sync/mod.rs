//! What threads tell each other: the bell that wakes the pump, and the mark of destructors, which lock nothing.

pub(crate) mod bell;
pub(crate) mod destructor;
