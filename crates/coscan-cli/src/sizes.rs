//! Numbers of bytes in the form in which users write and read them.

pub(crate) use coscan_runtime::units::parse_bytes;
pub(crate) use coscan_sim::report::draw::numbers::bytes as show_bytes;
