//! The values of operators and functions. Integers are exact unless they overflow.

/// The supported functions.
pub(super) const FUNCTIONS: [&str; 7] = ["sqrt", "abs", "min", "max", "round", "floor", "ceil"];

/// A result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArithmeticError {
    #[error("it is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("division by zero")]
    DivisionByZero,
    #[error("the result is not a finite real number")]
    NotFinite,
    #[error(
        "{0:?} is unknown; use numbers, + - * / % ^, parentheses, sqrt abs min max round floor ceil, pi and e"
    )]
    Unknown(String),
    #[error("{function} takes {expected}, found {found} values")]
    Arity {
        function: &'static str,
        expected: &'static str,
        found: usize,
    },
    #[error("a parenthesis is missing or too many")]
    Unbalanced,
    #[error("a value is missing {0}")]
    MissingValue(&'static str),
    #[error("an operator is missing before {0:?}")]
    MissingOperator(String),
}

/// An operator.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Op {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Negate,
}

impl Op {
    /// The operator's precedence; a higher number binds tighter.
    pub(super) fn precedence(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => 1,
            Self::Multiply | Self::Divide | Self::Remainder => 2,
            Self::Negate => 3,
            Self::Power => 4,
        }
    }

    /// The operator between two values.
    pub(super) fn infix(sign: u8) -> Option<Self> {
        Some(match sign {
            b'+' => Self::Add,
            b'-' => Self::Subtract,
            b'*' => Self::Multiply,
            b'/' => Self::Divide,
            b'%' => Self::Remainder,
            b'^' => Self::Power,
            _ => return None,
        })
    }
}

/// The value of an operation; a negation has 0 as `left`.
pub(super) fn apply(op: Op, left: Number, right: Number) -> Result<Number, ArithmeticError> {
    let zero = matches!(right, Number::Int(0)) || as_float(right) == 0.0;
    if matches!(op, Op::Divide | Op::Remainder) && zero {
        return Err(ArithmeticError::DivisionByZero);
    }
    if let (Number::Int(l), Number::Int(r)) = (left, right) {
        let exact = match op {
            Op::Add => l.checked_add(r),
            Op::Subtract | Op::Negate => l.checked_sub(r),
            Op::Multiply => l.checked_mul(r),
            Op::Divide => l
                .checked_rem(r)
                .filter(|rest| *rest == 0)
                .and_then(|_| l.checked_div(r)),
            Op::Remainder => l.checked_rem(r),
            Op::Power => u32::try_from(r)
                .ok()
                .and_then(|exponent| l.checked_pow(exponent)),
        };
        if let Some(exact) = exact {
            return Ok(Number::Int(exact));
        }
    }
    let (l, r) = (as_float(left), as_float(right));
    finite(match op {
        Op::Add => l + r,
        Op::Subtract => l - r,
        Op::Negate => -r,
        Op::Multiply => l * r,
        Op::Divide => l / r,
        Op::Remainder => l % r,
        Op::Power if l == 0.0 && r < 0.0 => return Err(ArithmeticError::DivisionByZero),
        Op::Power => l.powf(r),
    })
}

/// The value of a function.
pub(super) fn call(function: &'static str, given: &[Number]) -> Result<Number, ArithmeticError> {
    if let "min" | "max" = function {
        let less = |one: Number, other: Number| match (one, other) {
            (Number::Int(one), Number::Int(other)) => one < other,
            (one, other) => as_float(one) < as_float(other),
        };
        let pick = |best: Number, next: Number| {
            if less(next, best) == (function == "min") {
                next
            } else {
                best
            }
        };
        let none = ArithmeticError::Arity {
            function,
            expected: "one or more",
            found: 0,
        };
        return given.iter().copied().reduce(pick).ok_or(none);
    }
    let [value] = given else {
        return Err(ArithmeticError::Arity {
            function,
            expected: "one",
            found: given.len(),
        });
    };
    let float = as_float(*value);
    match (function, value) {
        ("abs", Number::Int(int)) if let Some(int) = int.checked_abs() => Ok(Number::Int(int)),
        ("round" | "floor" | "ceil", Number::Int(int)) => Ok(Number::Int(*int)),
        ("abs", _) => finite(float.abs()),
        ("round", _) => whole(float.round()),
        ("floor", _) => whole(float.floor()),
        ("ceil", _) => whole(float.ceil()),
        (_, Number::Int(int)) if let Some(root) = exact_root(*int) => Ok(Number::Int(root)),
        _ => finite(float.sqrt()),
    }
}

fn exact_root(int: i128) -> Option<i128> {
    let root = int.checked_isqrt()?;
    (root.checked_mul(root)? == int).then_some(root)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "floats are for what integers can't hold"
)]
pub(super) fn as_float(number: Number) -> f64 {
    match number {
        Number::Int(int) => int as f64,
        Number::Float(float) => float,
    }
}

fn finite(float: f64) -> Result<Number, ArithmeticError> {
    if float.is_finite() {
        Ok(Number::Float(float))
    } else {
        Err(ArithmeticError::NotFinite)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "checked to be an integer that fits"
)]
fn whole(float: f64) -> Result<Number, ArithmeticError> {
    if float.abs() < 1e38 {
        Ok(Number::Int(float as i128))
    } else {
        finite(float)
    }
}
