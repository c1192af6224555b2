//! Checks of a new thread's first messages, before the thread is created.

use super::gate::PartyBinding;
use super::past::contents;
use super::refused::Refused;
use interop::aitp::{AitpState, Participants};
use jiff::Timestamp;
use runtime::RuntimeError;
use timeline::{Command, ItemType, NewThread, Payload, Record, State};

/// The state of a thread that is being created, updated by each command.
pub(super) struct StartedAitpState {
    desk: AitpState,
    state: State,
}

impl StartedAitpState {
    /// The state of a thread with this metadata; `desk` is its parent's state.
    pub(super) fn new(
        desk: AitpState,
        metadata: Option<Payload>,
        now: Timestamp,
    ) -> Result<Self, RuntimeError> {
        let mut begun = Self {
            desk: desk.continued(),
            state: State::default(),
        };
        let thread = NewThread {
            metadata,
            ..NewThread::new("", None)
        };
        let context_id = "".into();
        begun.run(Command::Create { thread, context_id }, now)?;
        Ok(begun)
    }

    /// Checks the recorded messages in order, and replaces each by its stored form. In agents' output,
    /// only the URLs of files are checked.
    pub(super) fn check(
        mut self,
        speaker: &PartyBinding,
        commands: &mut [(Timestamp, Command)],
        now: Timestamp,
    ) -> Result<AitpState, RuntimeError> {
        let mut n_said = 0;
        for (at, command) in commands {
            if let Command::Record { item } = &mut *command
                && item.item_type == ItemType::Message
            {
                let judged = speaker.judge_all(&self.desk, std::slice::from_mut(item), now);
                judged.map_err(|refused| Refused::new(refused.why, n_said))?;
                n_said += 1;
            } else {
                for content in contents(command) {
                    let checked = speaker.check_links(Some(content));
                    checked.map_err(|why| Refused::new(why, n_said))?;
                }
            }
            self.run(command.clone(), *at)?;
        }
        Ok(self.desk)
    }

    /// The participants.
    pub(super) fn participants(self) -> Participants {
        self.desk.participants().clone()
    }

    /// The thread's state after these commands, which are not checked.
    pub(super) fn after(
        mut self,
        commands: &[(Timestamp, Command)],
    ) -> Result<AitpState, RuntimeError> {
        for (at, command) in commands {
            self.run(command.clone(), *at)?;
        }
        Ok(self.desk)
    }

    fn run(&mut self, command: Command, at: Timestamp) -> Result<(), RuntimeError> {
        for event in self.state.decide(command, at)? {
            self.state.apply(&event);
            let seq = self.desk.seq().next();
            self.desk.apply(&Record { seq, at, event });
        }
        Ok(())
    }
}
