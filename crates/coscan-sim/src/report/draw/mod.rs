//! The parts of which pictures, pages and tables are made: nothing here knows what they show.

pub mod columns;
pub mod figure;
pub mod numbers;
pub mod page;
pub mod scale;
pub mod style;
