//! How far a command is, shown on a terminal and nowhere else.

use crate::input::Input;
use crate::output::Output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::io::IsTerminal;
use std::time::Duration;

/// Time before progress of work of unknown size is shown.
const DELAY: Duration = Duration::from_secs(2);
/// Time between two changes of a spinner.
const TICK: Duration = Duration::from_millis(200);
/// Size below which no progress is shown, in bytes.
const SMALL: u64 = 8 << 20;

/// A bar, a spinner or nothing.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Progress of lines: a bar if the size is known, a spinner otherwise.
    pub(crate) fn of_lines(input: &Input, output: &Output) -> Self {
        if is_hidden(output) {
            return Self(ProgressBar::hidden());
        }
        match input.size {
            Some(size) => {
                let template = "{bar:30} {bytes}/{total_bytes}  {msg}  {bytes_per_sec}  {eta} left";
                Self::with_template(ProgressBar::new(size), template)
            }
            None => Self::with_template(
                ProgressBar::new_spinner(),
                "{spinner} {bytes}  {msg}  {bytes_per_sec}",
            ),
        }
    }

    /// Progress of one document: a spinner if it is large.
    pub(crate) fn of_document(input: &Input, output: &Output) -> Self {
        if input.size.is_some_and(|size| size < SMALL) {
            return Self(ProgressBar::hidden());
        }
        Self::of_work(input.name.to_string(), output)
    }

    /// Progress of work of unknown size, shown once it has taken two seconds.
    pub(crate) fn of_work(what: impl Into<Cow<'static, str>>, output: &Output) -> Self {
        let bar = ProgressBar::hidden();
        if is_hidden(output) {
            return Self(bar);
        }
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        let shown = bar.clone();
        std::thread::spawn(move || {
            std::thread::sleep(DELAY);
            if !shown.is_finished() {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        });
        Self(bar)
    }

    fn with_template(bar: ProgressBar, template: &str) -> Self {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Adds `n_bytes` to the progress; `n_lines` is the total number of lines so far.
    pub(crate) fn advance(&self, n_bytes: u64, n_lines: u64) {
        self.0.inc(n_bytes);
        if !self.0.is_hidden() {
            self.0.set_message(format!("{n_lines} lines"));
        }
    }

    /// Prints something without the bar in between.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn is_hidden(output: &Output) -> bool {
    output.is_json() || output.is_quiet() || !std::io::stderr().is_terminal()
}
