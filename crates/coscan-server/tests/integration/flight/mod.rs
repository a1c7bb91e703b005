//! Arrow Flight SQL with the client of arrow-flight.

mod client;

mod encryption;
mod ends;
mod errors;
mod logins;
mod metadata;
mod noise;
mod statements;
