//! The limits of a run: the number of calls, and the number of output tokens.

use interop::options::MIN_ANSWER_TOKENS;
use interop::parts::StepResponse;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use timeline::Payload;
use upp::{Model, ModelLayer, ModelStream, Request, Settings};

/// The usage so far of a run that has a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// Calls of tools.
    pub(super) calls: u64,
    /// Output tokens of the models.
    pub(super) tokens: u64,
}

impl Spent {
    /// The counts after a step with `n_calls` calls and this metadata of the model's answer.
    pub(super) fn after(self, n_calls: u64, about: &Payload) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Counts {
            output_tokens: u64,
        }
        let said: Option<StepResponse> = about.read().ok();
        let usage = said.and_then(|said| said.usage);
        let counts: Option<Counts> = usage.and_then(|usage| usage.read().ok());
        Self {
            calls: self.calls.saturating_add(n_calls),
            tokens: self
                .tokens
                .saturating_add(counts.unwrap_or_default().output_tokens),
        }
    }
}

/// The maximum number of output tokens of one run.
#[derive(Debug)]
pub(super) struct Budget {
    max: u64,
    left: AtomicU64,
}

impl Budget {
    pub(super) fn new(max: u64) -> Arc<Self> {
        let left = AtomicU64::new(max);
        Arc::new(Self { max, left })
    }

    /// Sets the remaining tokens at the start of a step.
    pub(super) fn set(&self, spent: Spent) {
        self.left.store(self.left_of(spent), Ordering::Relaxed);
    }

    /// Whether too few tokens are left for another response.
    pub(super) fn is_spent(&self, spent: Spent) -> bool {
        self.left_of(spent) < MIN_ANSWER_TOKENS
    }

    fn left_of(&self, spent: Spent) -> u64 {
        self.max.saturating_sub(spent.tokens)
    }
}

/// A model whose responses are limited to the rest of the run's budget.
pub(super) struct Budgeted {
    pub(super) model: Arc<dyn Model>,
    pub(super) budget: Arc<Budget>,
}

impl ModelLayer for Budgeted {
    fn inner(&self) -> &dyn Model {
        &*self.model
    }

    fn stream(&self, mut request: Request) -> ModelStream {
        let left = self.budget.left.load(Ordering::Relaxed);
        let settings = self.model.settings(&Settings {
            max_output_tokens: Some(left.max(MIN_ANSWER_TOKENS)),
            ..Settings::default()
        });
        if !settings.params.is_empty() {
            lower(Arc::make_mut(&mut request.params), &settings.params);
        }
        self.model.stream(request)
    }
}

/// Overrides parameters by others, except where the existing number is lower.
fn lower(params: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (name, value) in over {
        match (params.get_mut(name), value) {
            (Some(Value::Object(below)), Value::Object(above)) => lower(below, above),
            (Some(Value::Number(below)), Value::Number(above))
                if below
                    .as_u64()
                    .is_some_and(|below| above.as_u64().is_some_and(|above| below <= above)) => {}
            (Some(below), above) => *below = above.clone(),
            (None, above) => {
                params.insert(name.clone(), above.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_limit_is_lowered_and_never_raised() {
        let lowered = |params: Value, over: Value| {
            let mut params = params.as_object().unwrap().clone();
            lower(&mut params, over.as_object().unwrap());
            Value::Object(params)
        };
        let over = json!({"max_tokens": 100});
        assert_eq!(lowered(json!({}), over.clone()), over);
        assert_eq!(lowered(json!({"max_tokens": 900}), over.clone()), over);
        let own = json!({"max_tokens": 50, "top_p": 1});
        assert_eq!(lowered(own.clone(), over), own);
        let nested = json!({"generationConfig": {"maxOutputTokens": 7}});
        assert_eq!(
            lowered(json!({"generationConfig": {"topK": 1}}), nested),
            json!({"generationConfig": {"maxOutputTokens": 7, "topK": 1}})
        );
    }
}
