//! The Data Cyclotron: `Circulate`.

#![allow(clippy::unwrap_used)]

mod decisions;
mod rules;
mod world;
