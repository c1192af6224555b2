//! `loomline`: the one binary. Exit codes are decided here alone.

mod args;
mod doctor;
mod documents;
mod error;
mod output;
mod run;
mod serve;
mod store;
mod threads;

use crate::args::{Arguments, Command};
use crate::error::CliError;
use crate::output::Output;
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    serve::log(
        arguments.verbose,
        matches!(arguments.command, Command::Serve { .. }),
    );
    let output = Output::new(arguments.json);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return code(
                &output,
                &CliError::Io {
                    what: "start".into(),
                    source: error,
                },
            );
        }
    };
    match runtime.block_on(dispatch(arguments, &output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => code(&output, &error),
    }
}

async fn dispatch(arguments: Arguments, output: &Output) -> Result<(), CliError> {
    let place = store::Place {
        data: arguments.data,
        config: arguments.config,
    };
    match arguments.command {
        Command::Serve { listen } => serve::serve(&place, listen, output).await,
        Command::Run(options) => run::run(&place, options, output).await,
        Command::Threads(command) => threads::threads(&place, command, output).await,
        Command::Export {
            thread,
            output: file,
        } => documents::export(&place, &thread, file, output).await,
        Command::Import { from, file, thread } => {
            documents::import(&place, from, &file, thread, output).await
        }
        Command::Validate {
            strict,
            deny_timestamps,
            file,
        } => documents::validate(&file, strict, deny_timestamps, output),
        Command::Hash { without_sys, file } => documents::hash(&file, without_sys, output),
        Command::Doctor => doctor::doctor(&place, output).await,
        Command::Key => serve::key(output),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "loomline", &mut text);
            output.raw(&String::from_utf8_lossy(&text))
        }
    }
}

/// 1: it failed. 2: the command line (by clap). 3: a document is not valid. 4: no such thing.
fn code(output: &Output, error: &CliError) -> ExitCode {
    output.error(error);
    ExitCode::from(match error {
        CliError::BrokenPipe => 0,
        CliError::Invalid { .. } => 3,
        CliError::NotFound { .. } | CliError::NoStore { .. } => 4,
        CliError::Io { .. }
        | CliError::Open(_)
        | CliError::Runtime(_)
        | CliError::Decode { .. }
        | CliError::Canonical(_)
        | CliError::Config(..)
        | CliError::Exchange(_)
        | CliError::Key(_)
        | CliError::Serve(_)
        | CliError::RunFailed { .. }
        | CliError::Unhealthy { .. } => 1,
    })
}
