//! JSON Schemas of the capabilities, included in this crate. Validation fetches nothing.

use super::family::Family;
use super::message::Message;
use super::violation::{MessageViolation, member};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};
use std::sync::LazyLock;

const PAYMENTS: &str = include_str!("schemas/payments.json");
const DECISIONS: &str = include_str!("schemas/decisions.json");
const DATA_REQUEST: &str = include_str!("schemas/data_request.json");
const NEAR_WALLET: &str = include_str!("schemas/near_wallet.json");
const EVM_WALLET: &str = include_str!("schemas/evm_wallet.json");
const REQUESTS: &str = include_str!("schemas/requests.json");
const NEAR_PAYMENTS: &str = include_str!("schemas/near_payments.json");

/// Maximum number of violations listed for one message.
const MAX_VIOLATIONS: usize = 20;

/// How strictly a message must match its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Ignores unknown members, as AITP requires of receivers, and accepts the messages of NEAR AI's
    /// user interface.
    Lenient,
    /// As the published schemas have it.
    Strict,
}

/// The schemas do not compile. The tests of this crate make sure that its own schemas do.
#[derive(Debug, thiserror::Error)]
#[error("the schema of {name} does not compile")]
pub struct PayloadSchemaError {
    name: &'static str,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// The validators of all capabilities. Made once; asking it costs what the message is long.
#[derive(Debug)]
pub struct Schemas {
    strict: Vec<(Family, Validator)>,
    lenient: Vec<(Family, Validator)>,
    near_payments: Validator,
}

/// The text of a capability's schema, for those who publish it.
pub const fn schema_text(family: Family) -> &'static str {
    match family {
        Family::Payments => PAYMENTS,
        Family::Decisions => DECISIONS,
        Family::DataRequest => DATA_REQUEST,
        Family::NearWallet => NEAR_WALLET,
        Family::EvmWallet => EVM_WALLET,
        Family::Requests => REQUESTS,
    }
}

impl Schemas {
    /// Compiles the schemas of this crate.
    pub fn new() -> Result<Self, PayloadSchemaError> {
        let mut strict = Vec::new();
        let mut lenient = Vec::new();
        for family in Family::ALL {
            let schema = parsed(family.name(), schema_text(family))?;
            strict.push((family, compiled(family.name(), &schema)?));
            lenient.push((family, compiled(family.name(), &loosened(schema))?));
        }
        let near = parsed("NEAR's payments", NEAR_PAYMENTS)?;
        Ok(Self {
            strict,
            lenient,
            near_payments: compiled("NEAR's payments", &near)?,
        })
    }

    /// The schemas, compiled once for the program at the first use.
    pub fn shared() -> Result<&'static Self, &'static PayloadSchemaError> {
        static SHARED: LazyLock<Result<Schemas, PayloadSchemaError>> = LazyLock::new(Schemas::new);
        SHARED.as_ref()
    }

    /// The violations of a message; none for a message of an unknown capability. Pointers are relative
    /// to the message.
    pub fn violations(&self, message: &Message, strictness: Strictness) -> Vec<MessageViolation> {
        let Some((family, _)) = message.capability else {
            return Vec::new();
        };
        let (validators, near) = match strictness {
            Strictness::Lenient => (&self.lenient, is_near_payment(message)),
            Strictness::Strict => (&self.strict, false),
        };
        let own = validators.iter().find(|(own, _)| *own == family);
        let validator = match own {
            Some((_, validator)) if !near => validator,
            Some(_) | None => &self.near_payments,
        };
        let value = Value::Object(message.value.clone());
        let errors = validator.iter_errors(&value).take(MAX_VIOLATIONS);
        errors.map(|error| violation(&error)).collect()
    }
}

/// Whether a message about payments is in the dialect of NEAR AI's user interface.
pub(super) fn is_near_payment(message: &Message) -> bool {
    let quote = message.payload().and_then(Value::as_object);
    let older = quote.is_some_and(|quote| quote.contains_key("payment_plans"));
    message
        .kind
        .is_some_and(|kind| kind.is_near_dialect() || (kind.family() == Family::Payments && older))
}

fn parsed(name: &'static str, text: &str) -> Result<Value, PayloadSchemaError> {
    serde_json::from_str(text).map_err(|error| PayloadSchemaError {
        name,
        source: Box::new(error),
    })
}

fn compiled(name: &'static str, schema: &Value) -> Result<Validator, PayloadSchemaError> {
    jsonschema::options()
        .offline()
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| PayloadSchemaError {
            name,
            source: Box::new(error.to_owned()),
        })
}

/// The schema without what forbids unknown members, and with options of a field as objects.
fn loosened(mut schema: Value) -> Value {
    let choice = schema.pointer_mut("/$defs/choice");
    if let Some(choice) = choice {
        *choice = serde_json::json!({
            "if": {"type": "object"},
            "then": {
                "properties": {"label": {"type": "string"}, "value": {"type": "string"}},
                "required": ["value"]
            },
            "else": {"type": "string"}
        });
    }
    open(&mut schema);
    schema
}

fn open(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.retain(|key, value| key != "additionalProperties" || *value != false);
            object.values_mut().for_each(open);
        }
        Value::Array(list) => list.iter_mut().for_each(open),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's enum has kinds that these schemas never lead to"
)]
fn violation(error: &ValidationError<'_>) -> MessageViolation {
    let at = error.instance_path().to_string();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let key = property.as_str().unwrap_or_default();
            MessageViolation::new(member(&at, key), "this member, which is missing")
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let key = unexpected.first().map_or("", String::as_str);
            MessageViolation::new(member(&at, key), "no such member")
        }
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().into_iter().flatten();
            let options: Vec<String> = options.map(Value::to_string).collect();
            MessageViolation::new(at, format!("one of {}", options.join(", ")))
        }
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(one) => one.to_string(),
                TypeKind::Multiple(many) => {
                    let many: Vec<String> = many.iter().map(|one| one.to_string()).collect();
                    many.join(" or ")
                }
            };
            MessageViolation::new(at, format!("a value of type {expected}"))
        }
        ValidationErrorKind::Pattern { pattern } => {
            MessageViolation::new(at, format!("text that matches {pattern}"))
        }
        ValidationErrorKind::Format { format } => {
            MessageViolation::new(at, format!("text in the format {format:?}"))
        }
        ValidationErrorKind::MinItems { limit } => {
            MessageViolation::new(at, format!("at least {limit} elements"))
        }
        ValidationErrorKind::MinLength { limit } => {
            MessageViolation::new(at, format!("at least {limit} characters"))
        }
        ValidationErrorKind::Minimum { limit } => {
            MessageViolation::new(at, format!("at least {limit}"))
        }
        ValidationErrorKind::Maximum { limit } => {
            MessageViolation::new(at, format!("at most {limit}"))
        }
        ValidationErrorKind::OneOfNotValid { .. }
        | ValidationErrorKind::OneOfMultipleValid { .. } => MessageViolation::new(
            at,
            "exactly one member that is a message of this capability",
        ),
        other => MessageViolation::new(
            at,
            format!("what {:?} of the schema asks for", other.keyword()),
        ),
    }
}

/// The schema of an answer's payload, without the member that names the request.
pub(super) fn payload_schema(
    family: Family,
    key: &str,
    without: &str,
) -> Option<Map<String, Value>> {
    static PARSED: LazyLock<[Option<Value>; Family::ALL.len()]> =
        LazyLock::new(|| Family::ALL.map(|it| serde_json::from_str(schema_text(it)).ok()));
    let place = Family::ALL.into_iter().position(|it| it == family)?;
    let schema = PARSED.get(place)?.as_ref()?;
    let mut payload = schema.get("$defs")?.get(key)?.as_object()?.clone();
    if let Some(Value::Object(members)) = payload.get_mut("properties") {
        members.remove(without);
    }
    if let Some(Value::Array(required)) = payload.get_mut("required") {
        required.retain(|key| key != without);
    }
    payload.remove("description");
    Some(payload)
}

#[cfg(test)]
mod tests;
