//! Checks rules of `CONTRIBUTING.md` that neither the compiler nor clippy knows: how long files are, that links lead
//! somewhere, that files and headings named in docs and comments exist, and that words which were replaced stay gone.
//!
//! `cargo test -p coscan-tidy` checks this tree.

mod lengths;
mod links;
mod markdown;
mod names;
mod tree;
mod words;

pub use tree::Tree;

/// The problems of a tree, each with its file, line, and what to do.
#[must_use]
pub fn problems(tree: &Tree) -> Vec<String> {
    let rules = [lengths::check, links::check, names::check, words::check];
    rules.iter().flat_map(|rule| rule(tree)).collect()
}
