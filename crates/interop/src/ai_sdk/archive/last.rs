//! The last message of an archive, without making all of them.

use super::stream;
use super::visible::{How, visible_messages};
use crate::Losses;
use crate::ai_sdk::chunk::Major;
use crate::archive::{Archive, ArchivedRun, Format};
use thread::Json;

/// The last message.
pub(super) fn last(archive: &Archive) -> Option<Json> {
    let goes_on =
        |run: &ArchivedRun| run.format == Format::AiSdkStream && run.head.contains_key("continues");
    let chain = archive.runs.iter().rev().take_while(|run| goes_on(run));
    let n_chain = chain.count();
    let (before, chain) = archive.runs.split_at(archive.runs.len() - n_chain);

    let mut message = match before.last() {
        None => None,
        Some(run) => match run.format {
            Format::AiSdkUi => run.records.last().map(crate::archive::SourceText::json),
            Format::AiSdkStream => {
                stream::read_chunks(run, "", None, &mut Losses::default()).message
            }
            Format::PydanticAi | Format::Thread => {
                let before = Archive {
                    root: archive.root.clone(),
                    runs: before.to_vec(),
                };
                let how = How {
                    major: Major::NEWEST,
                    namespace: false,
                };
                let last = visible_messages(&before, how, &mut Losses::default()).pop();
                last.map(|last| last.message)
            }
        },
    };
    for run in chain {
        let before = message.take();
        let told = stream::read_chunks(run, "", before.clone(), &mut Losses::default());
        message = told.message.or(before);
    }
    message
}
