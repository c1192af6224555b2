//! A log in memory.

use jiff::Timestamp;
use loomline_interop::document::Imported;
use timeline::{Command, NewThread, Record, Seq, State, Transcript};

/// A log, and what its commands come to.
pub(crate) struct Log {
    pub(crate) state: State,
    pub(crate) records: Vec<Record>,
    pub(crate) at: Timestamp,
}

impl Log {
    pub(crate) fn new(thread: NewThread, at: Timestamp) -> Self {
        let mut log = Self {
            state: State::default(),
            records: Vec::new(),
            at,
        };
        let context_id = "context".into();
        log.run(Command::Create { thread, context_id });
        log
    }

    /// Runs a command a second after the one before it.
    pub(crate) fn run(&mut self, command: Command) {
        self.at += jiff::SignedDuration::from_secs(1);
        self.run_at(self.at, command);
    }

    pub(crate) fn run_at(&mut self, at: Timestamp, command: Command) {
        for event in self.state.decide(command, at).unwrap() {
            self.state.apply(&event);
            let seq = Seq(self.records.len() as u64 + 1);
            self.records.push(Record { seq, at, event });
        }
    }

    pub(crate) fn transcript(&self) -> Transcript {
        let mut transcript = Transcript::default();
        for record in &self.records {
            transcript.apply(record);
        }
        transcript
    }
}

/// The log that an import leads to, through its text as a store would keep it.
pub(crate) fn of_import(thread_id: &str, imported: &Imported) -> Log {
    let mut thread = NewThread::new(thread_id, None);
    thread.title.clone_from(&imported.title);
    thread.metadata.clone_from(&imported.metadata);
    let mut log = Log::new(thread, imported.created_at.unwrap_or(Timestamp::UNIX_EPOCH));
    for (at, command) in &imported.commands {
        log.run_at(*at, command.clone());
    }
    for record in &mut log.records {
        record.event = timeline::Event::decode(&record.event.encode().unwrap()).unwrap();
    }
    log
}

pub(crate) fn ids() -> impl FnMut() -> String {
    let mut last = 0;
    move || {
        last += 1;
        format!("id_{last}")
    }
}
