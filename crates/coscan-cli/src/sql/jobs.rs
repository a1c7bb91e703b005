//! Runs scripts side by side, each in its own session, all on one buffer manager, so that they share reads.

use std::io::{Write, stdout};
use std::num::NonZeroUsize;

use tokio::task::JoinSet;

use crate::signals::interrupted;
use crate::sql::blocks::{BlockWriter, Blocks};
use crate::sql::session::Session;
use crate::sql::{Script, output, statements};
use crate::{Exit, Failure};

/// Runs scripts, at most `jobs` of them at a time, in sessions like this one. They start in their order, and their
/// output is printed in their order. A script that fails ends, and the others continue. Ctrl-C ends all.
pub(super) async fn run(
    session: &Session,
    scripts: Vec<Script>,
    jobs: NonZeroUsize,
) -> Result<Exit, Failure> {
    tokio::select! {
        result = run_all(session, scripts, jobs) => result,
        () = interrupted() => {
            eprintln!("cancelled");
            Ok(Exit::Interrupted)
        }
    }
}

async fn run_all(
    session: &Session,
    scripts: Vec<Script>,
    jobs: NonZeroUsize,
) -> Result<Exit, Failure> {
    let blocks = Blocks::new(stdout(), scripts.len());
    let mut waiting = scripts.into_iter().enumerate();
    let mut running = JoinSet::new();
    let mut has_failed = false;
    loop {
        while running.len() < jobs.get()
            && let Some((place, script)) = waiting.next()
        {
            let session = session.another(&script.name).await?;
            running.spawn(run_one(session, script, blocks.writer(place)));
        }
        let Some(ended) = running.join_next().await else { break };
        match ended? {
            (_, Ok(())) => {}
            // The reader has closed the output, as with `| head`, which is not a failure.
            (_, Err(error)) if output::is_broken_pipe(&error) => break,
            (name, Err(error)) => {
                has_failed = true;
                eprintln!("coscan: {name}: {error}");
            }
        }
    }
    Ok(if has_failed { Exit::Failure } else { Exit::Success })
}

/// Runs the statements of a script, up to the first that fails. Returns the name of the script, too.
async fn run_one<W: Write + Send>(
    mut session: Session,
    script: Script,
    mut block: BlockWriter<W>,
) -> (String, Result<(), Failure>) {
    let statements = async {
        for statement in statements::split(&script.text)? {
            session.execute(&statement, &mut block).await?;
        }
        Ok(())
    };
    let result = statements.await;
    let ended = block.end().map_err(Failure::from);
    (script.name, result.and(ended))
}
