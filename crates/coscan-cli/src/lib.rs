//! The command line of coscan: a demonstration, a SQL shell and a server on shared tables, benchmarks on your own data,
//! and a simulator. The program `coscan` is [`run`] and an allocator. Other programs may contain it, too.

mod bench;
#[cfg(feature = "server")]
mod child;
#[cfg(feature = "distributed")]
mod cluster;
mod compare;
mod data;
mod demo;
mod exit;
mod own_command;
#[cfg(feature = "server")]
mod ring;
#[cfg(feature = "server")]
mod serve;
mod signals;
mod sim;
mod sizes;
mod sql;
mod table_argument;
#[cfg(feature = "server")]
mod user;
#[cfg(not(feature = "distributed"))]
mod without_server;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

/// The allocator of the binary, for the tests of what the server asks it.
#[cfg(all(test, not(target_env = "msvc")))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

pub use exit::Exit;
pub use sql::session::{Prepared, Session};

/// Many queries on the same Parquet tables, one stream of reads and decoding for all of them.
#[derive(Debug, Parser)]
#[command(
    name = "coscan",
    version,
    propagate_version = true,
    after_help = "\
Examples:
  coscan demo                                      all engines compared in three minutes
  coscan sql --table 'trips=trips/*.parquet'       a shell on your own files
  coscan sql -t t=s3://bucket/t/ -e 'SELECT count(*) FROM t'
  coscan serve --demo                              a server for psql and other PostgreSQL clients
  coscan bench streams --table lineitem=lineitem.parquet --bandwidth 200MB --pool-bytes 200MB
  coscan sim run cs07-table2 --html table2.html    the papers' experiments in virtual time"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Demo),
    Sql(sql::Sql),
    #[cfg(feature = "server")]
    Serve(Box<serve::Serve>),
    #[cfg(feature = "server")]
    User(user::User),
    #[cfg(feature = "server")]
    Ring(ring::Ring),
    #[cfg(feature = "distributed")]
    Cluster(cluster::Cluster),
    #[cfg(not(feature = "server"))]
    Serve(without_server::WithoutServer),
    #[cfg(not(feature = "server"))]
    User(without_server::WithoutServer),
    #[cfg(not(feature = "server"))]
    Ring(without_server::WithoutServer),
    #[cfg(not(feature = "distributed"))]
    Cluster(without_server::WithoutServer),
    Bench(bench::Bench),
    Sim(sim::Sim),
}

/// The stack size of each thread that plans or runs queries, in bytes. Queries are visited by recursion, with a level
/// for each term of `a AND b AND …`. Unused stack takes no memory.
pub const STACK_BYTES: usize = 64 << 20;

/// Runs the command line. `arguments` are those of the process, the first of which is the name of the program. `program` is the command
/// that runs this command line in a process of its own, without arguments: commands that start several processes need it. Reads
/// standard input, and prints results and errors.
///
/// Runs on threads of its own. It expects that Ctrl-C ends the process unless a command says otherwise.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>, program: Vec<OsString>) -> Exit {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and versions are such errors. Nobody is left to be told if they cannot be printed.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Success };
        }
    };
    own_command::set(program);
    // The system determines the stack size of the main thread, which is often 8 MB.
    let thread = std::thread::Builder::new().name("coscan".to_owned()).stack_size(STACK_BYTES);
    let result = match thread.spawn(|| execute(arguments.command)) {
        Ok(command) => command.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(error) => Err(format!("cannot start threads: {error}").into()),
    };
    result.unwrap_or_else(|error| {
        eprintln!("coscan: {error}");
        Exit::Failure
    })
}

fn execute(command: Command) -> Result<Exit, Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().thread_stack_size(STACK_BYTES).build();
    let runtime = runtime.map_err(|error| format!("cannot start threads: {error}"))?;
    let result = runtime.block_on(async {
        match command {
            Command::Demo(demo) => demo.run().await,
            Command::Sql(sql) => sql.run().await,
            #[cfg(feature = "server")]
            Command::Serve(serve) => serve.run().await,
            #[cfg(feature = "server")]
            Command::User(user) => user.run(),
            #[cfg(feature = "server")]
            Command::Ring(ring) => ring.run().await,
            #[cfg(feature = "distributed")]
            Command::Cluster(cluster) => cluster.run().await,
            #[cfg(not(feature = "server"))]
            Command::Serve(without) | Command::User(without) | Command::Ring(without) => {
                without.run()
            }
            #[cfg(not(feature = "distributed"))]
            Command::Cluster(without) => without.run(),
            Command::Bench(bench) => bench.run().await,
            Command::Sim(sim) => sim.run().await,
        }
    });
    // A read that hangs in the operating system must not keep the process alive.
    runtime.shutdown_background();
    result
}

/// The error of a command.
type Failure = Box<dyn std::error::Error + Send + Sync>;
