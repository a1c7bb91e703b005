//! The program `coscan`.

use std::process::ExitCode;

/// Decoding and aggregating allocate many buffers of a few hundred kilobytes at a time, on all threads.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Without it, only commands that start other processes fail.
    let program = std::env::current_exe().map(|program| vec![program.into()]).unwrap_or_default();
    coscan_cli::run(std::env::args_os(), program).into()
}
