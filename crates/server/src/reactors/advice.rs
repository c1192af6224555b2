//! Model errors that say what to do.

use crate::config::RemoteModel;
use futures_util::StreamExt as _;
use std::sync::Arc;
use upp::{Code, Error, Model, ModelLayer, ModelStream, Request};

/// A configured model whose errors come with advice for the operator: in development mode in the message,
/// otherwise in the log, because the callers of a server with tenants are not its operators.
pub(super) struct AdvisedModel {
    inner: Arc<dyn Model>,
    advice: Arc<Advice>,
}

/// Advice for operators about the errors of a model.
struct Advice {
    model: String,
    key_envs: Vec<String>,
    is_development: bool,
}

impl AdvisedModel {
    pub(super) fn new(inner: Arc<dyn Model>, config: &RemoteModel, is_development: bool) -> Self {
        let advice = Advice {
            model: config.model.clone(),
            key_envs: config.key_envs.clone(),
            is_development,
        };
        Self {
            inner,
            advice: Arc::new(advice),
        }
    }
}

impl ModelLayer for AdvisedModel {
    fn inner(&self) -> &dyn Model {
        &*self.inner
    }

    fn stream(&self, request: Request) -> ModelStream {
        let advice = Arc::clone(&self.advice);
        let items = self.inner.stream(request);
        items
            .map(move |item| item.map_err(|error| advice.added_to(error)))
            .boxed()
    }
}

impl Advice {
    fn of(&self, code: Code) -> Option<String> {
        Some(match code {
            Code::AuthenticationFailed if self.key_envs.is_empty() => {
                "Name the variable with the API key in api_key_env.".to_owned()
            }
            Code::AuthenticationFailed => {
                let variables = self.key_envs.join(" or ");
                format!("Set {variables} to a valid API key, then restart.")
            }
            Code::ModelNotFound => format!("Check the model id {:?}.", self.model),
            Code::QuotaExceeded => {
                "Check the credit and the limits of the account at the provider.".to_owned()
            }
            Code::NetworkError => {
                "Check the network, the proxy settings and the base URL.".to_owned()
            }
            Code::RateLimited
            | Code::ContextLengthExceeded
            | Code::InvalidRequest
            | Code::InvalidResponse
            | Code::ContentFiltered
            | Code::ProviderError
            | Code::Timeout
            | Code::Cancelled => return None,
        })
    }

    /// The error with the advice. A server with tenants logs the advice instead.
    fn added_to(&self, mut error: Error) -> Error {
        let Some(advice) = self.of(error.code) else {
            return error;
        };
        if self.is_development {
            let message = error.message.trim_end_matches(['.', ' ']);
            error.message = format!("{message}. {advice}");
        } else {
            tracing::warn!(model = self.model, %error, advice, "a model call failed");
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(code: Code, text: &str) -> String {
        let advice = Advice {
            model: "gpt-x".to_owned(),
            key_envs: vec!["A_KEY".to_owned(), "B_KEY".to_owned()],
            is_development: true,
        };
        advice.added_to(Error::new(code, "openai", text)).message
    }

    #[test]
    fn a_refused_key_names_the_variables() {
        assert_eq!(
            message(Code::AuthenticationFailed, "Incorrect API key."),
            "Incorrect API key. Set A_KEY or B_KEY to a valid API key, then restart."
        );
    }

    #[test]
    fn an_unknown_model_is_named() {
        assert_eq!(
            message(Code::ModelNotFound, "There is no such model"),
            "There is no such model. Check the model id \"gpt-x\"."
        );
    }

    #[test]
    fn callers_of_a_server_with_tenants_see_no_advice() {
        let advice = Advice {
            model: "gpt-x".to_owned(),
            key_envs: Vec::new(),
            is_development: false,
        };
        let error = Error::new(Code::AuthenticationFailed, "openai", "Incorrect API key.");
        assert_eq!(advice.added_to(error).message, "Incorrect API key.");
    }

    #[test]
    fn an_error_without_advice_is_unchanged() {
        assert_eq!(
            message(Code::Timeout, "It took too long"),
            "It took too long"
        );
    }
}
