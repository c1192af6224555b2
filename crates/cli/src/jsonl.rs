//! Processes files with one document per line. One thread splits the lines, one worker per core
//! processes them, and the calling thread writes the results in order.
//!
//! Memory stays bounded for files of any length: the queues are bounded, and reading waits until earlier
//! lines are written.

mod budget;
mod lines;

use crate::error::CliError;
use crate::input::Input;
use crate::output::Output;
use crate::progress::Progress;
use crate::sink::Sink;
use crate::work::{BatchOptions, Location, Totals, Work};
use budget::Budget;
use lines::{Batch, Lines};
use std::borrow::Cow;
use std::io::Read;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The result of a batch of lines.
#[derive(Default)]
struct Answer {
    out: String,
    said: String,
    totals: Totals,
    n_read: u64,
    n_bytes: usize,
    /// The error that ends the processing after this batch.
    stop: Option<CliError>,
}

/// A batch and the channel for its result.
type Job = (Batch, SyncSender<Answer>);

/// The values that all lines share.
struct Shop {
    name: Arc<str>,
    max_bytes: usize,
    keep_going: bool,
    judges: bool,
    documents: bool,
    output: Output,
    work: Arc<Work>,
}

/// Works on each line of the input; lines that are blank are passed over.
pub(crate) fn work(
    input: Input,
    mut sink: Sink,
    way: &BatchOptions,
    work: Arc<Work>,
) -> Result<Totals, CliError> {
    let progress = Progress::of_lines(&input, &way.output);
    let shop = Arc::new(Shop {
        name: Arc::clone(&input.name),
        max_bytes: way.limits.limits().max_bytes,
        keep_going: way.keep_going,
        judges: way.judges,
        documents: sink.takes_documents(),
        output: way.output.clone(),
        work,
    });
    let budget = Budget::new();
    let answers = start(input.reader, &shop, &budget);
    let totals = write(&answers, &mut sink, &progress, &budget, &way.output);
    // The reader may still wait for input that never comes, so nobody waits for it; it and the
    // workers end with their queues, or with the process.
    budget.close();
    let totals = totals?;
    if totals.failed + totals.refused > 0 {
        let error = CliError::Lines {
            totals,
            refused: way.refused,
        };
        if way.keep_going {
            sink.finish()?;
        }
        return Err(error);
    }
    sink.finish()?;
    Ok(totals)
}

/// Starts the threads; returns the channel of the results, in the order of the lines.
fn start(
    reader: Box<dyn Read + Send>,
    shop: &Arc<Shop>,
    budget: &Budget,
) -> Receiver<Result<Receiver<Answer>, CliError>> {
    let n_workers = std::thread::available_parallelism().map_or(1, NonZero::get);
    let (to_workers, jobs) = sync_channel::<Job>(n_workers);
    let (to_writer, answers) = sync_channel(4 * n_workers);
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..n_workers {
        let (shop, jobs) = (Arc::clone(shop), Arc::clone(&jobs));
        std::thread::spawn(move || {
            while let Some((batch, answer)) = next(&jobs) {
                // The writer may have stopped.
                let _ = answer.send(shop.answer(&batch));
            }
        });
    }
    let (name, max_bytes, budget) = (Arc::clone(&shop.name), shop.max_bytes, budget.clone());
    std::thread::spawn(move || {
        let mut lines = Lines::new(reader, max_bytes);
        loop {
            let batch = match lines.more() {
                Ok(Some(batch)) => batch,
                Ok(None) => return,
                Err(error) => {
                    let _ = to_writer.send(Err(CliError::io(format!("read {name}"))(error)));
                    return;
                }
            };
            let (answer, awaited) = sync_channel(1);
            let goes_on = budget.take(batch.bytes.len())
                && to_writer.send(Ok(awaited)).is_ok()
                && to_workers.send((batch, answer)).is_ok();
            if !goes_on {
                return;
            }
        }
    });
    answers
}

fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    let jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
    jobs.recv().ok()
}

/// Writes the answers in order, up to the first that stops it.
fn write(
    answers: &Receiver<Result<Receiver<Answer>, CliError>>,
    sink: &mut Sink,
    progress: &Progress,
    budget: &Budget,
    output: &Output,
) -> Result<Totals, CliError> {
    let mut totals = Totals::default();
    for awaited in answers {
        let answer = awaited?.recv().map_err(|_| CliError::WorkerStopped)?;
        totals.add(answer.totals);
        if !answer.said.is_empty() {
            progress.aside(|| output.write_stderr(&answer.said));
        }
        if !answer.out.is_empty() {
            progress.aside(|| sink.lines(&answer.out))?;
        }
        progress.advance(answer.n_read, totals.documents);
        budget.give_back(answer.n_bytes);
        if let Some(stop) = answer.stop {
            return Err(stop);
        }
    }
    Ok(totals)
}

impl Totals {
    fn add(&mut self, more: Self) {
        self.documents += more.documents;
        self.failed += more.failed;
        self.refused += more.refused;
        self.found = self.found.saturating_add(more.found);
    }
}

impl Shop {
    fn answer(&self, batch: &Batch) -> Answer {
        let mut answer = Answer {
            n_read: batch.n_read,
            n_bytes: batch.bytes.len(),
            ..Answer::default()
        };
        if batch.too_long {
            let failure = CliError::TooLarge {
                spot: self.spot(batch.first).to_string(),
                limit: self.max_bytes,
            };
            answer.totals.documents += 1;
            self.bad(failure, true, &mut answer);
        }
        for (line, bytes) in (batch.first..).zip(batch.bytes.split(|byte| *byte == b'\n')) {
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            answer.totals.documents += 1;
            match self.line(line, bytes, &mut answer) {
                Ok(()) => {}
                Err(failure @ CliError::NotUtf8 { .. }) if self.judges => {
                    answer.said.push_str(&self.output.error_text(&failure));
                    self.bad(failure, false, &mut answer);
                }
                Err(failure) => self.bad(failure, true, &mut answer),
            }
            if answer.stop.is_some() {
                break;
            }
        }
        answer
    }

    fn line(&self, line: u64, bytes: &[u8], answer: &mut Answer) -> Result<(), CliError> {
        let spot = self.spot(line);
        if bytes.len() > self.max_bytes {
            let (spot, limit) = (spot.to_string(), self.max_bytes);
            return Err(CliError::TooLarge { spot, limit });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| CliError::NotUtf8 {
            spot: spot.to_string(),
            at: error.valid_up_to(),
        })?;
        let done = (self.work)(text, &spot)?;
        answer.said.push_str(&done.stderr_lines);
        answer.totals.found = answer.totals.found.saturating_add(done.n_found);
        if !self.documents {
            answer.out.push_str(&done.out);
        } else if done.refused.is_none() {
            answer.out.push_str(&one_line(&done.out));
            answer.out.push('\n');
        }
        if let Some(refused) = done.refused {
            self.bad(refused, false, answer);
        }
        Ok(())
    }

    /// Counts a bad line, and stops unless `keep_going`.
    fn bad(&self, error: CliError, failed: bool, answer: &mut Answer) {
        if !self.keep_going {
            answer.stop = Some(error);
        } else if failed {
            answer.totals.failed += 1;
            answer.said.push_str(&self.output.error_text(&error));
        } else {
            answer.totals.refused += 1;
        }
    }

    fn spot(&self, line: u64) -> Location {
        Location {
            name: Arc::clone(&self.name),
            line: Some(line),
        }
    }
}

/// JSON on one line. Raw line breaks in JSON are white space, never part of a string.
fn one_line(json: &str) -> Cow<'_, str> {
    let json = json.trim_end();
    if json.contains(['\n', '\r']) {
        json.replace(['\n', '\r'], " ").into()
    } else {
        json.into()
    }
}
