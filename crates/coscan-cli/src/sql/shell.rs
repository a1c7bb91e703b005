//! The interactive shell.

use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Editor, Helper};

use crate::signals::Interrupts;
use crate::sql::commands::{self, Next};
use crate::sql::session::Session;
use crate::sql::{run_script, statements};
use crate::{Exit, Failure};

/// Makes Enter begin a new line until the statement ends.
struct UntilSemicolon;

impl Helper for UntilSemicolon {}

impl Completer for UntilSemicolon {
    type Candidate = String;
}

impl Highlighter for UntilSemicolon {}

impl Hinter for UntilSemicolon {
    type Hint = String;
}

impl Validator for UntilSemicolon {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let typed = context.input().trim_start();
        let complete =
            typed.is_empty() || typed.starts_with('\\') || statements::is_complete(typed);
        Ok(if complete { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

/// Reads and runs statements until the user ends the shell.
pub(super) async fn run(mut session: Session) -> Result<Exit, Failure> {
    println!("coscan {}. Statements end with ;  \\? for help", env!("CARGO_PKG_VERSION"));
    let mut editor = Editor::new()?;
    editor.set_helper(Some(UntilSemicolon));
    let history = history_path();
    if let Some(path) = &history {
        let _ = editor.load_history(path); // There is none the first time.
    }
    let mut interrupts = Interrupts::listen();
    loop {
        // The editor blocks its thread. No query runs meanwhile.
        let line = match tokio::task::block_in_place(|| editor.readline("coscan> ")) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        };
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        editor.add_history_entry(line)?;
        interrupts.discard(); // The editor takes those of the keyboard.
        let next = tokio::select! {
            next = run_line(&mut session, line) => next,
            () = interrupts.next() => {
                eprintln!("cancelled");
                Next::GoOn
            }
        };
        if next == Next::Quit {
            break;
        }
    }
    if let Some(path) = &history {
        save_history(&mut editor, path);
    }
    Ok(Exit::Success)
}

async fn run_line(session: &mut Session, line: &str) -> Next {
    let result = if line.starts_with('\\') {
        commands::run(session, line).await
    } else {
        run_script(session, line).await.map(|()| Next::GoOn)
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        Next::GoOn
    })
}

/// The file of earlier statements: `$XDG_STATE_HOME/coscan/history`, or the same below the home directory.
fn history_path() -> Option<PathBuf> {
    let state =
        std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let state = state.or_else(|| Some(std::env::home_dir()?.join(".local/state")))?;
    Some(state.join("coscan/history"))
}

fn save_history(editor: &mut Editor<UntilSemicolon, DefaultHistory>, path: &PathBuf) {
    let saved = path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(ReadlineError::from);
    if let Err(error) = saved.and_then(|()| editor.save_history(path)) {
        eprintln!("cannot write the history to {}: {error}", path.display());
    }
}
