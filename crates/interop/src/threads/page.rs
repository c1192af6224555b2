//! Pages of lists.

use super::error::RequestError;
use super::fields::check_word;
use super::object::{List, Named};
use crate::fields::check_length;
pub use crate::page::{Order, Page};

const MAX_LIMIT: usize = 100;
const DEFAULT_LIMIT: usize = 20;
const MAX_FILES: usize = 10_000;
const ORDERS: &[&str] = &["asc", "desc"];
/// The only value of `include` that lists of steps accept. It has no effect here.
const INCLUDES: &[&str] = &["step_details.tool_calls[*].file_search.results[*].content"];

/// The query of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// How many objects at most: 1 to 100.
    pub limit: usize,
    /// In which order.
    pub order: Order,
    /// The page starts after this object in that order.
    pub after: Option<String>,
    /// The page ends before this object in that order.
    pub before: Option<String>,
    /// Only messages of this run.
    pub run_id: Option<String>,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self {
            limit: DEFAULT_LIMIT,
            order: Order::default(),
            after: None,
            before: None,
            run_id: None,
        }
    }
}

/// The start and the order of a read through the objects of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The order.
    pub direction: Order,
    /// The read starts after this object. Without one, it starts at the first object in this order.
    pub from: Option<String>,
}

fn limit(value: &str, max: usize, expected: &'static str) -> Result<usize, RequestError> {
    let limit = value.parse().ok();
    let limit = limit.filter(|limit| (1..=max).contains(limit));
    limit.ok_or_else(|| RequestError::Outside {
        pointer: "/limit".to_owned(),
        expected,
    })
}

impl ListQuery {
    /// Reads the pairs of a query string; unknown ones are ignored.
    pub fn read<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, RequestError> {
        let mut query = Self::default();
        for (name, value) in pairs {
            match name {
                "limit" => query.limit = limit(value, MAX_LIMIT, "an integer from 1 to 100")?,
                "order" => {
                    let word = check_word("/order".to_owned(), value, ORDERS)?;
                    query.order = if word == "asc" {
                        Order::Ascending
                    } else {
                        Order::Descending
                    };
                }
                "after" => query.after = cursor("/after", value)?,
                "before" => query.before = cursor("/before", value)?,
                "run_id" => query.run_id = cursor("/run_id", value)?,
                "include[]" | "include" => {
                    check_word("/include".to_owned(), value, INCLUDES)?;
                }
                _ => {}
            }
        }
        Ok(query)
    }

    /// The range and the order that the caller reads. The read starts at the cursor, so its cost is
    /// that of the page.
    pub fn walk(&self) -> Walk {
        if self.is_backward() {
            return Walk {
                direction: self.order.reversed(),
                from: self.before.clone(),
            };
        }
        Walk {
            direction: self.order,
            from: self.after.clone(),
        }
    }

    /// The page before a cursor is the objects nearest to it.
    fn is_backward(&self) -> bool {
        self.before.is_some() && self.after.is_none()
    }
}

fn cursor(pointer: &str, value: &str) -> Result<Option<String>, RequestError> {
    check_length(pointer, value, super::fields::MAX_ID)?;
    Ok((!value.is_empty()).then(|| value.to_owned()))
}

impl<T: Named> Page<T> {
    /// An empty page, for the objects in the order of [`ListQuery::walk`].
    pub fn new(query: &ListQuery) -> Self {
        let is_backward = query.is_backward();
        let until = query.before.clone().filter(|_| !is_backward);
        Self::of(query.limit, is_backward, until)
    }

    /// The page.
    pub fn list(self) -> List<T> {
        let (data, has_more) = self.finish();
        List::new(data, has_more)
    }
}

/// The query of `GET /files`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileQuery {
    /// Which page: 1 to 10,000 files.
    pub list: ListQuery,
    /// Only files of this purpose.
    pub purpose: Option<String>,
}

impl FileQuery {
    /// Reads the pairs of a query string; unknown ones are ignored.
    pub fn read<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, RequestError> {
        let (mut purpose, mut n, mut rest) = (None, MAX_FILES, Vec::new());
        for (name, value) in pairs {
            match name {
                "purpose" => {
                    check_word("/purpose".to_owned(), value, super::file::ALL_PURPOSES)?;
                    purpose = Some(value.to_owned());
                }
                "limit" => n = limit(value, MAX_FILES, "an integer from 1 to 10000")?,
                _ => rest.push((name, value)),
            }
        }
        let mut list = ListQuery::read(rest)?;
        list.limit = n;
        Ok(Self { list, purpose })
    }
}
