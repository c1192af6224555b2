//! The parser: jiter's tokens put together without recursion, within limits.

use super::fault::{NO_VALUE, fault};
use super::{DecodeError, Json, JsonFault, Limits, Number, Object};
use crate::path::{Step, pointer};
use jiter::{Jiter, JiterError, JiterErrorType, Peek};

/// A container being read.
enum Open {
    /// The elements so far, unless they are dropped, and how many there were.
    Array(Vec<Json>, usize),
    /// The members so far, and the key of the value being read.
    Object(Object, Option<Box<str>>),
}

struct Parser<'t> {
    text: &'t str,
    limits: &'t Limits,
    jiter: Jiter<'t>,
    open: Vec<Open>,
    nodes: usize,
    /// Whether values are stored. If not, only the keys of open objects are.
    builds: bool,
}

/// Parses one JSON text.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Json, DecodeError> {
    run(text, limits, true)
}

/// The error that [`parse`] returns for a text, found without building its values.
pub(super) fn error_of(text: &str, limits: &Limits) -> Option<DecodeError> {
    run(text, limits, false).err()
}

fn run(text: &str, limits: &Limits, builds: bool) -> Result<Json, DecodeError> {
    let mut parser = Parser {
        text,
        limits,
        jiter: Jiter::new(text.as_bytes()),
        open: Vec::new(),
        nodes: 0,
        builds,
    };
    if text.len() > limits.max_bytes {
        return Err(parser.fail_at(
            0,
            JsonFault::TooLarge {
                bytes: text.len(),
                limit: limits.max_bytes,
            },
        ));
    }
    parser.document()
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Json, DecodeError> {
        let mut peek = self.peek()?;
        loop {
            self.count()?;
            let mut value = match peek {
                Peek::Array => match self.open_array()? {
                    Some(first) => {
                        peek = first;
                        continue;
                    }
                    None => Json::Array(Vec::new()),
                },
                Peek::Object => match self.open_object()? {
                    Some(first) => {
                        peek = first;
                        continue;
                    }
                    None => Json::Object(Object::new()),
                },
                _ => self.scalar(peek)?,
            };
            peek = loop {
                match self.close(value)? {
                    Closed::Document(document) => return self.finish(document),
                    Closed::Container(container) => value = container,
                    Closed::Next(next) => break next,
                }
            };
        }
    }

    fn open_array(&mut self) -> Result<Option<Peek>, DecodeError> {
        self.deepen()?;
        let first = self.jiter.known_array();
        let first = first.map_err(|error| self.fail(&error))?;
        if first.is_some() {
            self.open.push(Open::Array(Vec::new(), 0));
        }
        Ok(first)
    }

    fn open_object(&mut self) -> Result<Option<Peek>, DecodeError> {
        self.deepen()?;
        let key = self.jiter.known_object().map(|key| key.map(Box::from));
        let Some(key) = key.map_err(|error| self.fail(&error))? else {
            return Ok(None);
        };
        self.open.push(Open::Object(Object::new(), Some(key)));
        self.peek().map(Some)
    }

    /// Adds a finished value to its container and finds the next state.
    fn close(&mut self, value: Json) -> Result<Closed, DecodeError> {
        match self.open.last_mut() {
            None => Ok(Closed::Document(value)),
            Some(Open::Array(items, n_items)) => {
                *n_items += 1;
                if self.builds {
                    items.push(value);
                }
                let next = self.jiter.array_step();
                match next.map_err(|error| self.fail(&error))? {
                    Some(next) => Ok(Closed::Next(next)),
                    None => Ok(Closed::Container(self.pop())),
                }
            }
            Some(Open::Object(object, key)) => {
                if let Some(key) = key.take() {
                    object.insert(key, if self.builds { value } else { Json::Null });
                }
                let next = self.jiter.next_key().map(|key| key.map(Box::<str>::from));
                match next.map_err(|error| self.fail(&error))? {
                    Some(next) => self.member(next).map(Closed::Next),
                    None => Ok(Closed::Container(self.pop())),
                }
            }
        }
    }

    /// Begins the next member of the innermost object.
    fn member(&mut self, next: Box<str>) -> Result<Peek, DecodeError> {
        if let Some(Open::Object(object, key)) = self.open.last_mut() {
            let repeated = object.contains_key(&next).then(|| next.to_string());
            *key = Some(next);
            if let Some(key) = repeated {
                return Err(self.fail_here(JsonFault::DuplicateKey { key }));
            }
        }
        self.peek()
    }

    fn pop(&mut self) -> Json {
        match self.open.pop() {
            Some(Open::Array(mut items, _)) => {
                items.shrink_to_fit();
                Json::Array(items)
            }
            Some(Open::Object(mut object, _)) => {
                object.shrink_to_fit();
                Json::Object(object)
            }
            None => Json::Null,
        }
    }

    fn scalar(&mut self, peek: Peek) -> Result<Json, DecodeError> {
        let start = self.jiter.current_index();
        let read = match peek {
            Peek::Null => self.jiter.known_null().map(|()| Json::Null),
            Peek::True | Peek::False => self.jiter.known_bool(peek).map(Json::Bool),
            Peek::String => self.jiter.known_str().map(Json::from),
            Peek::NaN | Peek::Infinity => return Err(self.fail_here(JsonFault::NotFinite)),
            Peek::Minus
                if self
                    .text
                    .get(start..)
                    .is_some_and(|rest| rest.starts_with("-I")) =>
            {
                return Err(self.fail_here(JsonFault::NotFinite));
            }
            _ => match self.jiter.known_number_bytes(peek).map(<[u8]>::len) {
                Ok(length) => {
                    let spelled = self.text.get(start..start + length).unwrap_or_default();
                    Ok(Json::Number(Number::trusted(spelled)))
                }
                Err(error) => Err(error),
            },
        };
        read.map_err(|error| self.fail(&error))
    }

    fn finish(&mut self, document: Json) -> Result<Json, DecodeError> {
        let end = self.jiter.finish();
        end.map_err(|error| self.fail(&error))?;
        Ok(document)
    }

    fn peek(&mut self) -> Result<Peek, DecodeError> {
        let peek = self.jiter.peek();
        peek.map_err(|error| self.fail(&error))
    }

    fn count(&mut self) -> Result<(), DecodeError> {
        self.nodes += 1;
        let limit = self.limits.max_nodes;
        if self.nodes > limit {
            return Err(self.fail_here(JsonFault::TooManyNodes { limit }));
        }
        Ok(())
    }

    fn deepen(&mut self) -> Result<(), DecodeError> {
        let limit = self.limits.max_depth.min(Limits::DEEPEST);
        if self.open.len() >= limit {
            return Err(self.fail_here(JsonFault::TooDeep { limit }));
        }
        Ok(())
    }

    fn fail(&self, error: &JiterError) -> DecodeError {
        let fault = match &error.error_type {
            JiterErrorType::JsonError(kind) => fault(kind),
            JiterErrorType::WrongType { .. } => NO_VALUE,
        };
        self.fail_at(error.index, fault)
    }

    fn fail_here(&self, fault: JsonFault) -> DecodeError {
        self.fail_at(self.jiter.current_index(), fault)
    }

    fn fail_at(&self, index: usize, fault: JsonFault) -> DecodeError {
        let position = self.jiter.error_position(index.min(self.text.len()));
        let steps = self.open.iter().filter_map(|open| match open {
            Open::Array(_, n_items) => Some(Step::Index(*n_items)),
            Open::Object(_, key) => key.as_deref().map(Step::Key),
        });
        DecodeError {
            fault,
            pointer: pointer(steps),
            line: position.line,
            column: position.column,
        }
    }
}

enum Closed {
    Document(Json),
    Container(Json),
    Next(Peek),
}

#[cfg(test)]
mod tests;
