//! Lists in pages.

use super::error::RequestError;
use super::fields::invalid;
use super::items::ListedItem;
use crate::json_text::quoted;
use crate::page;
use std::ops::ControlFlow;

/// The requested part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage {
    /// Maximum number of items: 1 to 100.
    pub limit: usize,
    /// Whether the newest item comes first.
    pub newest_first: bool,
    /// The item after which it begins.
    pub after: Option<String>,
}

impl Default for ListPage {
    fn default() -> Self {
        Self {
            limit: 20,
            newest_first: true,
            after: None,
        }
    }
}

impl ListPage {
    /// Reads the parameters of a query; absent ones have the protocol's defaults.
    pub fn read(
        limit: Option<&str>,
        order: Option<&str>,
        after: Option<&str>,
    ) -> Result<Self, RequestError> {
        let otherwise = Self::default();
        let limit = match limit {
            None => otherwise.limit,
            Some(text) => match text.parse() {
                Ok(limit @ 1..=100) => limit,
                Ok(_) | Err(_) => return Err(invalid("/limit", "expected 1 to 100")),
            },
        };
        let newest_first = match order {
            None | Some("desc") => true,
            Some("asc") => false,
            Some(_) => return Err(invalid("/order", "expected \"asc\" or \"desc\"")),
        };
        Ok(Self {
            limit,
            newest_first,
            after: after.filter(|after| !after.is_empty()).map(str::to_owned),
        })
    }

    /// The page of these items, the oldest first, as a list object. Items after the page are not
    /// read from the iterator.
    pub fn list<I>(&self, items: I) -> Result<String, RequestError>
    where
        I: IntoIterator<Item = ListedItem>,
        I::IntoIter: DoubleEndedIterator,
    {
        let mut listing = self.begin();
        // Where it breaks off, it has all that it needs.
        let _ = listing.piece(items);
        listing.finish()
    }

    /// Starts a list for items that arrive in several batches.
    pub fn begin(&self) -> Listing {
        Listing {
            page: page::Page::of(self.limit, false, None),
            newest_first: self.newest_first,
            after: self.after.clone(),
        }
    }
}

/// A page under construction.
#[derive(Debug)]
pub struct Listing {
    page: page::Page<ListedItem>,
    newest_first: bool,
    /// The item after which the page begins; `None` once it was found.
    after: Option<String>,
}

impl Listing {
    /// Adds a piece of the items, the oldest first. Breaks when the page is complete. Pieces come
    /// in the order of the page.
    pub fn piece<I>(&mut self, items: I) -> ControlFlow<()>
    where
        I: IntoIterator<Item = ListedItem>,
        I::IntoIter: DoubleEndedIterator,
    {
        let mut items = items.into_iter();
        let items = std::iter::from_fn(|| {
            if self.newest_first {
                items.next_back()
            } else {
                items.next()
            }
        });
        for item in items {
            match &self.after {
                Some(after) if *after == item.id => self.after = None,
                Some(_) => {}
                None => self.page.push(item)?,
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether the item after which the page begins was found.
    pub fn has_started(&self) -> bool {
        self.after.is_none()
    }

    /// The list object.
    ///
    /// # Errors
    ///
    /// The item after which the page begins was not found.
    pub fn finish(self) -> Result<String, RequestError> {
        if let Some(after) = &self.after {
            return Err(RequestError::item_not_found(after, "/after"));
        }
        let (shown, has_more) = self.page.finish();
        Ok(list(&shown, has_more))
    }
}

/// A list object. If it has no items, its ids are empty, because the schema requires a string.
pub(super) fn list(items: &[ListedItem], has_more: bool) -> String {
    let id = |item: Option<&ListedItem>| quoted(item.map_or("", |item| item.id.as_str()));
    let data: Vec<&str> = items.iter().map(|item| item.json.as_str()).collect();
    format!(
        r#"{{"object":"list","data":[{}],"first_id":{},"last_id":{},"has_more":{has_more}}}"#,
        data.join(","),
        id(items.first()),
        id(items.last()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn items(n: usize) -> Vec<ListedItem> {
        let item = |n: usize| ListedItem {
            id: format!("i{n}"),
            json: n.to_string(),
        };
        (0..n).map(item).collect()
    }

    #[test]
    fn pages_follow_one_another_until_there_is_no_more() {
        for order in ["asc", "desc"] {
            let mut seen: Vec<i64> = Vec::new();
            let mut after = None;
            loop {
                let page = ListPage::read(Some("3"), Some(order), after.as_deref()).unwrap();
                let list: Value = serde_json::from_str(&page.list(items(7)).unwrap()).unwrap();
                let data = list["data"].as_array().unwrap();
                seen.extend(data.iter().map(|item| item.as_i64().unwrap()));
                after = list["last_id"].as_str().map(str::to_owned);
                if list["has_more"] == false {
                    break;
                }
            }
            if order == "desc" {
                seen.reverse();
            }
            assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6]);
        }
    }

    #[test]
    fn no_item_behind_a_page_is_made() {
        for order in ["asc", "desc"] {
            let page = ListPage::read(Some("3"), Some(order), None).unwrap();
            let n_made = std::cell::Cell::new(0);
            let made = items(50).into_iter();
            page.list(made.inspect(|_| n_made.set(n_made.get() + 1)))
                .unwrap();
            assert_eq!(n_made.get(), 4, "{order}");
        }
    }

    #[test]
    fn a_page_that_can_not_be_is_refused() {
        for (limit, order) in [
            (Some("0"), None),
            (Some("101"), None),
            (Some("x"), None),
            (None, Some("up")),
        ] {
            assert!(
                ListPage::read(limit, order, None).is_err(),
                "{limit:?} {order:?}"
            );
        }
        let page = ListPage::read(None, None, Some("gone")).unwrap();
        assert_eq!(page.list(items(2)).unwrap_err().code, "item_not_found");
        let empty: Value =
            serde_json::from_str(&ListPage::default().list(Vec::new()).unwrap()).unwrap();
        assert_eq!(empty["first_id"], "");
    }
}
