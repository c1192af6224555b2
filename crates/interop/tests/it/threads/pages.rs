//! Pages of lists.

use super::logs::Writer;
use loomline_interop::threads::{
    FileObject, FileQuery, ListQuery, MessageObject, Order, Page, ThreadView,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn query(pairs: &[(&str, &str)]) -> ListQuery {
    ListQuery::read(pairs.iter().copied()).unwrap()
}

fn file(id: usize) -> FileObject {
    FileObject {
        id: format!("file-{id}"),
        object: "file".into(),
        bytes: 1,
        created_at: 7,
        expires_at: None,
        filename: "f".into(),
        purpose: "vision".into(),
        status: "processed".into(),
    }
}

/// A page of `n` objects as a caller makes it that finds an object by its id; and how many it looked at.
fn page(n: usize, query: &ListQuery) -> (Value, usize) {
    let walk = query.walk();
    let mut places: Vec<usize> = (0..n).collect();
    if walk.direction == Order::Descending {
        places.reverse();
    }
    let from = walk
        .from
        .map(|id| id.strip_prefix("file-").unwrap().parse::<usize>().unwrap());
    let skip = from.map_or(0, |from| {
        places.iter().position(|place| *place == from).unwrap() + 1
    });
    let (mut page, mut seen) = (Page::new(query), 0);
    for place in places.into_iter().skip(skip) {
        seen += 1;
        if page.push(file(place)).is_break() {
            break;
        }
    }
    (serde_json::to_value(page.list()).unwrap(), seen)
}

fn ids(page: &Value) -> Vec<String> {
    let data = page["data"].as_array().unwrap().iter();
    data.map(|it| it["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_empty_list_has_no_first_and_no_last() {
    let (page, _) = page(0, &query(&[]));
    assert_eq!(
        page,
        json!({"object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false})
    );
}

#[test]
fn a_page_names_its_ends_and_says_whether_there_is_more() {
    let (first, _) = page(3, &query(&[("limit", "2")]));
    assert_eq!(ids(&first), ["file-2", "file-1"]);
    assert_eq!(
        (&first["first_id"], &first["last_id"]),
        (&json!("file-2"), &json!("file-1"))
    );
    assert_eq!(first["has_more"], true);
    // Exactly as many as asked for is not more.
    let (last, _) = page(3, &query(&[("limit", "3"), ("order", "asc")]));
    assert_eq!((ids(&last).len(), &last["has_more"]), (3, &json!(false)));
}

#[test]
fn before_is_what_precedes_in_the_chosen_order() {
    let (page, _) = page(9, &query(&[("limit", "2"), ("before", "file-3")]));
    // Newest first: 8 7 6 5 4 | 3 …
    assert_eq!(ids(&page), ["file-5", "file-4"]);
    assert_eq!(page["has_more"], true);
}

#[test]
fn a_query_out_of_bounds_is_refused() {
    for (pair, told) in [
        (
            ("limit", "0"),
            "Invalid 'limit': expected an integer from 1 to 100.",
        ),
        (
            ("limit", "101"),
            "Invalid 'limit': expected an integer from 1 to 100.",
        ),
        (
            ("limit", "ten"),
            "Invalid 'limit': expected an integer from 1 to 100.",
        ),
        (
            ("order", "up"),
            "Invalid value: 'up'. Supported values are: 'asc' and 'desc'.",
        ),
    ] {
        let error = ListQuery::read([pair]).unwrap_err();
        assert_eq!(error.to_string(), told);
    }
    for purpose in [
        "assistants_output",
        "batch_output",
        "fine-tune-results",
        "vision",
    ] {
        let query = FileQuery::read([("purpose", purpose)]).unwrap();
        assert_eq!(query.purpose.as_deref(), Some(purpose));
    }
    assert!(FileQuery::read([("purpose", "fun")]).is_err());
    let content = "step_details.tool_calls[*].file_search.results[*].content";
    assert!(ListQuery::read([("include[]", content), ("unknown", "x")]).is_ok());
    assert!(ListQuery::read([("include[]", "everything")]).is_err());
}

#[test]
fn messages_of_one_second_keep_the_order_of_the_log() {
    let mut writer = Writer::new();
    let at = writer.log.at;
    for text in ["a", "b", "c"] {
        let item = writer.user(text);
        writer.log.run_at(at, timeline::Command::Record { item });
    }
    let view = ThreadView::of(&writer.log.transcript());
    let mut page: Page<MessageObject> = Page::new(&query(&[]));
    for message in view.messages().rev() {
        assert!(page.push(message.object().unwrap()).is_continue());
    }
    let list = serde_json::to_value(page.list()).unwrap();
    super::schema::check("ListMessagesResponse", &list);
    let texts: Vec<&str> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["content"][0]["text"]["value"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["c", "b", "a"]);
}

proptest! {
    #[test]
    fn paging_shows_every_object_once_at_the_cost_of_its_page(n in 0usize..30, limit in 1usize..12, ascending: bool) {
        let order = if ascending { "asc" } else { "desc" };
        let limit_text = limit.to_string();
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut pairs = vec![("limit", limit_text.as_str()), ("order", order)];
            if let Some(after) = &after {
                pairs.push(("after", after));
            }
            let (page, looked) = page(n, &query(&pairs));
            prop_assert!(looked <= limit + 1);
            let ids = ids(&page);
            prop_assert!(!ids.is_empty() || n == 0);
            after = ids.last().cloned();
            seen.extend(ids);
            if page["has_more"] == false {
                break;
            }
        }
        let mut expected: Vec<String> = (0..n).map(|id| format!("file-{id}")).collect();
        if !ascending {
            expected.reverse();
        }
        prop_assert_eq!(&seen, &expected);
        // And back again, page by page.
        let mut before = seen.last().cloned();
        let mut back: Vec<String> = before.iter().cloned().collect();
        while let Some(cursor) = before.take() {
            let (page, _) = page(n, &query(&[("limit", &limit_text), ("order", order), ("before", &cursor)]));
            let ids = ids(&page);
            if page["has_more"] == true {
                before = ids.first().cloned();
            }
            back.splice(0..0, ids);
        }
        prop_assert_eq!(back, expected);
    }

    #[test]
    fn after_and_before_together_are_what_is_between(n in 2usize..20, a in 0usize..20, b in 0usize..20) {
        let a = a % (n - 1);
        let b = a + 1 + b % (n - 1 - a);
        let (after, before) = (format!("file-{a}"), format!("file-{b}"));
        let (page, _) = page(n, &query(&[("order", "asc"), ("after", &after), ("before", &before)]));
        prop_assert_eq!(ids(&page).len(), b - a - 1);
        prop_assert_eq!(&page["has_more"], false);
    }
}
