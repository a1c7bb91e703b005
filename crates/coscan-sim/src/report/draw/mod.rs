//! The parts of pictures, pages and tables, independent of their content.

pub mod columns;
pub mod figure;
pub mod numbers;
pub mod page;
pub mod scale;
pub mod style;
