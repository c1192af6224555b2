//! `tail`: the events of a thread, as they are written.

use crate::args::TailOptions;
use crate::client::Client;
use crate::error::CliError;
use crate::output::{Output, reader_left};
use crate::store::{Reach, StoreLocation};
use crate::threads::missing;
use runtime::{Logged, Watched};
use server::OpenMode;
use std::time::Duration;
use timeline::{Misfit, Seq, Verifier};

/// The note at the end of the log.
const WAITING: &str =
    "waiting for new events; Ctrl-C ends, and --no-follow stops at the end of the log";

/// Prints events, and checks them first if that is wanted.
struct Printer<'a> {
    output: &'a Output,
    key: &'a str,
    /// Events up to this one are not printed.
    after: Seq,
    verifier: Option<Verifier>,
}

impl<'a> Printer<'a> {
    fn new(options: &'a TailOptions, output: &'a Output) -> Self {
        Self {
            output,
            key: &options.key,
            after: Seq(options.after),
            verifier: options.check.then(Verifier::default),
        }
    }

    /// The event after which reading begins: a check begins with the first one.
    fn start(&self) -> Seq {
        self.verifier.as_ref().map_or(self.after, Verifier::last)
    }

    fn record(&mut self, logged: &Logged) -> Result<(), CliError> {
        if let Some(verifier) = &mut self.verifier {
            verifier
                .check(&logged.record)
                .map_err(|source| misfit(self.key, source))?;
        }
        if logged.record.seq <= self.after {
            return Ok(());
        }
        self.output.json(&event_json(logged))
    }

    /// Prints an event that was sent before it was committed. Its id counts up after that of `place`.
    fn provisional(&mut self, place: (Seq, u64), logged: &Logged) -> Result<(), CliError> {
        if let Some(verifier) = &mut self.verifier {
            let (after, count) = place;
            verifier
                .check_provisional(after, count, &logged.record.event)
                .map_err(|source| misfit(self.key, source))?;
        }
        self.output.json(&event_json(logged))
    }

    /// Says that the log has ended and all events are correct.
    fn end(&self) {
        if let Some(verifier) = &self.verifier {
            let n_events = verifier.last();
            self.output
                .print(&format!("all {n_events} events are correct"));
        }
    }
}

fn misfit(key: &str, source: Misfit) -> CliError {
    CliError::Misfit {
        key: key.to_owned(),
        source,
    }
}

pub(crate) async fn tail(
    place: &StoreLocation,
    options: TailOptions,
    output: &Output,
) -> Result<(), CliError> {
    let mut printer = Printer::new(&options, output);
    let key = options.key.as_str();
    let reach = place.reach(&options.whose, OpenMode::ReadOnly).await?;
    let (app, tenant) = match reach {
        Reach::Store(app, tenant) => (app, tenant),
        Reach::Server(client) => return tail_there(&client, &options, printer).await,
    };
    app.runtime(&tenant)
        .find(&tenant, key)
        .await
        .map_err(|error| missing(error, key))?;
    let left = reader_left();
    tokio::pin!(left);
    let mut after = printer.start();
    let mut is_waiting = false;
    loop {
        let page = app
            .runtime(&tenant)
            .read(&tenant, key, after, 1_000)
            .await?;
        for logged in &page {
            after = logged.record.seq;
            printer.record(logged)?;
        }
        if page.is_empty() {
            if options.no_follow {
                printer.end();
                return Ok(());
            }
            if !is_waiting {
                output.print(WAITING);
                is_waiting = true;
            }
            // Another process may write to this store; its log is read, and it can't wake this one.
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
                () = &mut left => return Err(CliError::BrokenPipe),
            }
        }
    }
}

/// Follows a thread of a server and prints its records.
async fn tail_there(
    client: &Client,
    options: &TailOptions,
    mut printer: Printer<'_>,
) -> Result<(), CliError> {
    let key = options.key.as_str();
    let mut after = printer.start();
    loop {
        let (records, more) = client.records(key, after).await?;
        for logged in &records {
            after = logged.record.seq;
            printer.record(logged)?;
        }
        if !more {
            break;
        }
    }
    if options.no_follow {
        printer.end();
        return Ok(());
    }
    printer.output.print(WAITING);
    let mut frames = client.events(key, after, false).await?;
    let left = reader_left();
    tokio::pin!(left);
    loop {
        let watched = tokio::select! {
            watched = frames.next(key) => watched?,
            () = &mut left => return Err(CliError::BrokenPipe),
        };
        match (watched, frames.provisional()) {
            (Some(Watched::Record(logged)), Some(place)) => printer.provisional(place, &logged)?,
            (Some(Watched::Record(logged)), None) => printer.record(&logged)?,
            (Some(Watched::Subagent(_)), _) => {}
            (None, _) => {
                return Err(CliError::StreamEnded {
                    key: key.to_owned(),
                });
            }
        }
    }
}

/// An event as the event stream has it.
pub(crate) fn event_json(logged: &Logged) -> String {
    let record = &logged.record;
    let rest = logged.text.strip_prefix('{').unwrap_or(&logged.text);
    format!("{{\"seq\":{},\"at\":\"{}\",{rest}", record.seq, record.at)
}
