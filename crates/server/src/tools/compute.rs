//! `compute`: arithmetic.

use super::arithmetic::Number;
use super::expression::evaluate;
use futures_util::FutureExt;
use futures_util::future::ready;
use serde_json::{Value, json};
use upp::{Effect, Tool, ToolContext, ToolFailure, ToolOutput};

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": { "expression": {
            "type": "string",
            "description": "Numbers, + - * / % ^, parentheses, sqrt abs min max round floor ceil, pi and e; such as (1 + 2) * sqrt(9)"
        } },
        "required": ["expression"],
        "additionalProperties": false
    });
    let run = |arguments: Value, _: ToolContext| {
        ready(compute(
            arguments
                .get("expression")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        ))
        .boxed()
    };
    Tool::new(
        super::COMPUTE,
        "Evaluates an arithmetic expression.",
        parameters,
        run,
    )
    .with_effect(Effect::Pure)
}

fn compute(expression: &str) -> ToolOutput {
    match evaluate(expression) {
        // Beyond 64 bits an integer has no JSON number that every reader keeps, so it is text.
        Ok(Number::Int(int)) => {
            Ok(i64::try_from(int).map_or_else(|_| Value::String(int.to_string()), Value::from))
        }
        Ok(Number::Float(float)) => Ok(Value::from(float)),
        Err(error) => Err(ToolFailure::new(format!(
            "The expression can't be evaluated: {error}."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_a_json_number_where_it_can_be() {
        assert_eq!(compute("2 + 3 * 4"), Ok(json!(14)));
        assert_eq!(compute("1 / 4"), Ok(json!(0.25)));
        assert_eq!(
            compute("2 ^ 100"),
            Ok(json!("1267650600228229401496703205376"))
        );
        assert_eq!(
            compute("1 / 0").unwrap_err().message,
            "The expression can't be evaluated: division by zero."
        );
    }
}
