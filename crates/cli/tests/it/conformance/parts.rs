//! Parts: what may be added, and what is kept of it.

use super::cases::{Block, Case, compare};
use super::lifecycle::{runtime, say};
use super::tools;
use timeline::{ContentError, Event, Payload, Seq, check_content};

pub(crate) fn check(case: &Case) -> Result<(), String> {
    let [part, verdict] = case.blocks.as_slice() else {
        return Err("the case has a part and a verdict".into());
    };
    match (part.info().as_slice(), verdict.info().as_slice()) {
        (["json", "part"], ["verdict"]) => judge(part, verdict),
        (["json", "part"], _) => Err(verdict.unknown()),
        _ => Err(part.unknown()),
    }
}

fn judge(part: &Block, verdict: &Block) -> Result<(), String> {
    let text = format!("[{}]", part.text);
    let content = Payload::from_text(text).map_err(|error| error.to_string())?;
    let found = match check_content(&content) {
        Ok(()) => "accepted".to_owned(),
        Err(ContentError::NotAPart { pointer }) => format!("refused not-a-part {pointer}"),
        Err(ContentError::NotAList | ContentError::NotContent { .. }) => {
            "refused not-a-list".to_owned()
        }
        Err(ContentError::NotNamespaced { pointer, .. }) => {
            format!("refused not-namespaced {pointer}")
        }
        Err(ContentError::Reinterpreted { pointer, .. }) => {
            format!("refused reinterpreted {pointer}")
        }
    };
    compare(&verdict.lines(), &[found])?;
    let said = tools::wait(say(&runtime(), content.clone(), None, Seq::ZERO));
    match (said, check_content(&content)) {
        (Ok(log), Ok(())) => {
            let kept = log.iter().find_map(|record| match &record.event {
                Event::ItemCreated { item } => item.content.clone(),
                _ => None,
            });
            let kept = kept.map(|content| content.text().to_owned());
            compare(&[content.text()], &[kept.unwrap_or_default()])
        }
        (Err(_), Err(_)) => Ok(()),
        (said, checked) => Err(format!(
            "the runtime says {:?}, the check {checked:?}",
            said.err()
        )),
    }
}
