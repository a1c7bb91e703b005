//! Servers that share over TLS on this machine: each page is read once, and strangers learn and change nothing.

mod servers;
mod strangers;
