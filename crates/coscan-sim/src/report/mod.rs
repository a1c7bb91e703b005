//! Reports of experiments: [`text`] for the terminal, [`json`] for programs, [`html`] with pictures and explanations.
//!
//! All of them take [`Results`] and return texts, which the caller writes. [`figures`] are the kinds of pictures,
//! [`draw`] has their parts. Both serve the reports of real engines, too.

pub mod draw;
pub mod figures;
mod glossary;
pub mod html;
pub mod json;
mod metric_names;
pub mod pictures;
mod results;
mod tables;
pub mod text;
mod trace;

pub use results::{Results, Summary};
