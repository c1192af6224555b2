//! `render`: what a model is shown of a thread.

use crate::args::{Attribution, ForeignTools, Render, Unanswered};
use crate::check::decode;
use crate::error::CliError;
use crate::input::Input;
use crate::output::Output;
use crate::report::report;
use crate::sink::Sink;
use crate::work::{BatchOptions, Done, Location, work};
use thread::render::{self, RenderOptions, ToolTraffic, What};
use thread::{Json, Thread};

pub(crate) fn render(options: Render, output: &Output) -> Result<(), CliError> {
    let input = Input::of(&options.source)?;
    let sink = Sink::open(options.target.output.as_deref(), output)?;
    let limits = options.source.limits;
    let way = BatchOptions::new(output, limits, options.going);
    let limits = limits.limits();
    let rendering = RenderOptions {
        attribution: match options.attribution {
            Attribution::Prefix => render::SpeakerAttribution::Prefix,
            Attribution::Name => render::SpeakerAttribution::NameField,
            Attribution::Quoted => render::SpeakerAttribution::QuotedInUserMessage,
        },
        tool_traffic: match options.foreign_tools {
            ForeignTools::Show => ToolTraffic::Show,
            ForeignTools::Summarise => ToolTraffic::Summarise,
            ForeignTools::Hide => ToolTraffic::Hide,
        },
        unanswered: match options.unanswered {
            Unanswered::Drop => render::Unanswered::Drop,
            Unanswered::Interrupted => render::Unanswered::AnswerAsInterrupted,
        },
        ..RenderOptions::default()
    };
    let (agent, reports, output) = (options.agent, options.report, output.clone());
    work(input, sink, &way, move |text, spot| {
        let thread = decode(text, &limits, spot)?;
        let rendered = render::render(
            &thread,
            &RenderOptions {
                agent_id: agent_id(&thread, &agent, spot)?,
                ..rendering.clone()
            },
        );
        let taken = interop::pydantic_ai::library_messages(&rendered.messages);
        let mut done = Done {
            out: Json::Array(taken.value).to_text(),
            n_found: rendered.changes.len() + taken.losses.len(),
            ..Done::default()
        };
        if reports {
            let changes = rendered.changes.iter();
            let lines = changes.map(|change| {
                report(
                    &output,
                    spot,
                    "rendered",
                    &change.pointer,
                    &words(change.what),
                )
            });
            let losses = taken.losses.iter();
            let losses =
                losses.map(|loss| report(&output, spot, "not carried", &loss.pointer, &loss.what));
            done.stderr_lines = lines.chain(losses).collect();
        }
        Ok(done)
    })
    .map(drop)
}

/// The agent with this id, or else the one with this name.
fn agent_id(thread: &Thread, agent: &str, spot: &Location) -> Result<String, CliError> {
    if thread.agent(agent).is_some() {
        return Ok(agent.to_owned());
    }
    let mut found = thread
        .agents()
        .filter(|(_, config)| config.agent_name() == Some(agent));
    match (found.next(), found.next()) {
        (Some((id, _)), None) => Ok(id.to_owned()),
        (Some(_), Some(_)) => Err(CliError::AgentUnclear {
            spot: spot.to_string(),
            agent: agent.to_owned(),
        }),
        (None, _) => Err(CliError::NoAgent {
            spot: spot.to_string(),
            agent: agent.to_owned(),
            known: known(thread),
        }),
    }
}

fn known(thread: &Thread) -> String {
    let agents = thread
        .agents()
        .map(|(id, config)| match config.agent_name() {
            Some(name) if name != id => format!("{name} ({id})"),
            Some(_) | None => id.to_owned(),
        });
    let agents: Vec<_> = agents.collect();
    if agents.is_empty() {
        "none".to_owned()
    } else {
        agents.join(", ")
    }
}

/// The name of a [`What`] in lower-case words.
fn words(what: What) -> String {
    let mut words = String::new();
    for letter in format!("{what:?}").chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
