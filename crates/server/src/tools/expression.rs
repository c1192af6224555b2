//! Expressions, parsed with Dijkstra's shunting-yard algorithm: without recursion, in one pass.

use super::arithmetic::{ArithmeticError as Error, FUNCTIONS, Number, Op, apply, call};

/// The longest expression, in bytes.
const MAX_BYTES: usize = 1_000;

/// An entry on the stack that waits for its operands.
enum Pending {
    Op(Op),
    /// An open parenthesis, with the function before it and the number of values so far.
    Open(Option<&'static str>, usize),
}

/// Evaluates an expression.
pub(super) fn evaluate(text: &str) -> Result<Number, Error> {
    if text.len() > MAX_BYTES {
        return Err(Error::TooLong { limit: MAX_BYTES });
    }
    let mut machine = Machine::default();
    let mut rest = text.trim_start();
    while let Some(first) = rest.bytes().next() {
        let len = token(rest);
        let (word, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
        rest = after.trim_start();
        match first {
            b'0'..=b'9' | b'.' => machine.value(word, number(word)?)?,
            b'a'..=b'z' | b'A'..=b'Z' => machine.name(word, rest.starts_with('('))?,
            b'(' => machine.open()?,
            b')' => machine.close()?,
            b',' => machine.comma()?,
            sign => {
                machine.sign(Op::infix(sign).ok_or_else(|| Error::Unknown(word.to_owned()))?)?;
            }
        }
    }
    machine.end()
}

/// The length of the first token.
fn token(text: &str) -> usize {
    let bytes = text.as_bytes();
    let run = |wanted: fn(&u8) -> bool| bytes.iter().take_while(|byte| wanted(byte)).count();
    match bytes.first() {
        Some(b'0'..=b'9' | b'.') => run(|byte| byte.is_ascii_digit() || *byte == b'.'),
        Some(first) if first.is_ascii_alphabetic() => run(u8::is_ascii_alphanumeric),
        _ => text.chars().next().map_or(0, char::len_utf8),
    }
}

fn number(word: &str) -> Result<Number, Error> {
    let int = word.parse().ok().map(Number::Int);
    let float = || {
        word.parse()
            .ok()
            .filter(|float: &f64| float.is_finite())
            .map(Number::Float)
    };
    int.or_else(float)
        .ok_or_else(|| Error::Unknown(word.to_owned()))
}

#[derive(Default)]
struct Machine {
    values: Vec<Number>,
    pending: Vec<Pending>,
    function: Option<&'static str>,
    /// Whether the last token completed a value, so that an operator must follow.
    complete: bool,
}

impl Machine {
    fn value(&mut self, word: &str, value: Number) -> Result<(), Error> {
        if self.complete {
            return Err(Error::MissingOperator(word.to_owned()));
        }
        self.values.push(value);
        self.complete = true;
        Ok(())
    }

    fn name(&mut self, word: &str, called: bool) -> Result<(), Error> {
        if self.complete {
            return Err(Error::MissingOperator(word.to_owned()));
        }
        match (word, called) {
            ("pi", false) => self.value(word, Number::Float(std::f64::consts::PI)),
            ("e", false) => self.value(word, Number::Float(std::f64::consts::E)),
            (_, true)
                if let Some(function) =
                    FUNCTIONS.into_iter().find(|function| *function == word) =>
            {
                self.function = Some(function);
                Ok(())
            }
            _ => Err(Error::Unknown(word.to_owned())),
        }
    }

    fn open(&mut self) -> Result<(), Error> {
        if self.complete {
            return Err(Error::MissingOperator("(".into()));
        }
        self.pending.push(Pending::Open(self.function.take(), 0));
        Ok(())
    }

    fn sign(&mut self, op: Op) -> Result<(), Error> {
        if !self.complete {
            return match op {
                Op::Subtract => {
                    self.pending.push(Pending::Op(Op::Negate));
                    Ok(())
                }
                Op::Add => Ok(()),
                Op::Multiply | Op::Divide | Op::Remainder | Op::Power | Op::Negate => {
                    Err(Error::MissingValue("before an operator"))
                }
            };
        }
        // A power binds to the right, all else to the left.
        while let Some(Pending::Op(last)) = self.pending.last()
            && (last.precedence() > op.precedence()
                || (last.precedence() == op.precedence() && op != Op::Power))
        {
            self.reduce(*last)?;
            self.pending.pop();
        }
        self.pending.push(Pending::Op(op));
        self.complete = false;
        Ok(())
    }

    /// Evaluates the operators since the last open parenthesis.
    fn reduce_group(&mut self) -> Result<(), Error> {
        if !self.complete {
            return Err(Error::MissingValue(
                "before a comma, a parenthesis or the end",
            ));
        }
        while let Some(Pending::Op(op)) = self.pending.last() {
            self.reduce(*op)?;
            self.pending.pop();
        }
        Ok(())
    }

    fn comma(&mut self) -> Result<(), Error> {
        self.reduce_group()?;
        match self.pending.last_mut() {
            Some(Pending::Open(Some(_), n_values)) => *n_values += 1,
            _ => return Err(Error::Unknown(",".into())),
        }
        self.complete = false;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Error> {
        self.reduce_group()?;
        let Some(Pending::Open(function, n_before)) = self.pending.pop() else {
            return Err(Error::Unbalanced);
        };
        let Some(function) = function else {
            return Ok(());
        };
        let given = self
            .values
            .split_off(self.values.len().saturating_sub(n_before + 1));
        self.values.push(call(function, &given)?);
        Ok(())
    }

    fn reduce(&mut self, op: Op) -> Result<(), Error> {
        let missing = || Error::MissingValue("after an operator");
        let right = self.values.pop().ok_or_else(missing)?;
        let left = if op == Op::Negate {
            Number::Int(0)
        } else {
            self.values.pop().ok_or_else(missing)?
        };
        self.values.push(apply(op, left, right)?);
        Ok(())
    }

    fn end(mut self) -> Result<Number, Error> {
        self.reduce_group()?;
        match (self.values.pop(), self.pending.pop()) {
            (Some(value), None) => Ok(value),
            _ => Err(Error::Unbalanced),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::arithmetic::as_float;
    use super::*;

    #[test]
    fn expressions_have_the_values_of_school() {
        for (text, value) in [
            ("1 + 2 * 3", 7_i64),
            ("(1 + 2) * 3", 9),
            ("-2 ^ 2", -4),
            ("2 ^ 3 ^ 2", 512),
            ("2 ^ -1 * 4", 2),
            ("10 - 4 - 3", 3),
            ("--5", 5),
            ("3 - -2", 5),
            ("7 % 4", 3),
            ("min(3, max(1, 2), 5)", 2),
            (
                "sqrt(16) + abs(-3) + floor(2.7) + ceil(2.1) + round(2.5)",
                15,
            ),
            ("9007199254740993 + 0", 9_007_199_254_740_993),
        ] {
            let found = evaluate(text).map(as_float);
            #[expect(clippy::cast_precision_loss, reason = "small values")]
            let wanted = value as f64;
            assert_eq!(found, Ok(wanted), "{text}");
        }
        assert_eq!(
            evaluate("9007199254740993 * 3"),
            Ok(Number::Int(27_021_597_764_222_979))
        );
        assert_eq!(evaluate("0.1 + 0.2"), Ok(Number::Float(0.1 + 0.2)));
        assert_eq!(evaluate("2 * pi"), Ok(Number::Float(std::f64::consts::TAU)));
    }

    #[test]
    fn what_is_no_expression_is_told_why() {
        let said = |text: &str| evaluate(text).unwrap_err().to_string();
        assert_eq!(said("1 / (2 - 2)"), "division by zero");
        assert_eq!(said("0 ^ -1"), "division by zero");
        assert_eq!(said("sqrt(-1)"), "the result is not a finite real number");
        assert_eq!(said("(1 + 2"), "a parenthesis is missing or too many");
        assert_eq!(said("1)"), "a parenthesis is missing or too many");
        assert_eq!(said("2 3"), "an operator is missing before \"3\"");
        assert_eq!(said("sqrt(1, 2)"), "sqrt takes one, found 2 values");
        for text in [
            "", "1 +", "* 2", "()", "min()", "1,2", "sin(1)", "pi(2)", "1.2.3", "é", "sqrt 4",
        ] {
            assert!(evaluate(text).is_err(), "{text}");
        }
        assert_eq!(
            evaluate(&"(".repeat(1_001)),
            Err(Error::TooLong { limit: MAX_BYTES })
        );
        assert!(evaluate(&format!("{}1{}", "(".repeat(499), ")".repeat(499))).is_ok());
    }
}
