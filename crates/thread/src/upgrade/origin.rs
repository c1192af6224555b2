//! The positions of an upgraded document's pieces in the source.

use crate::path::Path;

/// The mapping of positions in turns to positions in the source.
#[derive(Debug)]
pub(crate) enum Origin {
    /// The source has the same turns.
    Turns,
    /// The source has actions (1.0.0).
    Actions(Vec<TurnOrigin>),
}

/// The actions that a turn was made of.
#[derive(Debug)]
pub(crate) struct TurnOrigin {
    /// The place of the first.
    pub(crate) first: usize,
    /// For each message, the action of each part; a system message has one action.
    pub(crate) messages: Vec<Vec<usize>>,
}

impl Origin {
    /// The pointer of a turn, or of the action that began it.
    pub(crate) fn turn(&self, turn: usize) -> String {
        match self {
            Self::Turns => Path::ROOT.key("turns").index(turn).to_pointer(),
            Self::Actions(turns) => action(turns.get(turn).map(|turn| turn.first)),
        }
    }

    /// The pointer of a message's member, or of the member `in_action` of its action.
    pub(crate) fn message(
        &self,
        turn: usize,
        message: usize,
        member: &str,
        in_action: &str,
    ) -> String {
        match self {
            Self::Turns => format!("{}/messages/{message}/{member}", self.turn(turn)),
            Self::Actions(_) => format!("{}/{in_action}", self.part(turn, Some(message), 0)),
        }
    }

    /// The pointer of a part, or of its action; without a message, of a user's turn.
    pub(crate) fn part(&self, turn: usize, message: Option<usize>, part: usize) -> String {
        match (self, message) {
            (Self::Turns, None) => format!("{}/parts/{part}", self.turn(turn)),
            (Self::Turns, Some(message)) => {
                format!("{}/messages/{message}/parts/{part}", self.turn(turn))
            }
            (Self::Actions(turns), message) => {
                let turn = turns.get(turn);
                let found = turn
                    .zip(message)
                    .and_then(|(turn, message)| turn.messages.get(message)?.get(part));
                action(found.copied().or(turn.map(|turn| turn.first)))
            }
        }
    }
}

fn action(place: Option<usize>) -> String {
    let actions = Path::ROOT.key("actions");
    match place {
        Some(place) => actions.index(place).to_pointer(),
        None => actions.to_pointer(),
    }
}
