//! The Data Cyclotron: `Circulate`.

mod decisions;
mod rules;
mod world;
