//! `convert`: any format into any other.

pub(crate) mod attribution;

use crate::args::{Convert, LimitOptions};
use crate::error::CliError;
use crate::input::Input;
use crate::output::{Output, json_line};
use crate::report::report;
use crate::sink::Sink;
use crate::work::{BatchOptions, Done, Location, Totals, work};
use interop::ai_sdk::sse::{DONE, EventTooLarge, SseDecoder};
use interop::archive::{Archive, Format};
use interop::convert::{self, ConvertError, ReadOptions, SourceForm, Trust, WriteOptions};
use interop::{Converted, Loss};
use serde_json::json;
use std::path::Path;

/// A conversion, as the command line has it.
struct Conversion {
    from: SourceForm,
    to: SourceForm,
    read: ReadOptions,
    write: WriteOptions,
    onto: Option<Archive>,
    strict: bool,
    output: Output,
}

pub(crate) fn convert(options: Convert, output: &Output) -> Result<(), CliError> {
    let input = Input::of(&options.source)?;
    let limits = options.source.limits;
    if input.by_line && options.onto.is_some() {
        let what = "one archive can't be continued with many documents: --onto takes no lines";
        return Err(CliError::Usage { what: what.into() });
    }
    let onto = options.onto.as_deref();
    let conversion = Conversion {
        from: options.from.of(),
        to: options.to.of(),
        onto: onto.map(|file| archive(file, limits)).transpose()?,
        write: WriteOptions {
            ai_sdk: options.ai_sdk,
            namespace: !options.no_namespace,
        },
        strict: options.strict,
        output: output.clone(),
        read: ReadOptions {
            limits: limits.limits(),
            attribution: attribution::read(
                options.attribution.as_deref(),
                options.agent,
                &limits.limits(),
            )?,
            thread_id: options.thread_id,
            title: options.title,
            at: options.at,
            trust: if options.trust_namespace {
                Trust::OwnNamespace
            } else {
                Trust::Nothing
            },
            ai_sdk: options.ai_sdk,
        },
    };
    let sink = Sink::open(options.target.output.as_deref(), output)?;
    let way = BatchOptions {
        refused: "not carried whole",
        ..BatchOptions::new(output, limits, options.going)
    };
    let by_line = input.by_line;
    let totals = work(input, sink, &way, move |text, spot| {
        conversion.document(text, spot)
    })?;
    if !output.is_quiet() {
        output.write_stderr(&summary(output, by_line, totals));
    }
    Ok(())
}

fn summary(output: &Output, by_line: bool, totals: Totals) -> String {
    let (n_losses, n_lines) = (totals.found, totals.documents);
    if output.is_json() {
        return json_line(if by_line {
            json!({"losses": n_losses, "lines": n_lines})
        } else {
            json!({"losses": n_losses})
        });
    }
    let lines = if by_line {
        format!("{n_lines} lines, ")
    } else {
        String::new()
    };
    let plural = if n_losses == 1 { "loss" } else { "losses" };
    format!("{lines}{n_losses} {plural}\n")
}

fn archive(file: &Path, limits: LimitOptions) -> Result<Archive, CliError> {
    let input = Input::open(Some(file))?;
    let spot = input.name.to_string();
    let limits = limits.limits();
    let text = input.text(limits.max_bytes)?;
    Archive::decode(text, &limits).map_err(|source| CliError::Unreadable {
        spot,
        what: "archive",
        source: source.into(),
    })
}

impl Conversion {
    fn document(&self, text: &str, spot: &Location) -> Result<Done, CliError> {
        let (archive, mut losses) = self.archive(text, spot)?;
        let written = convert::write(self.to, &archive, &self.write);
        losses.extend(match self.onto {
            // The places are those of the archive, of which the source is a part.
            Some(_) => written.losses,
            None => convert::in_source(self.from, &archive, written.losses),
        });
        let mut done = Done {
            out: written.value,
            stderr_lines: losses
                .iter()
                .map(|Loss { pointer, what }| {
                    report(&self.output, spot, "not carried", pointer, what)
                })
                .collect(),
            n_found: losses.len(),
            refused: None,
        };
        if spot.line.is_some() && self.to == SourceForm::Of(Format::AiSdkStream) {
            done.out = chunks(&done.out).map_err(|error| CliError::Unreadable {
                spot: spot.to_string(),
                what: self.to.name(),
                source: error.into(),
            })?;
        }
        if self.strict && !losses.is_empty() {
            done.refused = Some(CliError::Lossy {
                spot: spot.to_string(),
                n_losses: losses.len(),
            });
        }
        Ok(done)
    }

    fn archive(&self, text: &str, spot: &Location) -> Result<(Archive, Vec<Loss>), CliError> {
        let failed = |error| unreadable(self.from, error, spot);
        if let Some(archive) = &self.onto {
            let mut archive = archive.clone();
            let losses = convert::append(&mut archive, self.from, text, &self.read);
            return Ok((archive, losses.map_err(failed)?));
        }
        let Converted { value, losses } =
            convert::read(self.from, text, &self.read).map_err(failed)?;
        Ok((value, losses))
    }
}

/// The error of a text that is not in this form.
pub(crate) fn unreadable(form: SourceForm, mut error: ConvertError, spot: &Location) -> CliError {
    if let (Some(line), Some(error)) = (spot.line, json_fault(&mut error)) {
        error.line = usize::try_from(line).unwrap_or(usize::MAX);
    }
    CliError::Unreadable {
        spot: spot.to_string(),
        what: form.name(),
        source: error.into(),
    }
}

/// The JSON error in a conversion error, if it has one.
pub(crate) fn json_fault(error: &mut ConvertError) -> Option<&mut thread::DecodeError> {
    use interop::ai_sdk::AiSdkError;
    use interop::archive::ArchiveError;
    use interop::pydantic_ai::PydanticAiError;
    if let ConvertError::Json(error)
    | ConvertError::Archive(ArchiveError::Json(error))
    | ConvertError::PydanticAi(PydanticAiError::Json(error))
    | ConvertError::AiSdk(AiSdkError::Json(error)) = error
    {
        return Some(error);
    }
    None
}

/// The chunks of a stream of server-sent events as an array on one line: a stream has many.
fn chunks(stream: &str) -> Result<String, EventTooLarge> {
    let mut events = Vec::new();
    SseDecoder::with_limit(stream.len()).push(stream.as_bytes(), &mut events)?;
    events.retain(|event| event != DONE);
    // Line breaks of an event are white space of its JSON.
    Ok(format!("[{}]", events.join(",").replace('\n', " ")))
}

#[cfg(test)]
mod tests {
    use super::chunks;

    #[test]
    fn the_chunks_of_a_stream_are_an_array_on_one_line() {
        let stream = "data: {\"type\":\"start\"}\n\ndata: {\"a\":\ndata: 1}\n\ndata: [DONE]\n\n";
        let array = r#"[{"type":"start"},{"a": 1}]"#;
        assert_eq!(chunks(stream).as_deref(), Ok(array));
        assert_eq!(chunks("").as_deref(), Ok("[]"));
    }
}
