//! Servers that share over TLS on this machine: each page is read once, and strangers learn and change nothing.

mod reports;
mod servers;
mod strangers;
