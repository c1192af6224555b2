//! `upgrade` and `downgrade`.

use crate::args::{Downgrade, Upgrade};
use crate::check::{decode, undecoded};
use crate::error::CliError;
use crate::input::Input;
use crate::output::Output;
use crate::report::report;
use crate::sink::Sink;
use crate::work::{BatchOptions, Done, Location, work};
use thread::{Change, Version};

pub(crate) fn upgrade(options: &Upgrade, output: &Output) -> Result<(), CliError> {
    let source = &options.source;
    let input = Input::of(source)?;
    let sink = Sink::open(options.target.output.as_deref(), output)?;
    let way = BatchOptions::new(output, source.limits, options.going);
    let (limits, to) = (source.limits.limits(), Version::from(options.to.as_str()));
    let output = output.clone();
    work(input, sink, &way, move |text, spot| {
        let mut upgraded = String::new();
        let changes = thread::upgrade_text(text, &limits, &to, &mut upgraded)
            .map_err(|error| undecoded(error, spot))?;
        let changes = changes.map_err(|error| CliError::Untranslated {
            spot: spot.to_string(),
            source: error.into(),
        })?;
        Ok(done(upgraded, &changes, spot, &output))
    })
    .map(drop)
}

pub(crate) fn downgrade(options: &Downgrade, output: &Output) -> Result<(), CliError> {
    let source = &options.source;
    let input = Input::of(source)?;
    let sink = Sink::open(options.target.output.as_deref(), output)?;
    let way = BatchOptions {
        refused: "not carried whole",
        ..BatchOptions::new(output, source.limits, options.going)
    };
    let (limits, to) = (source.limits.limits(), Version::from(options.to.as_str()));
    let (strict, output) = (options.strict, output.clone());
    work(input, sink, &way, move |text, spot| {
        let thread = decode(text, &limits, spot)?;
        let downgraded = thread::downgrade(&thread, &to);
        let downgraded = downgraded.map_err(|error| CliError::Untranslated {
            spot: spot.to_string(),
            source: error.into(),
        })?;
        let n_losses = downgraded.losses().count();
        let text = downgraded.thread.encode();
        let mut done = done(text, &downgraded.changes, spot, &output);
        if strict && n_losses > 0 {
            done.refused = Some(CliError::Lossy {
                spot: spot.to_string(),
                n_losses,
            });
        }
        Ok(done)
    })
    .map(drop)
}

fn done(document: String, changes: &[Change], spot: &Location, output: &Output) -> Done {
    Done {
        out: document,
        stderr_lines: changes
            .iter()
            .map(|it| report(output, spot, it.kind.as_str(), &it.pointer, &it.what))
            .collect(),
        n_found: changes.len(),
        refused: None,
    }
}
