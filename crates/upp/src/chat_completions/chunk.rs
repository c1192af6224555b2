//! A chunk whose values borrow from its text.

use crate::codec::fields::{
    Count, Field, FieldValue, Fields, Object, Objects, Slot, skip, take, take_raw,
};
use crate::shared_json::SharedJson;
use crate::usage::CycleUsage;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};
use serde_json::value::RawValue;

/// A chunk of a stream, or a whole answer.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    pub(super) error: Field<'a>,
    pub(super) id: Field<'a>,
    pub(super) model: Field<'a>,
    pub(super) system_fingerprint: Field<'a>,
    pub(super) service_tier: Field<'a>,
    pub(super) citations: Field<'a>,
    pub(super) usage: Option<&'a RawValue>,
    pub(super) x_groq: Object<Groq<'a>>,
    pub(super) choices: First<'a>,
}

/// The answer that counts: the first one of index 0. Others are not read.
#[derive(Debug, Default)]
pub(super) struct First<'a>(pub(super) Object<Choice<'a>>);

impl<'de> FieldValue<'de> for First<'de> {
    fn seq<A: SeqAccess<'de>>(&mut self, mut seq: A) -> Result<(), A::Error> {
        let Self(choice) = self;
        *choice = Object::default();
        while seq.next_element_seed(Slot(choice))?.is_some() {
            let given = choice.0.get_or_insert_default();
            if given.index.0.unwrap_or(0) == 0 {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(());
            }
            choice.0 = None;
        }
        Ok(())
    }
}

/// The fields that Groq adds.
#[derive(Debug, Default)]
pub(super) struct Groq<'a> {
    pub(super) usage: Option<&'a RawValue>,
}

/// One of the requested choices.
#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) index: Count,
    pub(super) error: Field<'a>,
    pub(super) delta: Object<Delta<'a>>,
    /// The whole answer of a provider that does not stream.
    pub(super) message: Object<Delta<'a>>,
    pub(super) finish_reason: Field<'a>,
    pub(super) usage: Option<&'a RawValue>,
}

/// More of an answer.
#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) reasoning_content: Field<'a>,
    pub(super) reasoning: Field<'a>,
    pub(super) reasoning_details: Field<'a>,
    pub(super) images: Field<'a>,
    pub(super) annotations: Field<'a>,
    pub(super) content: Field<'a>,
    pub(super) refusal: Field<'a>,
    pub(super) tool_calls: Objects<CallDelta<'a>>,
}

/// More of a call.
#[derive(Debug, Default)]
pub(super) struct CallDelta<'a> {
    pub(super) index: Count,
    pub(super) id: Field<'a>,
    pub(super) after: Field<'a>,
    pub(super) function: Object<FunctionDelta<'a>>,
}

/// More of what a call is.
#[derive(Debug, Default)]
pub(super) struct FunctionDelta<'a> {
    pub(super) name: Field<'a>,
    pub(super) arguments: Field<'a>,
}

impl<'de> Fields<'de> for Chunk<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "error" => take(map, &mut self.error),
            "id" => take(map, &mut self.id),
            "model" => take(map, &mut self.model),
            "system_fingerprint" => take(map, &mut self.system_fingerprint),
            "service_tier" => take(map, &mut self.service_tier),
            "citations" => take(map, &mut self.citations),
            "usage" => take_raw(map, &mut self.usage),
            "x_groq" => take(map, &mut self.x_groq),
            "choices" => take(map, &mut self.choices),
            _ => skip(map),
        }
    }
}

impl<'de> Fields<'de> for Groq<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "usage" => take_raw(map, &mut self.usage),
            _ => skip(map),
        }
    }
}

impl<'de> Fields<'de> for Choice<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "index" => take(map, &mut self.index),
            "error" => take(map, &mut self.error),
            "delta" => take(map, &mut self.delta),
            "message" => take(map, &mut self.message),
            "finish_reason" => take(map, &mut self.finish_reason),
            "usage" => take_raw(map, &mut self.usage),
            _ => skip(map),
        }
    }
}

impl<'de> Fields<'de> for Delta<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "reasoning_content" => take(map, &mut self.reasoning_content),
            "reasoning" => take(map, &mut self.reasoning),
            "reasoning_details" => take(map, &mut self.reasoning_details),
            "images" => take(map, &mut self.images),
            "annotations" => take(map, &mut self.annotations),
            "content" => take(map, &mut self.content),
            "refusal" => take(map, &mut self.refusal),
            "tool_calls" => take(map, &mut self.tool_calls),
            _ => skip(map),
        }
    }
}

impl<'de> Fields<'de> for CallDelta<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "index" => take(map, &mut self.index),
            "id" => take(map, &mut self.id),
            "after" => take(map, &mut self.after),
            "function" => take(map, &mut self.function),
            _ => skip(map),
        }
    }
}

impl<'de> Fields<'de> for FunctionDelta<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "name" => take(map, &mut self.name),
            "arguments" => take(map, &mut self.arguments),
            _ => skip(map),
        }
    }
}

/// The fields of a usage object that are read.
#[derive(Debug, Default)]
struct Usage {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_cache_hit_tokens: Count,
    cached_tokens: Count,
    prompt_tokens_details: Object<PromptDetails>,
    completion_tokens_details: Object<CompletionDetails>,
}

#[derive(Debug, Default)]
struct PromptDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Debug, Default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

impl<'de> Fields<'de> for Usage {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "prompt_tokens" => take(map, &mut self.prompt_tokens),
            "completion_tokens" => take(map, &mut self.completion_tokens),
            "total_tokens" => take(map, &mut self.total_tokens),
            "prompt_cache_hit_tokens" => take(map, &mut self.prompt_cache_hit_tokens),
            "cached_tokens" => take(map, &mut self.cached_tokens),
            "prompt_tokens_details" => take(map, &mut self.prompt_tokens_details),
            "completion_tokens_details" => take(map, &mut self.completion_tokens_details),
            _ => skip(map),
        }
    }
}

impl<'de> Fields<'de> for PromptDetails {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "cached_tokens" => take(map, &mut self.cached_tokens),
            "cache_write_tokens" => take(map, &mut self.cache_write_tokens),
            _ => skip(map),
        }
    }
}

impl<'de> Fields<'de> for CompletionDetails {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "reasoning_tokens" => take(map, &mut self.reasoning_tokens),
            _ => skip(map),
        }
    }
}

/// Reads a usage object; `None` if the value is not an object.
pub(super) fn usage(raw: &RawValue) -> Result<Option<CycleUsage>, serde_json::Error> {
    let Some(usage) = crate::codec::fields::read::<Usage>(raw.get())? else {
        return Ok(None);
    };
    let prompt = usage.prompt_tokens_details.0.unwrap_or_default();
    let completion = usage.completion_tokens_details.0.unwrap_or_default();
    let input = usage.prompt_tokens.0.unwrap_or(0);
    let output = usage.completion_tokens.0.unwrap_or(0);
    let reasoning = completion.reasoning_tokens.0.unwrap_or(0);
    // xAI counts reasoning apart from the rest of the output; the total tells.
    let whole = output.saturating_add(reasoning);
    let is_apart = usage.total_tokens.0 == Some(input.saturating_add(whole));
    let cached = prompt.cached_tokens.0;
    let cached = cached.or(usage.prompt_cache_hit_tokens.0);
    Ok(Some(CycleUsage {
        input_tokens: input,
        output_tokens: if is_apart { whole } else { output },
        cache_read_tokens: cached.or(usage.cached_tokens.0).unwrap_or(0),
        cache_write_tokens: prompt.cache_write_tokens.0.unwrap_or(0),
        reasoning_tokens: reasoning,
        raw: Some(SharedJson::from_raw(raw)),
    }))
}
