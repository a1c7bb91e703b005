//! Servers that share over TLS on this machine: each page is read once, and strangers learn and change nothing.

mod certificates;
mod circulating;
mod crowds;
mod farewell;
mod frames;
mod line;
mod reports;
mod servers;
mod sharing;
mod strangers;
