//! `loomline`: the only binary. Exit codes are decided here.

mod agents;
mod args;
mod backup;
mod check;
mod client;
mod compare;
mod contents;
mod convert;
mod doctor;
mod documents;
mod environment;
mod error;
mod evidence;
mod input;
mod jsonl;
mod output;
mod progress;
mod purge;
mod rekey;
mod render;
mod report;
mod run;
mod schema;
mod search;
mod serve;
mod setup;
mod signal;
mod sink;
mod storage;
mod store;
mod tail;
mod tenant;
mod threads;
mod trace;
mod versions;
mod work;

use crate::args::{Arguments, Command};
use crate::error::CliError;
use crate::output::Output;
use clap::CommandFactory;
use std::process::ExitCode;
use std::time::Duration;
use thread::Limits;

/// A run makes mostly small allocations, for which this allocator is faster than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long tasks that block may take when the program ends.
const LAST_TASKS: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let arguments = Arguments::read();
    let output = Output::new(arguments.json, arguments.quiet, arguments.color);
    let serving = matches!(arguments.command, Command::Serve { .. });
    let model = match chosen_model(&arguments.command, arguments.config.is_some()) {
        Ok(model) => model,
        Err(error) => return code(&output, &error),
    };
    let place = store::StoreLocation {
        data: arguments.data,
        config: arguments.config,
        model,
    };
    let telemetry = match store::telemetry(&place, &arguments.command) {
        Ok(telemetry) => telemetry,
        Err(error) => return code(&output, &error),
    };
    let level = serve::level(arguments.verbose, arguments.quiet, serving);
    serve::log(level, arguments.log_format, telemetry.as_ref());
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
    let outcome = runtime.block_on(dispatch(place, arguments.command, &output));
    // After the last run has ended, and where blocking is allowed.
    serve::end(telemetry);
    // A task that hangs does not keep the program from ending.
    runtime.shutdown_timeout(LAST_TASKS);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => code(&output, &error),
    }
}

/// The model that replaces a configuration.
fn chosen_model(
    command: &Command,
    has_config: bool,
) -> Result<Option<setup::ModelChoice>, CliError> {
    let options = if let Command::Serve { model, .. } = command {
        model
    } else if let Command::Run(options) = command {
        &options.model
    } else {
        return Ok(None);
    };
    let model = setup::ModelChoice::read(options)?;
    if let Some(model) = &model {
        if has_config {
            return Err(CliError::Usage {
                what: "--model replaces a configuration; leave out --config and LOOMLINE_CONFIG, or change the model there".to_owned(),
            });
        }
        model.check_key()?;
    }
    Ok(model)
}

async fn dispatch(
    place: store::StoreLocation,
    command: Command,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        Command::Serve {
            listen,
            open,
            model: _,
        } => serve::serve(&place, listen, open, output).await,
        Command::Init(options) => setup::init(options, output),
        Command::Tail(options) => tail::tail(&place, options, output).await,
        Command::Trace(options) => trace::trace(&place, options, output).await,
        Command::Open { key } => serve::open_page(&place, key.as_deref(), output),
        Command::Run(options) => run::run(&place, options, output).await,
        Command::Threads(command) => threads::threads(&place, command, output).await,
        Command::Search(options) => search::search(&place, options, output).await,
        Command::Agents(command) => agents::agents(&place, &command, output),
        Command::Export {
            thread,
            to,
            output: file,
            contents,
            whose,
        } => {
            let target = documents::ExportTarget { to, file, contents };
            documents::export(&place, (&whose, &thread), target, output).await
        }
        Command::Import {
            from,
            file,
            thread,
            agent,
            attribution,
            contents,
            whose,
        } => {
            let attribution =
                convert::attribution::read(attribution.as_deref(), agent, &Limits::default())?;
            let source = documents::Source { from, attribution };
            let file = documents::ImportFile {
                file: &file,
                contents,
            };
            documents::import(&place, (source, file), (&whose, thread), output).await
        }
        Command::Convert(options) => convert::convert(options, output),
        Command::Diff(options) => compare::diff(&options, output),
        Command::Patch(options) => compare::patch(&options, output),
        Command::Merge(options) => compare::merge(&options, output),
        Command::Upgrade(options) => versions::upgrade(&options, output),
        Command::Downgrade(options) => versions::downgrade(&options, output),
        Command::Render(options) => render::render(options, output),
        Command::Validate(options) => check::validate(&options, output),
        Command::Hash(options) => check::hash(&options, output),
        Command::Schema(options) => schema::schema(&options, output),
        Command::Doctor {
            rebuild,
            seal,
            seal_key,
        } => {
            let seal = seal.map(|file| evidence::Seal::read(&file, seal_key.as_deref()));
            doctor::doctor(&place, rebuild, seal.transpose()?.as_ref(), output).await
        }
        Command::Prove(options) => evidence::prove(&place, &options, output).await,
        Command::Seal(options) => evidence::seal(&place, &options, output).await,
        Command::Key { store } => serve::key(store, output),
        Command::Rekey(options) => rekey::rekey(&place, &options, output).await,
        Command::Backup(options) => backup::backup(&place, options, output).await,
        Command::Restore(options) => backup::restore(&place, options, output).await,
        Command::Tenant(command) => tenant::tenant(&place, command, output).await,
        Command::Purge(options) => purge::purge(&place, options, output).await,
        Command::Storage(options) => storage::storage(&place, options, output).await,
        Command::Man { folder } => clap_mangen::generate_to(Arguments::command(), &folder).map_err(
            CliError::io(format!("write the manual pages to {}", folder.display())),
        ),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "loomline", &mut text);
            output.raw(&String::from_utf8_lossy(&text))
        }
    }
}

/// The exit code. 1: failure. 2: command line (clap returns it too). 3: a document is invalid, in
/// conflict, different, or could not be converted without loss. 4: not found. 130 and 143: interrupted
/// or terminated.
fn code(output: &Output, error: &CliError) -> ExitCode {
    output.error(error);
    ExitCode::from(match error {
        CliError::BrokenPipe => 0,
        CliError::Usage { .. } => 2,
        CliError::Lines { totals, .. } if totals.failed > 0 => 1,
        CliError::ByteOrderMark { .. }
        | CliError::Invalid { .. }
        | CliError::Lossy { .. }
        | CliError::Lines { .. }
        | CliError::Conflicts { .. }
        | CliError::Unpatched { .. }
        | CliError::Unrelated(_)
        | CliError::Differ => 3,
        CliError::NotFound { .. }
        | CliError::NoStore { .. }
        | CliError::NoAgent { .. }
        | CliError::NoRun { .. }
        | CliError::NoServer { .. }
        | CliError::NoPages
        | CliError::UnknownAgent { .. } => 4,
        CliError::Interrupted { signal, .. } => signal.exit_code(),
        CliError::Backup(error) => backup::code(error),
        CliError::Transfer(error) => tenant::code(error),
        #[cfg(feature = "postgres")]
        CliError::NotMoved { .. } => 1,
        CliError::Io { .. }
        | CliError::Open(_)
        | CliError::Runtime(_)
        | CliError::Unreadable { .. }
        | CliError::TooLarge { .. }
        | CliError::NotUtf8 { .. }
        | CliError::Canonical { .. }
        | CliError::Untranslated { .. }
        | CliError::AgentUnclear { .. }
        | CliError::WorkerStopped
        | CliError::NotConfirmed { .. }
        | CliError::Unreached { .. }
        | CliError::NoKey
        | CliError::Refused { .. }
        | CliError::StreamEnded { .. }
        | CliError::Misfit { .. }
        | CliError::Client { .. }
        | CliError::NoBrowser { .. }
        | CliError::AddressInUse { .. }
        | CliError::Config(..)
        | CliError::Reload(_)
        | CliError::Tenants(_)
        | CliError::Exchange(_)
        | CliError::Key(_)
        | CliError::NewKey { .. }
        | CliError::StoreIsDatabase { .. }
        | CliError::Serve(_)
        | CliError::Telemetry(_)
        | CliError::RunFailed { .. }
        | CliError::BrokenChain { .. }
        | CliError::NotPurged { .. }
        | CliError::Seal { .. }
        | CliError::Unhealthy { .. } => 1,
    })
}
